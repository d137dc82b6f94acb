"""Trilinear scores of parts of three nodes, such as a head, a dependent and its sibling."""

import torch
from torch import Tensor, nn

from .biaffine import exact_product


class PartTrilinear(nn.Module):
    """Score parts: score(head, dependent, other) = sum_r head_r dependent_r (W other)_r, a trilinear form of low rank.

    For a dependent without a sibling the other node is the head itself.
    """

    def __init__(self, size: int) -> None:
        super().__init__()
        self.weight: nn.Parameter = nn.Parameter(torch.zeros(size, size))

    def forward(self, heads: Tensor, dependents: Tensor, others: Tensor, arcs: Tensor | None = None) -> Tensor:
        """Score vectors of nodes in three roles (B, T, size) as parts (B, T, T, T), head first, other node last.

        With ``arcs`` (B, T, T) bool, the parts of other arcs score 0. On a GPU all parts are scored, because it scores
        them faster than it finds the arcs.
        """
        nodes, dtype = heads.shape[1], self.weight.dtype
        third = exact_product(others, self.weight.T, dtype).transpose(1, 2)
        with torch.autocast(heads.device.type, enabled=False):  # for arcs as for parts: bfloat16 has too few digits
            heads, dependents = heads.to(dtype), dependents.to(dtype)
            if arcs is not None and arcs.device.type == "cpu":
                return _of_arcs(arcs, heads, dependents, third)
            pairs = heads.unsqueeze(2) * dependents.unsqueeze(1)
            return (pairs.flatten(1, 2) @ third).unflatten(1, (nodes, nodes))


def _of_arcs(arcs: Tensor, heads: Tensor, dependents: Tensor, third: Tensor) -> Tensor:
    """Score the parts of some arcs; ``third`` are the vectors of other nodes (B, size, T)."""
    items, nodes, size = heads.shape
    rows = _rows_by_item(arcs)
    of_heads = heads.flatten(0, 1).index_select(0, rows // nodes)
    of_dependents = dependents.flatten(0, 1).index_select(0, rows // nodes**2 * nodes + rows % nodes)
    scores = ((of_heads * of_dependents).view(items, -1, size) @ third).flatten(0, 1)
    return scores.new_zeros(items * nodes**2, nodes).index_copy_(0, rows, scores).view(items, nodes, nodes, nodes)


def _rows_by_item(arcs: Tensor) -> Tensor:
    """Return the indices into flattened arcs (B, T, T) of each item's arcs, one item after the other.

    All items have as many indices as the one with the most arcs, those of [0, 0], which is no arc, after their own.
    """
    items, cells = len(arcs), arcs.shape[1:].numel()
    arcs = arcs.flatten(1)
    counts = arcs.sum(1)
    most = int(counts.max())
    first = torch.arange(items)
    rows = (cells * first).repeat_interleave(most)
    places = torch.arange(int(counts.sum())) + (most * first - counts.cumsum(0) + counts).repeat_interleave(counts)
    rows[places] = arcs.flatten().nonzero().squeeze(-1)
    return rows
