"""Log probabilities of labels given their arcs, computed from the two ends of an arc when they are asked for."""

from dataclasses import replace

import torch
from torch import Size, Tensor

from treeparse.nn.biaffine import LabelVectors, PairTerms

MIXED = 2**24  # numbers held at once while labels are scored arc by arc
TABLE = 2**24  # numbers that are kept of arcs looked up


class BiaffineLabels:
    """A ``treeparse.trees.LabelSource``; the label "root" is for arcs from the root, and for no others.

    What was computed is kept for the next time: without gradients, on the CPU, what was looked up at an arc; with
    gradients the terms of all arcs, if they were asked for.

    Args:
        vectors: the label vectors of a batch.
        root_label: the label of arcs from the root, -1 if there is none.
    """

    bound = 0.0
    resolution = torch.finfo(torch.float32).eps

    def __init__(self, vectors: LabelVectors, root_label: int) -> None:
        self.vectors, self.root_label = vectors, root_label
        self.count = vectors.biaffine.heads.out_features
        items, nodes, _ = vectors.heads.shape
        self.shape = Size((items, nodes, nodes, self.count))
        self.dtype, self.device = vectors.heads.dtype, vectors.heads.device
        self.requires_grad = torch.is_grad_enabled() and vectors.biaffine.weight.requires_grad
        self.support = ("root", root_label, self.count)
        self._terms: PairTerms | None = None  # of all arcs, with gradients
        self._places: Tensor | None = None  # (B, n+1, n+1): the rows of arcs looked up, -1 for others
        self._rows = torch.empty(0, self.count, device=self.device)

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
            if many or self._terms is not None:  # many: several trees a sentence, all in one product is less work
                return self.among(0, self.shape[1], item, head, dependent).log_softmax(-1)
            return self._look_up(item, head, dependent)
        with torch.no_grad():
            if self.device.type != "cpu":  # which arcs are new, it would have to be asked
                return torch.cat([*map(self._look_up, *(part.split(self._step) for part in (item, head, dependent)))])
            return self._rows_of(item, head, dependent)

    def at_labels(self, item: Tensor, head: Tensor, dependent: Tensor, label: Tensor) -> Tensor:
        return self.at(item, head, dependent).gather(-1, label.unsqueeze(-1)).squeeze(-1)

    def log_sums(self, arcs: Tensor) -> Tensor:
        """Zeros: every arc's probabilities sum to 1."""
        return torch.zeros(arcs.shape, dtype=torch.float64, device=self.device)

    def of_items(self, items: Tensor) -> "BiaffineLabels":
        vectors = replace(self.vectors, heads=self.vectors.heads[items], dependents=self.vectors.dependents[items])
        with torch.set_grad_enabled(self.requires_grad):
            return BiaffineLabels(vectors, self.root_label)

    def _terms_from(self, first: int, last: int) -> PairTerms:
        """The terms of all arcs from the heads ``first`` to ``last - 1``; made once where these are all heads."""
        if self._terms is not None and (first, last) == (0, self.shape[1]):
            return self._terms
        terms = self.vectors.terms(first, last)
        if terms.bilinear.requires_grad and (first, last) == (0, self.shape[1]):
            self._terms = terms
        return terms

    def _log_probs(self, values: Tensor, from_root: Tensor) -> Tensor:
        """Log probabilities from scores ``(..., L)`` of arcs, which are from the root or not."""
        return self._possible(values, from_root).log_softmax(-1)

    def _possible(self, values: Tensor, from_root: Tensor) -> Tensor:
        """The scores, -inf where the rule on "root" forbids a label."""
        if self.root_label >= 0 and self.count > 1:
            is_root = torch.arange(self.count, device=self.device) == self.root_label
            values = values.masked_fill(is_root != from_root.unsqueeze(-1), -torch.inf)
        return values

    @property
    def _step(self) -> int:
        """How many arcs are looked up at once."""
        return max(1, MIXED // (self.count * self.vectors.heads.shape[-1]))

    def _look_up(self, item: Tensor, head: Tensor, dependent: Tensor) -> Tensor:
        return self._log_probs(self.vectors.scores_at(item, head, dependent), head == 0)

    def _rows_of(self, item: Tensor, head: Tensor, dependent: Tensor) -> Tensor:
        """Rows ``(A, L)`` of arcs; those that nobody asked for before are computed."""
        nodes = self.shape[1]
        if self._places is None or self._rows.numel() > TABLE:
            self._places = torch.full((self.shape[0] * nodes * nodes,), -1, device=self.device)
            self._rows = self._rows[:0]
        arcs = (item * nodes + head) * nodes + dependent
        new = arcs[self._places[arcs] < 0].unique()
        if len(new):
            rows = [
                self._look_up(part // (nodes * nodes), part // nodes % nodes, part % nodes)
                for part in new.split(self._step)
            ]
            numbers = len(self._rows) + torch.arange(len(new), device=self.device)
            self._places = self._places.index_put((new,), numbers)
            self._rows = torch.cat([self._rows.to(rows[0].dtype), *rows])
        return self._rows[self._places[arcs]]
