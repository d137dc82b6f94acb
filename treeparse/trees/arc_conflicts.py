"""Tests for trees with two arcs in conflict: arcs that cross, or two arcs from the root.

Such a tree is outside a projective or single-root family. A distribution has a tree with two arcs if the second is
still possible once the heads that compete with the first are forbidden; log marginals are -inf exactly where no tree
has the arc.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from treeparse.trees.families import Family
from treeparse.trees.parts import Parts

Conflict = Callable[[int, int, Tensor, Tensor], Tensor]  # head and dependent of one arc, then of others


def cross(head: int, dependent: int, heads: Tensor, dependents: Tensor) -> Tensor:
    """Tell which arcs cross the first one."""
    first, last = min(head, dependent), max(head, dependent)
    left, right = torch.minimum(heads, dependents), torch.maximum(heads, dependents)
    begins_inside, ends_inside = (first < left) & (left < last), (first < right) & (right < last)
    return (begins_inside & (right > last)) | (ends_inside & (left < first))


def are_both_of_root(head: int, dependent: int, heads: Tensor, dependents: Tensor) -> Tensor:
    """Tell which arcs lead from node 0 to another word, as the first one does."""
    return (heads == 0) & (dependents != dependent) if head == 0 else torch.zeros_like(heads, dtype=torch.bool)


def allow_conflict(family: Family, parts: Parts, lengths: Tensor, possible: Tensor, conflict: Conflict) -> Tensor:
    """Tell which items ``(B,)`` have a tree with two arcs in conflict; ``possible`` are the arcs of all trees.

    Each arc with a possible arc in conflict takes O(n^3), until one of them is in a tree with such an arc.
    """
    items = [
        _item_allows(family, parts.of_items(slice(item, item + 1)), lengths[item : item + 1], arcs, conflict)
        for item, arcs in enumerate(possible)
    ]
    return torch.tensor(items, device=possible.device, dtype=torch.bool)


def descendants(heads: Tensor) -> Tensor:
    """Tell which words are below which nodes of trees ``(B, n+1)``: ``(B, n+1, n+1)`` bool [node, word].

    A node is below itself.
    """
    nodes = heads.shape[-1]
    below = torch.arange(nodes, device=heads.device).unsqueeze(-1) == heads.unsqueeze(-2)
    below = below.float() + torch.eye(nodes, device=heads.device)
    for _ in range((nodes - 1).bit_length()):  # each step doubles the length of the paths
        below = ((below @ below) > 0).float()
    return below > 0


def has_nonprojective_arc(heads: Tensor) -> Tensor:
    """Tell which words of trees, or of parts of trees, ``(B, n+1)`` have an arc that no projective tree may have.

    An unknown head is -1, as is padding. The known arcs fall into connected fragments; a tree whose heads are all known
    is one. An arc is non-projective if a word below it is no descendant of its head, and is in the head's fragment or
    in one that reaches beyond the arc. Without the heads of these words, some projective tree has all known arcs; with
    them, none has. Causes a device sync.
    """
    found = torch.zeros_like(heads, dtype=torch.bool)
    rows = (_is_part_of_tree(heads) | _has_crossing_arcs(heads)).nonzero().squeeze(-1)  # few; the others have none
    if len(rows):
        found[rows] = _has_nonprojective_arc(heads[rows])
    return found


def _is_part_of_tree(heads: Tensor) -> Tensor:
    """Tell which trees ``(B, n+1)`` lack the head of a word that has dependents, or precedes a word with a head."""
    nodes = torch.arange(heads.shape[-1], device=heads.device)
    last = torch.where(heads >= 0, torch.maximum(nodes, heads), 0).amax(-1)
    return (heads >= 0).sum(-1) < last


def _has_crossing_arcs(heads: Tensor) -> Tensor:
    """Tell which trees ``(B, n+1)`` have two arcs that cross: the complete ones that are not projective."""
    nodes = torch.arange(heads.shape[-1], device=heads.device)
    known = heads >= 0
    first, last = torch.where(known, torch.minimum(heads, nodes), 0), torch.where(known, torch.maximum(heads, nodes), 0)
    begins_inside = (first.unsqueeze(-1) < first.unsqueeze(-2)) & (first.unsqueeze(-2) < last.unsqueeze(-1))
    return (begins_inside & (last.unsqueeze(-1) < last.unsqueeze(-2))).flatten(1).any(-1)


def _has_nonprojective_arc(heads: Tensor) -> Tensor:
    nodes = heads.shape[-1]
    node = torch.arange(nodes, device=heads.device)
    is_descendant = descendants(heads)  # [node, word]
    related = (is_descendant.float().mT @ is_descendant.float()) > 0  # [word, word]: one fragment has both
    first_related = torch.where(related, node, nodes).amin(-1).unsqueeze(-2)  # of a fragment, by its words
    last_related = torch.where(related, node, -1).amax(-1).unsqueeze(-2)
    head = heads.clamp_min(0)
    first, last = torch.minimum(head, node).unsqueeze(-1), torch.maximum(head, node).unsqueeze(-1)  # [dependent, word]
    of_head = head.unsqueeze(-1).expand(-1, -1, nodes)
    is_stranger = ~is_descendant.gather(-2, of_head)
    reaches_beyond = (first_related < first) | (last_related > last)
    conflicts = is_stranger & (first < node) & (node < last) & (related.gather(-2, of_head) | reaches_beyond)
    return (heads >= 0) & conflicts.any(-1)


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
