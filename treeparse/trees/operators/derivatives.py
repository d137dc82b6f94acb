"""The derivatives of sums over trees for ``torch.func`` and for autograd below operators, and their rules for vmap.

``LogPartition``, ``Sums`` and ``Product`` are functions with all the rules of torch: backward, forward mode and vmap.
Autograd calls them for the operators, and ``torch.func`` directly.
"""

from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad

from treeparse.errors import TreeparseError
from treeparse.trees.operators.library import ARE_NEW, LIBRARY, OPERATORS

below_autograd = torch._C._AutoDispatchBelowAutograd
NO_THIRD = (
    "This gradient needs a third derivative of the log partition in the scores, which is not implemented: "
    "covariances and second moments are differentiable in their arc values only, marginals and entropies once."
)


def _computed(lengths: Tensor, trees: str, single_root: bool, *parts: Tensor) -> tuple[Tensor, ...]:
    with below_autograd():
        return tuple(OPERATORS.sums(parts, lengths, trees, single_root))


def _remember(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    lengths, ctx.trees, ctx.single_root, *parts = inputs
    ctx.save_for_backward(lengths, *parts, *output[1:])
    ctx.save_for_forward(lengths, *parts, *output[1:])


class LogPartition(torch.autograd.Function):
    """Log partition ``(B,)`` and marginals as constants, of lengths, the family's name, ``single_root`` and parts."""

    forward = staticmethod(_computed)  # pyright: ignore[reportAssignmentType]

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        ctx.mark_non_differentiable(*output[1:])
        _remember(ctx, inputs, output)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        return None, None, None, *(part * aligned(grad_outputs[0], part) for part in _marginals(ctx))

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        marginals = _marginals(ctx)
        return _inner_product(marginals, _filled(grad_inputs[3:], marginals)), *(None for _ in marginals)

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], *arguments: Any) -> Any:
        return _over_batches(LogPartition.apply, info, in_dims, *arguments)


class Sums(torch.autograd.Function):
    """Log partition ``(B,)`` and marginals ``(B, ...)``, both differentiable; arguments as for ``LogPartition``."""

    forward = staticmethod(_computed)  # pyright: ignore[reportAssignmentType]

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        ctx.set_materialize_grads(False)
        _remember(ctx, inputs, output)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        grad, *vectors = grad_outputs
        lengths, parts, marginals = _saved(ctx)
        grads: list[Any] = [None] * len(parts)
        if grad is not None:
            grads = [part * aligned(grad, part) for part in marginals]
        if any(vector is not None for vector in vectors):
            products = _product(ctx, lengths, parts, _filled(vectors, parts))
            grads = [product if own is None else own + product for own, product in zip(grads, products, strict=True)]
        return None, None, None, *grads

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        lengths, parts, marginals = _saved(ctx)
        tangents = _filled(grad_inputs[3:], parts)
        return _inner_product(marginals, tangents), *_product(ctx, lengths, parts, tangents)

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], *arguments: Any) -> Any:
        return _over_batches(Sums.apply, info, in_dims, *arguments)


class Product(torch.autograd.Function):
    """Products of the Hessian of the log partition ``(B, ...)``: arguments as for ``Sums``, and vectors after parts."""

    @staticmethod
    def forward(lengths: Tensor, trees: str, single_root: bool, *parts_and_vectors: Tensor) -> tuple[Tensor, ...]:  # pyright: ignore
        parts, vectors = halves(parts_and_vectors)
        with below_autograd():
            return tuple(OPERATORS.hessian_vector_product(parts, vectors, lengths, trees, single_root))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        lengths, ctx.trees, ctx.single_root, *parts_and_vectors = inputs
        ctx.save_for_backward(lengths, *halves(parts_and_vectors)[0])
        ctx.save_for_forward(lengths, *halves(parts_and_vectors)[0])

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> Any:
        return None, None, None, *(None for _ in grad_outputs), *_again(ctx, grad_outputs)  # the Hessian is symmetric

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        directions, tangents = halves(grad_inputs[3:])
        if any(direction is not None for direction in directions):
            raise TreeparseError(NO_THIRD)
        return _again(ctx, _filled(tangents, ctx.saved_tensors[1:]))

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], *arguments: Any) -> Any:
        return _over_batches(Product.apply, info, in_dims, *arguments)


class _NoThirdDerivative(torch.autograd.Function):
    """The identity, whose derivative raises: it marks where a third derivative would be needed."""

    generate_vmap_rule = True

    @staticmethod
    def forward(*parts: Tensor) -> tuple[Tensor, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        return tuple(part.view_as(part) for part in parts)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> Any:
        raise TreeparseError(NO_THIRD)

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        raise TreeparseError(NO_THIRD)


def last_derivative(parts: Sequence[Tensor]) -> Sequence[Tensor]:
    """Mark parts as those in which no further derivative is taken."""
    return _NoThirdDerivative.apply(*parts) if torch.is_grad_enabled() else parts


def _marginals(ctx: Any) -> Sequence[Tensor]:
    """Return saved marginals or, where a further derivative may follow, differentiable ones."""
    lengths, parts, marginals = _saved(ctx)
    return Sums.apply(lengths, ctx.trees, ctx.single_root, *parts)[1:] if torch.is_grad_enabled() else marginals


def _inner_product(left: Sequence[Tensor], right: Sequence[Tensor]) -> Tensor:
    """Sum the products of the parts of each item ``(B,)``."""
    return reduce(torch.add, ((one * other).flatten(1).sum(-1) for one, other in zip(left, right, strict=True)))


def _saved(ctx: Any) -> tuple[Tensor, Sequence[Tensor], Sequence[Tensor]]:
    lengths, *tensors = ctx.saved_tensors
    return lengths, *halves(tensors)


def halves(tensors: Sequence[Any]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Split tensors into those of the parts and the same number of tensors after them."""
    half = len(tensors) // 2
    return tuple(tensors[:half]), tuple(tensors[half:])


def _again(ctx: Any, vectors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Multiply the same Hessian by other vectors."""
    lengths, *parts = ctx.saved_tensors
    return _product(ctx, lengths, parts, vectors)


def _product(ctx: Any, lengths: Tensor, parts: Sequence[Tensor], vectors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    return Product.apply(lengths, ctx.trees, ctx.single_root, *last_derivative(parts), *vectors)


def _filled(vectors: Sequence[Tensor | None], parts: Sequence[Tensor]) -> list[Tensor]:
    """Put zeros where autograd has no vector for a kind of part."""
    return [torch.zeros_like(part) if each is None else each for each, part in zip(vectors, parts, strict=True)]


def aligned(grad: Tensor, part: Tensor) -> Tensor:
    """Reshape a number an item ``(B,)`` so that it multiplies ``(B, ...)``."""
    return grad.to(part.dtype).reshape(-1, *[1] * (part.dim() - 1))


def for_each_vector(
    product: Callable[..., Sequence[Tensor]], parts: Sequence[Tensor], lengths: Tensor, vectors: Sequence[Tensor]
) -> tuple[Tensor, ...]:
    """Multiply by several vectors an item ``(V, B, ...)``: a product of repeated parts, lengths and flat vectors."""
    count = len(vectors[0])
    repeated = tuple(part.expand(count, *part.shape).flatten(0, 1) for part in parts)
    flat = tuple(vector.reshape(part.shape) for vector, part in zip(vectors, repeated, strict=True))
    products = product(repeated, lengths.expand(count, -1).reshape(-1), flat)
    return tuple(each.reshape(vector.shape) for each, vector in zip(products, vectors, strict=True))


def _over_batches(function: Callable[..., Any], info: Any, in_dims: Sequence[Any], *arguments: Any) -> Any:
    """Apply a function to the items of all batches of vmap at once, and tell vmap where its dimension is: at 0."""
    flat = []
    for argument, dims in zip(arguments, in_dims, strict=True):
        if isinstance(argument, Tensor):
            argument = _in_front(argument, dims, info.batch_size)
        elif isinstance(argument, list | tuple):
            argument = [_in_front(each, dim, info.batch_size) for each, dim in zip(argument, dims, strict=True)]
        flat.append(argument)
    result = function(*flat)
    if isinstance(result, Tensor):
        return result.unflatten(0, (info.batch_size, -1)), 0
    return type(result)(each.unflatten(0, (info.batch_size, -1)) for each in result), type(result)([0] * len(result))


def _in_front(tensor: Tensor, dim: int | None, size: int) -> Tensor:
    """Make the dimension of vmap part of the first one: ``(V * B, ...)``; None expands."""
    tensor = tensor.expand(size, *tensor.shape) if dim is None else tensor.movedim(dim, 0)
    return tensor.flatten(0, 1)


def _log_partition(parts: Sequence[Tensor], lengths: Tensor, trees: str, single_root: bool) -> Tensor:
    if forward_ad._current_level >= 0 or (torch.is_grad_enabled() and any(part.requires_grad for part in parts)):
        return LogPartition.apply(lengths, trees, single_root, *parts)[0]
    with below_autograd():
        return OPERATORS.log_partition(parts, lengths, trees, single_root)


def _sums(parts: Sequence[Tensor], lengths: Tensor, trees: str, single_root: bool) -> list[Tensor]:
    return [*Sums.apply(lengths, trees, single_root, *parts)]


def _hessian_vector_product(
    parts: Sequence[Tensor], vectors: Sequence[Tensor], lengths: Tensor, trees: str, single_root: bool
) -> list[Tensor]:
    return [*Product.apply(lengths, trees, single_root, *last_derivative(parts), *vectors)]


def _constant(operator: Any) -> Callable[..., Any]:
    def call(*arguments: Any) -> Any:
        with below_autograd():
            return operator(*arguments)

    return call


def _register() -> None:
    LIBRARY.impl("log_partition", _log_partition, "Autograd")
    LIBRARY.impl("sums", _sums, "Autograd")
    LIBRARY.impl("hessian_vector_product", _hessian_vector_product, "Autograd")
    for name in ("log_marginals", "best_trees", "are_trees", "sample"):
        operator = getattr(OPERATORS, name).default
        LIBRARY.impl(name, _constant(operator), "Autograd")
        torch.library.register_vmap(f"treeparse::{name}", partial(_over_batches, operator), lib=LIBRARY)


if ARE_NEW:
    _register()
