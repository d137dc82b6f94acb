"""The kinds of part besides arcs that families of trees share."""

import torch
from torch import Tensor

from treeparse.trees.parts import PartKind


class Siblings(PartKind):
    """``scores[..., head, dependent, sibling]``: the next dependent of the head between the two, or the head for none.

    Dependents on either side of a head are separate: every one has the next one towards the head as its sibling.
    """

    name = "siblings"

    def shape(self, nodes: int) -> tuple[int, ...]:
        return nodes, nodes, nodes

    def mask(self, lengths: Tensor, nodes: int) -> Tensor:
        head, dependent, sibling = _nodes_of_triples(nodes, lengths.device)
        is_between = (torch.minimum(head, dependent) < sibling) & (sibling < torch.maximum(head, dependent))
        is_part = (dependent > 0) & (head != dependent) & (is_between | (sibling == head))
        return is_part & (torch.maximum(head, dependent) <= lengths[:, None, None, None])

    def of_trees(self, heads: Tensor, lengths: Tensor) -> Tensor:
        nodes = heads.shape[-1]
        node = torch.arange(nodes, device=heads.device)
        is_word = (node > 0) & (node <= lengths.unsqueeze(-1))
        heads = torch.where(is_word, heads, -1)
        head, dependent = heads.unsqueeze(-1), node.unsqueeze(-1)
        has_same_head = (head == heads.unsqueeze(-2)) & (head >= 0)
        before = has_same_head & (node > head) & (node < dependent)
        after = has_same_head & (node < head) & (node > dependent)
        last_before = torch.where(before, node, -1).amax(-1)
        first_after = torch.where(after, node, nodes).amin(-1)
        sibling = torch.where(last_before >= 0, last_before, torch.where(first_after < nodes, first_after, heads))
        return torch.where(is_word, (heads * nodes + node) * nodes + sibling, -1)


class Grandparents(PartKind):
    """``scores[..., head, dependent, grandparent]``: the head of the head, of projective trees; node 0 has none."""

    name = "grandparents"

    def shape(self, nodes: int) -> tuple[int, ...]:
        return nodes, nodes, nodes

    def mask(self, lengths: Tensor, nodes: int) -> Tensor:
        head, dependent, grandparent = _nodes_of_triples(nodes, lengths.device)
        first, last = torch.minimum(head, dependent), torch.maximum(head, dependent)
        is_part = (first > 0) & (head != dependent) & ((grandparent < first) | (grandparent > last))
        return is_part & (torch.maximum(last, grandparent) <= lengths[:, None, None, None])

    def of_trees(self, heads: Tensor, lengths: Tensor) -> Tensor:
        nodes = heads.shape[-1]
        node = torch.arange(nodes, device=heads.device)
        is_part = (node > 0) & (node <= lengths.unsqueeze(-1)) & (heads > 0)
        grandparents = heads.gather(-1, heads.clamp(0, nodes - 1))
        return torch.where(is_part & (grandparents >= 0), (heads * nodes + node) * nodes + grandparents, -1)


def _nodes_of_triples(nodes: int, device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
    """Return the nodes of every triple, ``(n+1, 1, 1)``, ``(n+1, 1)`` and ``(n+1,)``."""
    node = torch.arange(nodes, device=device)
    return node[:, None, None], node[:, None], node


SIBLINGS, GRANDPARENTS = Siblings(), Grandparents()  # one object each, so that families are seen to share them
