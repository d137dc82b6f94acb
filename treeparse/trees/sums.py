"""The sums over trees as autograd functions: log partition and marginals together, and their Hessian times a vector.

The marginals are the derivative of the log partition; their derivative is its Hessian, of which a product with a vector
is computed. The functions have all the rules of torch: backward, forward mode and vmap. Autograd of the operators calls
them, too.
"""

from collections.abc import Sequence
from functools import reduce
from typing import Any, cast

import torch
from torch import Tensor
from torch._C._functorch import TransformType, get_interpreter_stack  # torch has no public names for these
from torch.autograd import forward_ad

from treeparse.batch import is_plain
from treeparse.errors import TreeparseError
from treeparse.trees.families import Family, Tensors
from treeparse.trees.look_ups import ARE_NEW, LIBRARY, OPERATORS
from treeparse.trees.operators import below_autograd, name_of, over_batches

NO_THIRD = (
    "This gradient needs a third derivative of the log partition in the scores, which is not implemented: "
    "covariances and second moments are differentiable in their arc values only, marginals and entropies once."
)


def sums(family: Family, parts: Tensors, lengths: Tensor, *, plain: bool) -> Tensors:
    """Return the log partition ``(B,)``, differentiable twice, and the marginals of all kinds of part, once.

    They are -inf and 0 where there is no tree. Marginals have the dtypes of the scores.
    """
    if torch.compiler.is_compiling():
        return tuple(OPERATORS.sums(tuple(parts), lengths, name_of(family), family.single_root))
    return _apply(Sums, lengths, family if plain else (name_of(family), family.single_root), *parts)


def hessian_vector_products(family: Family, parts: Tensors, lengths: Tensor, vectors: Tensors) -> Tensors:
    """Multiply the Hessian of the log partition by vectors ``(V, B, ...)``, V an item; differentiable in the vectors.

    The third derivative, in the scores, raises.
    """
    count = len(vectors[0])
    repeated = tuple(part.expand(count, *part.shape).flatten(0, 1) for part in parts)
    flat = tuple(vector.reshape(part.shape) for vector, part in zip(vectors, repeated, strict=True))
    products = _product(family, repeated, lengths.expand(count, -1).reshape(-1), flat)
    return tuple(each.reshape(vector.shape) for each, vector in zip(products, vectors, strict=True))


def _product(family: Family, parts: Tensors, lengths: Tensor, vectors: Tensors) -> Tensors:
    if torch.compiler.is_compiling():
        names = name_of(family), family.single_root
        return tuple(OPERATORS.hessian_vector_product(tuple(parts), lengths, tuple(vectors), *names))
    return _apply(Product, lengths, family, *_last_derivative(parts), *vectors)


def _apply(function: type[torch.autograd.Function], *arguments: Any) -> Any:
    """Apply a function; outside of `torch.func`, without `Function.apply`, which reads signatures for 30 us."""
    transforms = get_interpreter_stack()
    if not transforms:
        return super(torch.autograd.Function, function).apply(*arguments)  # pyright: ignore[reportAttributeAccessIssue]
    if sum(transform.key() == TransformType.Jvp for transform in transforms) > 1:
        raise TreeparseError(
            "torch takes the derivative of a forward derivative by forward mode to be 0 (torch.func.jacfwd of jacfwd, "
            "jvp of jvp): take one of them by reverse mode, as torch.func.hessian does."
        )
    return function.apply(*arguments)


FamilyOrName = Family | tuple[str, bool]
"""A family; or, as operators know it, its name and whether its trees have a single root."""


def _by_operator(method: str, trees: FamilyOrName, *arguments: Any) -> Tensors:
    """Call a method of a family through its operator, without a graph."""
    names = trees if isinstance(trees, tuple) else (name_of(trees), trees.single_root)
    with below_autograd():
        return tuple(getattr(OPERATORS, method)(*arguments, *names))


class Sums(torch.autograd.Function):
    """Log partition ``(B,)`` and marginals ``(B, ...)`` of lengths, the family and the scores of all kinds of part."""

    @staticmethod
    def forward(lengths: Tensor, trees: FamilyOrName, *parts: Tensor) -> Tensors:  # pyright: ignore
        if isinstance(trees, tuple):
            return _by_operator("sums", trees, parts, lengths)
        return trees.sums(parts, lengths)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensors) -> None:
        lengths, ctx.trees, *parts = inputs
        saved = lengths, *parts, *output[1:]
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*saved)
        ctx.save_for_forward(*saved)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        gradient, *vectors = grad_outputs
        lengths, *saved = ctx.saved_tensors
        parts, marginals = saved[: len(vectors)], saved[len(vectors) :]  # outputs, so differentiable themselves
        gradients: list[Any] = []
        if gradient is not None:
            for part in marginals:
                gradients.append(part * gradient.to(part.dtype).reshape(-1, *[1] * (part.dim() - 1)))
        if any(map(torch.is_tensor, vectors)):
            filled = vectors if all(map(torch.is_tensor, vectors)) else _filled(vectors, parts)
            products = _apply(Product, lengths, ctx.trees, *_last_derivative(parts), *filled)
            gradients = [*map(torch.add, gradients, products)] if gradients else [*products]
        return None, None, *(gradients or vectors)

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        lengths, *saved = ctx.saved_tensors
        parts, marginals = halves(saved)
        tangents = _filled(grad_inputs[2:], parts)
        terms = (part * tangent for part, tangent in zip(marginals, tangents, strict=True))
        products = _apply(Product, lengths, ctx.trees, *_last_derivative(parts), *tangents)
        return reduce(torch.add, (term.flatten(1).sum(-1) for term in terms)), *products

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], *arguments: Any) -> Any:
        return over_batches(Sums.apply, info, in_dims, *arguments)


class Product(torch.autograd.Function):
    """Products of the Hessian of the log partition ``(B, ...)``: arguments as for ``Sums``, and vectors after parts."""

    @staticmethod
    def forward(lengths: Tensor, trees: FamilyOrName, *parts_and_vectors: Tensor) -> Tensors:  # pyright: ignore
        kinds = len(parts_and_vectors) // 2
        parts, vectors = parts_and_vectors[:kinds], parts_and_vectors[kinds:]
        if isinstance(trees, tuple) or not is_plain(parts[0]):
            return _by_operator("hessian_vector_product", trees, parts, lengths, vectors)
        return trees.hessian_vector_product(parts, lengths, vectors)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensors) -> None:
        lengths, ctx.trees, *parts_and_vectors = inputs
        saved = lengths, *parts_and_vectors[: len(parts_and_vectors) // 2]
        ctx.save_for_backward(*saved)
        ctx.save_for_forward(*saved)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> Any:
        return None, None, *(None for _ in grad_outputs), *_again(ctx, grad_outputs)  # the Hessian is symmetric

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        directions, tangents = halves(grad_inputs[2:])
        if any(direction is not None for direction in directions):
            raise TreeparseError(NO_THIRD)
        return _again(ctx, _filled(tangents, ctx.saved_tensors[1:]))

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], *arguments: Any) -> Any:
        return over_batches(Product.apply, info, in_dims, *arguments)


class _NoThirdDerivative(torch.autograd.Function):
    """The identity, whose derivative raises: it marks where a third derivative would be needed."""

    generate_vmap_rule = True

    @staticmethod
    def forward(*parts: Tensor) -> Tensors:  # pyright: ignore[reportIncompatibleMethodOverride]
        return tuple(part.view_as(part) for part in parts)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensors) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> Any:
        raise TreeparseError(NO_THIRD)

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        raise TreeparseError(NO_THIRD)


def _last_derivative(parts: Sequence[Tensor]) -> Any:
    """Mark parts as those in which no further derivative is taken."""
    return _apply(_NoThirdDerivative, *parts) if torch.is_grad_enabled() else parts


def halves(tensors: Sequence[Any]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Split tensors into those of the parts and the same number of tensors after them."""
    half = len(tensors) // 2
    return tuple(tensors[:half]), tuple(tensors[half:])


def _again(ctx: Any, vectors: Sequence[Tensor]) -> Any:
    """Multiply the same Hessian by other vectors."""
    lengths, *parts = ctx.saved_tensors
    return _apply(Product, lengths, ctx.trees, *_last_derivative(parts), *vectors)


def _filled(vectors: Sequence[Tensor | None], parts: Sequence[Tensor]) -> list[Tensor]:
    """Put zeros where autograd has no vector for a kind of part."""
    return [torch.zeros_like(part) if each is None else each for each, part in zip(vectors, parts, strict=True)]


def _log_partition(parts: Sequence[Tensor], lengths: Tensor, trees: str, single_root: bool) -> Tensor:
    if forward_ad._current_level >= 0 or (torch.is_grad_enabled() and any(part.requires_grad for part in parts)):
        return cast(Tensors, Sums.apply(lengths, (trees, single_root), *parts))[0]
    with below_autograd():
        return OPERATORS.log_partition(parts, lengths, trees, single_root)


def _sums(parts: Sequence[Tensor], lengths: Tensor, trees: str, single_root: bool) -> list[Tensor]:
    return [*cast(Tensors, Sums.apply(lengths, (trees, single_root), *parts))]


def _hessian_vector_product(
    parts: Sequence[Tensor], lengths: Tensor, vectors: Sequence[Tensor], trees: str, single_root: bool
) -> list[Tensor]:
    return [*cast(Tensors, Product.apply(lengths, (trees, single_root), *_last_derivative(parts), *vectors))]


if ARE_NEW:
    LIBRARY.impl("log_partition", _log_partition, "Autograd")
    LIBRARY.impl("sums", _sums, "Autograd")
    LIBRARY.impl("hessian_vector_product", _hessian_vector_product, "Autograd")
