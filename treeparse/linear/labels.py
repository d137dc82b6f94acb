"""Log probabilities of labels given their arcs, by hashed features, computed on demand."""

from collections.abc import Hashable

import numpy as np
import torch
from torch import Size, Tensor

from treeparse.kernels.arrays import IntArray
from treeparse.kernels.linear.features import Hashes, Templates
from treeparse.kernels.linear.scores import score_labels
from treeparse.kernels.linear.tables import WeightTable
from treeparse.trees.labels.arc_rows import ArcRows
from treeparse.trees.labels.root_rule import with_root_rule

AT_ONCE = 2**16  # arcs whose labels are scored at once


class LinearLabels:
    """A ``treeparse.trees.LabelSource`` without gradients; arcs from the root alone have the label "root".

    Args:
        nodes: ``(B, n+1, A)`` the hashed attributes of nodes.
        lengths: ``(B,)``.
        templates: the feature templates of labels.
        table: the weights of the features of each label.
        root_label: the index of the label of arcs from the root, -1 if no label is reserved for them.
        device: the device of the results.
    """

    nodes: Hashes
    lengths: IntArray
    templates: Templates
    table: WeightTable
    root_label: int
    device: torch.device

    bound: float | None = 0.0
    dtype: torch.dtype = torch.float32
    requires_grad = False
    resolution: float = torch.finfo(torch.float32).eps

    def __init__(
        self,
        nodes: Hashes,
        lengths: IntArray,
        templates: Templates,
        table: WeightTable,
        root_label: int,
        device: torch.device,
    ) -> None:
        self.nodes, self.lengths, self.templates, self.table = nodes, lengths, templates, table
        self.root_label, self.count, self.device = root_label, table.values.shape[1], device
        self.shape: Size = Size((*nodes.shape[:2], nodes.shape[1], self.count))
        self.support: Hashable = ("root", root_label, self.count)
        self._cache = ArcRows(self.shape, self._look_up, AT_ONCE)

    def from_heads(self, first: int, last: int) -> Tensor:
        items, size = self.shape[:2]
        item, head, dependent = (each.flatten() for each in np.indices((items, last - first, size)))
        is_arc = (dependent > 0) & (np.maximum(head + first, dependent) <= self.lengths[item])
        scores = np.zeros((items * (last - first) * size, self.count), np.float32)
        arcs = np.stack([item, head + first, dependent], -1)[is_arc]
        scores[is_arc] = score_labels(self.nodes, self.lengths, self.templates, self.table, arcs)
        from_root = torch.arange(first, last).reshape(1, -1, 1) == 0
        values = torch.from_numpy(scores).reshape(items, last - first, size, -1)
        return self._log_probs(values, from_root).to(self.device)

    def among(self, first: int, last: int, item: Tensor, head: Tensor, dependent: Tensor) -> Tensor:
        return self.at(item, head, dependent)

    def at(self, item: Tensor, head: Tensor, dependent: Tensor) -> Tensor:
        return self._cache.at(item.cpu(), head.cpu(), dependent.cpu()).to(self.device)

    def at_labels(self, item: Tensor, head: Tensor, dependent: Tensor, label: Tensor) -> Tensor:
        return self.at(item, head, dependent).gather(-1, label.unsqueeze(-1)).squeeze(-1)

    def log_sums(self, arcs: Tensor) -> Tensor:
        """Return zeros, because the label probabilities of every arc sum to 1."""
        return torch.zeros(arcs.shape, dtype=torch.float64, device=self.device)

    def of_items(self, items: Tensor) -> "LinearLabels":
        chosen = items.cpu().numpy()
        given = self.templates, self.table, self.root_label, self.device
        return LinearLabels(self.nodes[chosen], self.lengths[chosen], *given)

    def _look_up(self, item: Tensor, head: Tensor, dependent: Tensor) -> Tensor:
        arcs = torch.stack([item, head, dependent], -1).numpy()
        scores = score_labels(self.nodes, self.lengths, self.templates, self.table, arcs)
        return self._log_probs(torch.from_numpy(scores), head == 0)

    def _log_probs(self, scores: Tensor, from_root: Tensor) -> Tensor:
        """Return log probabilities from scores ``(..., L)`` of arcs; ``from_root`` marks the arcs from the root."""
        return with_root_rule(scores, from_root, self.root_label).log_softmax(-1)
