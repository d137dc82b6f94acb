"""Whether a distribution allows trees that are outside the family of another one: with crossing arcs, or several roots.

Either shows in two arcs of the tree. Two arcs are in one tree if the second is still possible once the heads that
compete with the first are forbidden; log marginals tell exactly, being -inf where no tree has the arc.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from treeparse.trees.base import TreeCRF

Conflict = Callable[[int, int, Tensor, Tensor], Tensor]  # of an arc with others, given by their heads and dependents


def allows_crossing_arcs(p: "TreeCRF") -> Tensor:
    """Which items ``(B,)`` bool have a tree that is not projective."""
    return _allows_two_arcs(p, _cross)


def allows_several_roots(p: "TreeCRF") -> Tensor:
    """Which items ``(B,)`` bool have a tree in which several words hang from node 0."""
    return _allows_two_arcs(p, _are_both_of_root)


def _cross(head: int, dependent: int, heads: Tensor, dependents: Tensor) -> Tensor:
    first, last = min(head, dependent), max(head, dependent)
    left, right = torch.minimum(heads, dependents), torch.maximum(heads, dependents)
    begins_inside, ends_inside = (first < left) & (left < last), (first < right) & (right < last)
    return (begins_inside & (right > last)) | (ends_inside & (left < first))


def _are_both_of_root(head: int, dependent: int, heads: Tensor, dependents: Tensor) -> Tensor:
    return (heads == 0) & (dependents != dependent) if head == 0 else torch.zeros_like(heads, dtype=torch.bool)


def _allows_two_arcs(p: "TreeCRF", conflict: Conflict) -> Tensor:
    """Which items ``(B,)`` bool have a tree with two arcs in conflict.

    This takes O(n^3) an arc that is in conflict with a possible one, up to the first that finds a tree.
    """
    possible = p._log_marginals > -torch.inf
    items = range(len(possible))
    return torch.tensor([_item_allows(p, item, possible[item], conflict) for item in items], device=possible.device)


def _item_allows(p: "TreeCRF", item: int, possible: Tensor, conflict: Conflict) -> bool:
    scores, lengths = (part[item : item + 1].detach() for part in p._flat)
    heads, dependents = possible.nonzero(as_tuple=True)
    for head, dependent in zip(heads.tolist(), dependents.tolist(), strict=True):
        others = conflict(head, dependent, heads, dependents)
        if bool(others.any()):
            given = scores.clone()
            given[0, :, dependent] = -torch.inf
            given[0, head, dependent] = scores[0, head, dependent]
            logs = p._log_marginals_of(given, lengths)[0]
            if bool((logs[heads[others], dependents[others]] > -torch.inf).any()):
                return True
    return False
