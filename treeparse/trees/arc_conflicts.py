"""Whether a distribution allows trees that are outside the family of another one: with crossing arcs, or several roots.

Either shows in two arcs of the tree. Two arcs are in one tree if the second is still possible once the heads that
compete with the first are forbidden; log marginals tell exactly, being -inf where no tree has the arc.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from treeparse.trees.families import Family
from treeparse.trees.parts import Parts

Conflict = Callable[[int, int, Tensor, Tensor], Tensor]  # of an arc with others, given by their heads and dependents


def allows_crossing_arcs(family: Family, parts: Parts, lengths: Tensor, possible: Tensor) -> Tensor:
    """Which items ``(B,)`` bool have a tree that is not projective; ``possible`` says which arcs are in some tree."""
    return _allows_two_arcs(family, parts, lengths, possible, _cross)


def allows_several_roots(family: Family, parts: Parts, lengths: Tensor, possible: Tensor) -> Tensor:
    """Which items ``(B,)`` bool have a tree in which several words hang from node 0; arguments as above."""
    return _allows_two_arcs(family, parts, lengths, possible, _are_both_of_root)


def _cross(head: int, dependent: int, heads: Tensor, dependents: Tensor) -> Tensor:
    first, last = min(head, dependent), max(head, dependent)
    left, right = torch.minimum(heads, dependents), torch.maximum(heads, dependents)
    begins_inside, ends_inside = (first < left) & (left < last), (first < right) & (right < last)
    return (begins_inside & (right > last)) | (ends_inside & (left < first))


def _are_both_of_root(head: int, dependent: int, heads: Tensor, dependents: Tensor) -> Tensor:
    return (heads == 0) & (dependents != dependent) if head == 0 else torch.zeros_like(heads, dtype=torch.bool)


def _allows_two_arcs(family: Family, parts: Parts, lengths: Tensor, possible: Tensor, conflict: Conflict) -> Tensor:
    """Which items ``(B,)`` bool have a tree with two arcs in conflict.

    This takes O(n^3) an arc that is in conflict with a possible one, up to the first that finds a tree.
    """
    items = [
        _item_allows(family, parts.of_items(slice(item, item + 1)), lengths[item : item + 1], arcs, conflict)
        for item, arcs in enumerate(possible)
    ]
    return torch.tensor(items, device=possible.device, dtype=torch.bool)


def _item_allows(family: Family, parts: Parts, lengths: Tensor, possible: Tensor, conflict: Conflict) -> bool:
    heads, dependents = possible.nonzero(as_tuple=True)
    for head, dependent in zip(heads.tolist(), dependents.tolist(), strict=True):
        others = conflict(head, dependent, heads, dependents)
        if bool(others.any()):
            conditioned = parts.arcs.clone()
            conditioned[0, :, dependent] = -torch.inf
            conditioned[0, head, dependent] = parts.arcs[0, head, dependent]
            logs, *_ = family.log_marginals(parts.with_arcs(conditioned), lengths)
            if bool((logs[0, heads[others], dependents[others]] > -torch.inf).any()):
                return True
    return False
