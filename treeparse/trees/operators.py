"""Sums, best trees and samples as operators of torch, for programs that torch traces instead of running them.

``torch.compile``, ``torch.export`` and fake tensors see an operator as one step with known shapes. Plain tensors
(``treeparse.batch.is_plain``) go to the family itself, which is faster.

What torch cannot do by itself, so that no operator can, with the issue of pytorch/pytorch or the setting:

| torch lacks | instead | issue |
|:--|:--|:--|
| forward mode over forward mode (``jacfwd`` of ``jacfwd``): it gives 0, so it is refused | ``hessian`` | #197867 |
| ``torch.func`` in a compiled program: ``compile(grad(f))`` | compile ``f``, call ``backward`` | #174067 |
| ``torch.autograd.grad`` in a compiled program | ``backward`` outside | ``trace_autograd_ops`` |
| a ``torch.Generator`` in a compiled program | ``torch.manual_seed`` before | #88576 |
| ``register_autograd`` under ``torch.func`` | the functions in ``treeparse.trees.sums`` | #168393, #179652 |

Lists and draws without replacement (``topk``, ``best_first``, ``enumerate_support``, ``sample_without_replacement``)
are not traced either: how many trees there are depends on the scores' values.

The operators ``torch.ops.treeparse`` are functions of the scores of parts, lengths, and the name of the family. Scores
are as for ``Family``: one tensor ``(B, ...)`` a kind of part, arcs in float64 first; lengths are int64 ``(B,)``.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from treeparse.errors import TreeparseError
from treeparse.trees.families import Family
from treeparse.trees.look_ups import ARE_NEW, LIBRARY, OPERATORS, define

below_autograd = torch._C._AutoDispatchBelowAutograd
TREES = "str trees, bool single_root"
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


def _family(trees: str, single_root: bool, device: torch.device) -> Family:
    name, _, option = trees.partition(":")
    return MAKERS[name](device, single_root, option)


def call(name: str, family: Family, first: Sequence[Tensor] | Tensor, *others: Any) -> Any:
    """Call the operator for a method of a family; its results are constants for autograd."""
    first = first if isinstance(first, Tensor) else [part.detach() for part in first]
    return getattr(OPERATORS, name)(first, *others, name_of(family), family.single_root)


def over_batches(function: Callable[..., Any], info: Any, in_dims: Sequence[Any], *arguments: Any) -> Any:
    """Apply a function to the items of all batches of vmap at once, and tell vmap where its dimension is: at 0."""
    flat = []
    for argument, dims in zip(arguments, in_dims, strict=True):
        if isinstance(argument, Tensor):
            argument = _in_front(argument, dims, info.batch_size)
        elif isinstance(argument, list):
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
    return _family(trees, single_root, lengths.device).log_partition(tuple(parts), lengths)


def _sums(parts: Sequence[Tensor], lengths: Tensor, trees: str, single_root: bool) -> list[Tensor]:
    return [*_family(trees, single_root, lengths.device).sums(tuple(parts), lengths)]


def _hessian_vector_product(
    parts: Sequence[Tensor], lengths: Tensor, vectors: Sequence[Tensor], trees: str, single_root: bool
) -> list[Tensor]:
    family = _family(trees, single_root, lengths.device)
    return [*family.hessian_vector_product(tuple(parts), lengths, tuple(vectors))]


def _log_marginals(parts: Sequence[Tensor], lengths: Tensor, trees: str, single_root: bool) -> list[Tensor]:
    return [*_family(trees, single_root, lengths.device).log_marginals(tuple(parts), lengths)]


def _best_trees(parts: Sequence[Tensor], lengths: Tensor, trees: str, single_root: bool) -> Tensor:
    return _family(trees, single_root, lengths.device).best_trees(tuple(parts), lengths)


def _are_trees(heads: Tensor, lengths: Tensor, trees: str, single_root: bool) -> Tensor:
    return _family(trees, single_root, lengths.device).are_trees(heads, lengths)


def _sample(
    parts: Sequence[Tensor], lengths: Tensor, seeds: Tensor, count: int, method: Any, trees: str, single_root: bool
) -> Tensor:
    return _family(trees, single_root, lengths.device).sample(tuple(parts), lengths, seeds, count, method)


def _numbers(parts: Sequence[Tensor], *others: Any) -> Tensor:
    return parts[0].new_empty(parts[0].shape[0])


def _like_parts(parts: Sequence[Tensor], *others: Any) -> list[Tensor]:
    return [part.new_empty(part.shape) for part in parts]


def _heads(parts: Sequence[Tensor], lengths: Tensor, *others: Any) -> Tensor:
    return lengths.new_empty(parts[0].shape[:2])


def _constant(operator: Any) -> Callable[..., Any]:
    def call(*arguments: Any) -> Any:
        with below_autograd():
            return operator(*arguments)

    return call


def _define_constants() -> None:
    """Define the operators without a derivative."""
    define(f"log_marginals(Tensor[] parts, Tensor lengths, {TREES}) -> Tensor[]", _log_marginals, _like_parts)
    define(f"best_trees(Tensor[] parts, Tensor lengths, {TREES}) -> Tensor", _best_trees, _heads)
    define(
        f"are_trees(Tensor heads, Tensor lengths, {TREES}) -> Tensor",
        _are_trees,
        lambda heads, *others: heads.new_empty(heads.shape[0], dtype=torch.bool),
    )
    define(
        f"sample(Tensor[] parts, Tensor lengths, Tensor seeds, SymInt count, str? method, {TREES}) -> Tensor",
        _sample,
        lambda parts, lengths, seeds, count, *others: lengths.new_empty(len(lengths), count, parts[0].shape[1]),
    )
    for name in ("log_marginals", "best_trees", "are_trees", "sample"):
        operator = getattr(OPERATORS, name).default
        LIBRARY.impl(name, _constant(operator), "Autograd")
        torch.library.register_vmap(f"treeparse::{name}", partial(over_batches, operator), lib=LIBRARY)


if ARE_NEW:
    define(f"log_partition(Tensor[] parts, Tensor lengths, {TREES}) -> Tensor", _log_partition, _numbers)
    define(
        f"sums(Tensor[] parts, Tensor lengths, {TREES}) -> Tensor[]",
        _sums,
        lambda parts, *others: [_numbers(parts), *_like_parts(parts)],
    )
    define(
        f"hessian_vector_product(Tensor[] parts, Tensor lengths, Tensor[] vectors, {TREES}) -> Tensor[]",
        _hessian_vector_product,
        _like_parts,
    )
    _define_constants()
