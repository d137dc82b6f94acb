"""The operators ``torch.ops.treeparse``: functions of the scores of parts, lengths, and the family's name.

Each has an implementation by the family of the tensors' device, and a fake one that knows the shapes of results. Scores
are those of ``Family``: one tensor ``(B, ...)`` a kind of part, arcs in float64 first; lengths are int64 ``(B,)``.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from treeparse.errors import TreeparseError
from treeparse.trees import families
from treeparse.trees.families import Family
from treeparse.trees.families.nonprojective import Nonprojective, NonprojectiveInTorch
from treeparse.trees.families.projective import Projective
from treeparse.trees.families.second_order import NonprojectiveSiblings, ProjectiveGrandparents, ProjectiveSiblings
from treeparse.trees.operators.look_ups import ARE_NEW as ARE_NEW
from treeparse.trees.operators.look_ups import LIBRARY as LIBRARY
from treeparse.trees.operators.look_ups import OPERATORS as OPERATORS
from treeparse.trees.operators.look_ups import define

TREES = "str trees, bool single_root"

_MAKERS: Mapping[str, Callable[[torch.device, bool], Family]] = {
    "nonprojective": lambda device, single_root: families.nonprojective(device, single_root=single_root),
    "nonprojective_in_torch": lambda device, single_root: NonprojectiveInTorch(single_root),
    "projective": lambda device, single_root: families.projective(device, single_root=single_root),
    "siblings": lambda device, single_root: ProjectiveSiblings(single_root),
    "second_order": lambda device, single_root: ProjectiveGrandparents(single_root),
}
_NAMES: Mapping[type[Family], str] = {
    NonprojectiveInTorch: "nonprojective_in_torch",
    Nonprojective: "nonprojective",
    Projective: "projective",
    ProjectiveSiblings: "siblings",
    ProjectiveGrandparents: "second_order",
}
LIMITED = "nonprojective_siblings"  # a limit follows after a colon, unless there is none


def name_of(family: Family) -> str:
    """Return the name by which operators know a family; it does not depend on the device.

    Raises:
        TreeparseError: operators know none such.
    """
    if isinstance(family, NonprojectiveSiblings):
        return LIMITED if family.limit is None else f"{LIMITED}:{family.limit}"
    for kind, name in _NAMES.items():
        if isinstance(family, kind):
            return name
    raise TreeparseError(
        f"There are no operators for {family.name} trees, so that neither torch.compile nor torch.func can see through "
        "them: take the distribution out of what is compiled or transformed."
    )


def _family(trees: str, single_root: bool, device: torch.device) -> Family:
    name, _, limit = trees.partition(":")
    if name == LIMITED:
        return NonprojectiveSiblings(single_root, int(limit) if limit else None)
    return _MAKERS[name](device, single_root)


def _log_partition(parts: Sequence[Tensor], lengths: Tensor, trees: str, single_root: bool) -> Tensor:
    return _family(trees, single_root, lengths.device).log_partition(tuple(parts), lengths)


def _sums(parts: Sequence[Tensor], lengths: Tensor, trees: str, single_root: bool) -> list[Tensor]:
    log_z, marginals = _family(trees, single_root, lengths.device).log_partition_and_marginals(tuple(parts), lengths)
    return [log_z, *marginals]


def _hessian_vector_product(
    parts: Sequence[Tensor], vectors: Sequence[Tensor], lengths: Tensor, trees: str, single_root: bool
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
    parts: Sequence[Tensor],
    lengths: Tensor,
    seeds: Tensor,
    count: int,
    method: Any,
    trees: str,
    single_root: bool,
) -> Tensor:
    return _family(trees, single_root, lengths.device).sample(tuple(parts), lengths, seeds, count, method)


def _numbers(parts: Sequence[Tensor], *others: Any) -> Tensor:
    return parts[0].new_empty(parts[0].shape[0])


def _like_parts(parts: Sequence[Tensor], *others: Any) -> list[Tensor]:
    return [part.new_empty(part.shape) for part in parts]


def _heads(parts: Sequence[Tensor], lengths: Tensor, *others: Any) -> Tensor:
    return lengths.new_empty(parts[0].shape[:2])


if ARE_NEW:
    define(f"log_partition(Tensor[] parts, Tensor lengths, {TREES}) -> Tensor", _log_partition, _numbers)
    define(
        f"sums(Tensor[] parts, Tensor lengths, {TREES}) -> Tensor[]",
        _sums,
        lambda parts, *others: [_numbers(parts), *_like_parts(parts)],
    )
    define(
        f"hessian_vector_product(Tensor[] parts, Tensor[] vectors, Tensor lengths, {TREES}) -> Tensor[]",
        _hessian_vector_product,
        _like_parts,
    )
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
