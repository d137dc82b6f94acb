"""Sums over trees as autograd functions; and sums, best trees and samples as operators of torch.

The marginals are the derivative of the log partition; their derivative is its Hessian, of which a product with a vector
is computed. The functions have all the rules of torch: backward, forward mode and vmap.

Operators are for programs that torch traces instead of running them: ``torch.compile``, ``torch.export`` and fake
tensors see an operator as one step with known shapes. Plain tensors (``treeparse.batch.is_plain``) go to the family
itself, which is faster.

What torch cannot do by itself, so that no operator can, with the issue of pytorch/pytorch or the setting:

| torch lacks | instead | issue |
|:--|:--|:--|
| forward mode over forward mode (``jacfwd`` of ``jacfwd``): it gives 0, so it is refused | ``hessian`` | #197867 |
| ``torch.func`` in a compiled program: ``compile(grad(f))`` | compile ``f``, call ``backward`` | #174067 |
| ``torch.autograd.grad`` in a compiled program | ``backward`` outside | ``trace_autograd_ops`` |
| a ``torch.Generator`` in a compiled program | ``torch.manual_seed`` before | #88576 |
| ``register_autograd`` under ``torch.func`` | the functions `Sums` and `Product` | #168393, #179652 |

Lists and draws without replacement (``topk``, ``best_first``, ``enumerate_support``, ``sample_without_replacement``)
are not traced either: how many trees there are depends on the scores' values.

The operators ``torch.ops.treeparse`` are functions of the scores of parts, lengths, and the name of the family. Scores
are as for ``Family``: one tensor ``(B, ...)`` a kind of part, arcs in float64 first; lengths are int64 ``(B,)``.
"""

from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import Any, cast

import torch
from torch import Tensor
from torch._C._functorch import TransformType, get_interpreter_stack  # torch has no public names for these
from torch.autograd import forward_ad

from treeparse.batch import is_plain
from treeparse.errors import TreeparseError
from treeparse.trees.families import Family, Tensors
from treeparse.trees.look_ups import ARE_NEW, LIBRARY, OPERATORS, define

below_autograd = torch._C._AutoDispatchBelowAutograd
NO_THIRD = (
    "This gradient needs a third derivative of the log partition in the scores, which is not implemented: "
    "covariances and second moments are differentiable in their arc values only, marginals and entropies once."
)


MAKERS: dict[str, Callable[[torch.device, bool, str], Family]] = {}
"""Families by name, from a device, whether there is a single root, and the option: ``TreeCRF`` adds its subclasses'."""


def name_of(family: Family) -> str:
    """Return the name by which operators know a family, its option after a colon; it does not depend on the device.

    Raises:
        TreeparseError: there are no operators for the family.
    """
    if family.name not in MAKERS:
        raise TreeparseError(
            f"There are no operators for {family.name} trees, so that neither torch.compile nor torch.func can see "
            "through them: take the distribution out of what is compiled or transformed."
        )
    return f"{family.name}:{family.option}"


def call(name: str, family: Family, first: Sequence[Tensor] | Tensor, *others: Any) -> Any:
    """Call the operator for a method of a family; its results are constants for autograd."""
    first = first if isinstance(first, Tensor) else [part.detach() for part in first]
    return getattr(OPERATORS, name)(first, *others, name_of(family), family.single_root)


def over_batches(function: Callable[..., Any], info: Any, in_dims: Sequence[Any], *arguments: Any) -> Any:
    """Apply a function to the items of all batches of vmap at once, and tell vmap where its dimension is: at 0."""
    result = function(*(_in_front(*pair, info.batch_size) for pair in zip(arguments, in_dims, strict=True)))
    if isinstance(result, Tensor):
        return result.unflatten(0, (info.batch_size, -1)), 0
    parts = type(result)(part.unflatten(0, (info.batch_size, -1)) for part in result)
    return parts, type(result)([0] * len(result))


def _in_front(argument: Any, dims: Any, size: int) -> Any:
    """Make vmap's dimension of a tensor, or of a list's tensors, part of the first: ``(V * B, ...)``; None expands."""
    if isinstance(argument, list):
        return [_in_front(tensor, dim, size) for tensor, dim in zip(argument, dims, strict=True)]
    if not isinstance(argument, Tensor):
        return argument
    tensor = argument.expand(size, *argument.shape) if dims is None else argument.movedim(dims, 0)
    return tensor.flatten(0, 1)


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
    rows = tuple(vector.reshape(part.shape) for vector, part in zip(vectors, repeated, strict=True))
    lengths = lengths.expand(count, -1).reshape(-1)
    if torch.compiler.is_compiling():
        names = name_of(family), family.single_root
        products = OPERATORS.hessian_vector_product(repeated, lengths, rows, *names)
    else:
        products = _apply(Product, lengths, family, *_last_derivative(repeated), *rows)
    return tuple(product.reshape(vector.shape) for product, vector in zip(products, vectors, strict=True))


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
            products = _product(ctx, lengths, parts, vectors)
            gradients = [*map(torch.add, gradients, products)] if gradients else [*products]
        return None, None, *(gradients or vectors)

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        lengths, *saved = ctx.saved_tensors
        parts, marginals = halves(saved)
        tangents = _filled(grad_inputs[2:], parts)
        terms = (part * tangent for part, tangent in zip(marginals, tangents, strict=True))
        products = _product(ctx, lengths, parts, tangents)
        return reduce(torch.add, (term.flatten(1).sum(-1) for term in terms)), *products

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], *arguments: Any) -> Any:
        return over_batches(Sums.apply, info, in_dims, *arguments)


class Product(torch.autograd.Function):
    """Products of the Hessian of the log partition ``(B, ...)``: arguments as for ``Sums``, and vectors after parts."""

    @staticmethod
    def forward(lengths: Tensor, trees: FamilyOrName, *parts_and_vectors: Tensor) -> Tensors:  # pyright: ignore
        parts, vectors = halves(parts_and_vectors)
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
        lengths, *parts = ctx.saved_tensors
        products = _product(ctx, lengths, parts, grad_outputs)  # the Hessian is symmetric
        return None, None, *(None for _ in parts), *products

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        directions, tangents = halves(grad_inputs[2:])
        if any(direction is not None for direction in directions):
            raise TreeparseError(NO_THIRD)
        lengths, *parts = ctx.saved_tensors
        return _product(ctx, lengths, parts, tangents)

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


def _product(ctx: Any, lengths: Tensor, parts: Sequence[Tensor], vectors: Sequence[Tensor | None]) -> Any:
    """Multiply the Hessian in the scores of parts by vectors; None counts as zeros."""
    if not all(map(torch.is_tensor, vectors)):
        vectors = _filled(vectors, parts)
    return _apply(Product, lengths, ctx.trees, *_last_derivative(parts), *vectors)


def _filled(vectors: Sequence[Tensor | None], parts: Sequence[Tensor]) -> list[Tensor]:
    """Put zeros where autograd has no vector for a kind of part."""
    return [torch.zeros_like(part) if vector is None else vector for vector, part in zip(vectors, parts, strict=True)]


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


def _method(name: str) -> Callable[..., Any]:
    """Return a function that calls a method of the family that the last two of its arguments name."""

    def call_method(*arguments: Any) -> Any:
        *values, trees, single_root = arguments
        of_trees, _, option = trees.partition(":")
        family = MAKERS[of_trees](values[1].device, single_root, option)
        result = getattr(family, name)(*(tuple(value) if isinstance(value, list) else value for value in values))
        return list(result) if isinstance(result, tuple) else result

    return call_method


def _define(operator: str, result: str, fake: Callable[..., Any]) -> None:
    """Define the operator for a method of families, by its name and first arguments."""
    schema = f"{operator}, str trees, bool single_root) -> {result}"
    define(schema, _method(operator.partition("(")[0]), fake)


def _numbers(parts: Sequence[Tensor], *others: Any) -> Tensor:
    return parts[0].new_empty(parts[0].shape[0])


def _like_parts(parts: Sequence[Tensor], *others: Any) -> list[Tensor]:
    return [part.new_empty(part.shape) for part in parts]


def _constant(operator: Any) -> Callable[..., Any]:
    """Return an operator without a derivative."""

    def call_below(*arguments: Any) -> Any:
        with below_autograd():
            return operator(*arguments)

    return call_below


if ARE_NEW:
    _define("log_partition(Tensor[] parts, Tensor lengths", "Tensor", _numbers)
    _define(
        "sums(Tensor[] parts, Tensor lengths", "Tensor[]", lambda parts, *others: [_numbers(parts), *_like_parts(parts)]
    )
    _define("hessian_vector_product(Tensor[] parts, Tensor lengths, Tensor[] vectors", "Tensor[]", _like_parts)
    _define("log_marginals(Tensor[] parts, Tensor lengths", "Tensor[]", _like_parts)
    _define(
        "best_trees(Tensor[] parts, Tensor lengths",
        "Tensor",
        lambda parts, lengths, *others: lengths.new_empty(parts[0].shape[:2]),
    )
    _define(
        "are_trees(Tensor heads, Tensor lengths",
        "Tensor",
        lambda heads, *others: heads.new_empty(heads.shape[0], dtype=torch.bool),
    )
    _define(
        "sample(Tensor[] parts, Tensor lengths, Tensor seeds, SymInt count, str? method",
        "Tensor",
        lambda parts, lengths, seeds, count, *others: lengths.new_empty(len(lengths), count, parts[0].shape[1]),
    )
    LIBRARY.impl("log_partition", _log_partition, "Autograd")
    LIBRARY.impl("sums", _sums, "Autograd")
    LIBRARY.impl("hessian_vector_product", _hessian_vector_product, "Autograd")
    for name in ("log_marginals", "best_trees", "are_trees", "sample"):
        operator = getattr(OPERATORS, name).default
        LIBRARY.impl(name, _constant(operator), "Autograd")
        torch.library.register_vmap(f"treeparse::{name}", partial(over_batches, operator), lib=LIBRARY)
