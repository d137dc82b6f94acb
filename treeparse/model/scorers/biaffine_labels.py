"""Log probabilities of labels given their arcs, computed on demand from the vectors of an arc's two ends."""

from collections.abc import Hashable
from dataclasses import replace

import torch
from torch import Size, Tensor

from treeparse.nn.biaffine import LabelVectors, PairTerms
from treeparse.trees.labels.arc_rows import ArcRows
from treeparse.trees.labels.root_rule import with_root_rule

MIXED = 2**24  # most numbers in memory at once when labels are scored arc by arc
TABLE = 2**24  # most numbers of all arcs that are scored at once with gradients


class BiaffineLabels:
    """A ``treeparse.trees.LabelSource``; arcs from the root have the label "root", and no other arcs have it.

    The source caches results: without gradients, on the CPU, the label scores of each arc that was read; with gradients
    the terms of all arcs, after they were computed.

    Args:
        vectors: the label vectors of a batch.
        root_label: index of the label of arcs from the root, -1 if no label is reserved for them.
    """

    vectors: LabelVectors
    root_label: int
    dtype: torch.dtype
    device: torch.device

    bound: float | None = 0.0
    resolution = torch.finfo(torch.float32).eps

    def __init__(self, vectors: LabelVectors, root_label: int) -> None:
        self.vectors, self.root_label = vectors, root_label
        self.count: int = vectors.biaffine.heads.out_features
        items, nodes, _ = vectors.heads.shape
        self.shape: Size = Size((items, nodes, nodes, self.count))
        self.dtype, self.device = vectors.heads.dtype, vectors.heads.device
        self.requires_grad: bool = torch.is_grad_enabled() and vectors.biaffine.weight.requires_grad
        self.support: Hashable = ("root", root_label, self.count)
        self._terms: PairTerms | None = None  # of all arcs, with gradients
        self._cache = ArcRows(self.shape, self._look_up, self._step)

    def from_heads(self, first: int, last: int) -> Tensor:
        with torch.set_grad_enabled(self.requires_grad and torch.is_grad_enabled()):
            values = self.vectors.scores_from(first, last)
            from_root = torch.arange(first, last, device=self.device).reshape(1, -1, 1) == 0
            return self._log_probs(values, from_root)

    def among(self, first: int, last: int, item: Tensor, head: Tensor, dependent: Tensor) -> Tensor:
        with torch.set_grad_enabled(self.requires_grad and torch.is_grad_enabled()):
            return self._possible(self._terms_from(first, last).at(item, head - first, dependent), head == 0)

    def at(self, item: Tensor, head: Tensor, dependent: Tensor) -> Tensor:
        if self.requires_grad:
            many = len(item) > self.shape[0] * self.shape[1] and self.shape.numel() <= TABLE
            if (
                many or self._terms is not None
            ):  # many: for several trees a sentence, one product for all arcs is faster
                return self.among(0, self.shape[1], item, head, dependent).log_softmax(-1)
            return self._look_up(item, head, dependent)
        with torch.no_grad():
            if self.device.type != "cpu":  # because finding the new arcs would sync
                return torch.cat([*map(self._look_up, *(part.split(self._step) for part in (item, head, dependent)))])
            return self._cache.at(item, head, dependent)

    def at_labels(self, item: Tensor, head: Tensor, dependent: Tensor, label: Tensor) -> Tensor:
        return self.at(item, head, dependent).gather(-1, label.unsqueeze(-1)).squeeze(-1)

    def log_sums(self, arcs: Tensor) -> Tensor:
        """Return zeros, because the label probabilities of every arc sum to 1."""
        return torch.zeros((), dtype=torch.float64, device=self.device).expand(arcs.shape)

    def of_items(self, items: Tensor) -> "BiaffineLabels":
        vectors = replace(self.vectors, heads=self.vectors.heads[items], dependents=self.vectors.dependents[items])
        with torch.set_grad_enabled(self.requires_grad):
            return BiaffineLabels(vectors, self.root_label)

    def _terms_from(self, first: int, last: int) -> PairTerms:
        """Return the terms of all arcs from heads ``first`` to ``last - 1``; cache those of all heads."""
        if self._terms is not None and (first, last) == (0, self.shape[1]):
            return self._terms
        terms = self.vectors.terms(first, last)
        if terms.bilinear.requires_grad and (first, last) == (0, self.shape[1]):
            self._terms = terms
        return terms

    def _log_probs(self, values: Tensor, from_root: Tensor) -> Tensor:
        """Return log probabilities from scores ``(..., L)`` of arcs; ``from_root`` marks the arcs from the root."""
        return self._possible(values, from_root).log_softmax(-1)

    def _possible(self, values: Tensor, from_root: Tensor) -> Tensor:
        """Return the scores, with -inf where the rule on "root" forbids a label."""
        return with_root_rule(values, from_root, self.root_label)

    @property
    def _step(self) -> int:
        """The number of arcs to score at once."""
        return max(1, MIXED // (self.count * self.vectors.heads.shape[-1]))

    def _look_up(self, item: Tensor, head: Tensor, dependent: Tensor) -> Tensor:
        return self._log_probs(self.vectors.scores_at(item, head, dependent), head == 0)
