"""Distributions over labelled trees: any distribution over trees, with labels that are independent given the tree."""

from functools import cached_property
from typing import Any, Self

import torch
from torch import Tensor

from treeparse.core import TreeparseError
from treeparse.trees import label_sums
from treeparse.trees.base import TreeCRF
from treeparse.trees.checks import check_label_scores
from treeparse.trees.distribution import TreeDistribution
from treeparse.trees.expectations import power
from treeparse.trees.label_scores import LabelScores
from treeparse.trees.label_values import LabelValues

LabeledTree = tuple[Tensor, Tensor]


class LabeledCRF(TreeDistribution):
    """A distribution over pairs ``heads, labels``, whose score is that of the arcs plus that of their labels.

    Summed over labels it is a distribution over trees, ``arcs``, in which every arc weighs what its labels weigh
    together; given the tree, labels are independent. ``labels`` ``(..., n+1)`` are -1 at node 0 and at padding.

    Args:
        base: the distribution whose trees, scores and lengths these are.
        label_scores: ``(*batch, n+1, n+1, L)`` log weights, ``[..., head, dependent, label]``, added to the arc's. -inf
            forbids a label. Where the base ignores scores, these are ignored too.
        validate_args: as for the base, whose setting None takes.

    Raises:
        TreeparseError: for label scores that do not fit the base, or are NaN or +inf on an arc.
        NoTreeError: as the base does.
    """

    def __init__(self, base: TreeCRF, label_scores: Tensor, *, validate_args: bool | None = None) -> None:
        self.base, self.label_scores = base, label_scores
        self.scores, self.lengths = base.scores, base.lengths
        validate = base._validate_args if validate_args is None else validate_args
        super().__init__(base.batch_shape, base.event_shape, validate_args=validate)
        check_label_scores(label_scores, base.scores, base.lengths, values=validate)

    @cached_property
    @torch.enable_grad()
    def arcs(self) -> TreeCRF:
        """The distribution of the trees, whatever their labels; float64."""
        return self._over_arcs(self.base._sums.scores, self._labels.log_sums)

    @cached_property
    def _best(self) -> TreeCRF:
        """Trees by the score of their best labels."""
        best = self._labels.reduce(lambda scores: scores.amax(-1))
        return self._over_arcs(self.base._sums.scores.detach(), best.detach())

    @cached_property
    @torch.enable_grad()
    def marginals(self) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The probability of every labelled arc ``(*batch, n+1, n+1, L)``, differentiable."""

        def labelled(scores: Tensor, marginals: Tensor) -> Tensor:
            return self._round(marginals.unsqueeze(-1) * label_sums.log_probs(scores).exp())

        return self._labels.reduce(labelled, self.arcs._marginals).reshape(self.label_scores.shape)

    @property
    def mode(self) -> LabeledTree:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Heads and labels ``(*batch, n+1)`` of the best labelled tree."""
        heads = self._best.mode
        labels = self._labels.of_trees(heads.reshape(-1, heads.shape[-1])).argmax(-1).reshape(heads.shape)
        return heads, torch.where(heads >= 0, labels, -1)

    def log_prob(self, value: Tensor | LabeledTree, labels: Tensor | None = None) -> Tensor:
        """Log probability ``(*sample, *batch)`` of heads and labels ``(*sample, *batch, n+1)``; a pair is taken too.

        It is -inf for what is not in the support.
        """
        pair: Any = value if labels is None else (value, labels)
        total, possible = self._score(*pair)
        return self._round(torch.where(possible, total - self._log_partition, -torch.inf))

    def enumerate_support(self, expand: bool = True) -> LabeledTree:  # pyright: ignore[reportIncompatibleMethodOverride]
        """All labelled trees ``(trees, *batch, n+1)`` twice, small n and L only; items with fewer are padded by -1."""
        trees = self.arcs.enumerate_support().flatten(1, -2).unbind(1)
        lengths = self.lengths.flatten().tolist()
        pairs = [
            self._labels.labelings(heads[(heads >= 0).any(-1)], item, lengths[item]) for item, heads in enumerate(trees)
        ]
        heads, labels = (
            torch.nn.utils.rnn.pad_sequence(parts, padding_value=-1).reshape(-1, *self.scores.shape[:-1])
            for parts in map(list, zip(*pairs, strict=True))
        )
        return heads, labels

    def expected_uas(self, heads: Tensor) -> Tensor:
        """The share ``(*batch,)`` of words with a known head whose head is expected to be right, whatever its label."""
        return self._round(self.arcs.expected_uas(heads))

    def expected_las(self, heads: Tensor, labels: Tensor) -> Tensor:
        """The share ``(*batch,)`` of words that a random labelled tree is expected to get right, head and label.

        Words count whose head and label are known (>= 0); without any it is 1. A label that the model does not have is
        never right. Differentiable ([Exp] §6.1).
        """
        return self._round(self._expected_las(heads, labels))

    def risk(self, heads: Tensor, labels: Tensor) -> Tensor:
        """The expected share of words with a wrong head or label, 1 - ``expected_las``."""
        return self._round(1 - self._expected_las(heads, labels))

    def expand(self, batch_shape: Any, _instance: Any = None) -> Self:
        """The same distribution with new leading batch dimensions, sharing memory."""
        label_scores = self.label_scores.expand(*batch_shape, *self.label_scores.shape[-3:])
        result = type(self)(self.base.expand(batch_shape), label_scores, validate_args=False)
        result._validate_args = self._validate_args
        return result

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base}, label_scores: {tuple(self.label_scores.shape)})"

    @property
    def _log_partition(self) -> Tensor:
        return self.arcs._log_partition

    @cached_property
    @torch.enable_grad()
    def _entropy(self) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        return self.arcs._entropy + self._expected(self._labels.reduce(label_sums.entropy))

    def _cross_entropy(self, q: "LabeledCRF") -> Tensor:
        value = self.arcs._cross_entropy(q.arcs) + self._expected(self._labels.code_length(q._labels))
        return torch.where(self._forbids_label(q).reshape(self.batch_shape), torch.inf, value)

    def _forbids_label(self, q: "LabeledCRF") -> Tensor:
        """Which items ``(B,)`` have a possible arc with a label that only q forbids."""
        arcs = self._labels.forbidden_by(q._labels)
        if not bool(arcs.any()):
            return arcs.any(-1).any(-1)
        return (arcs & (self.arcs._log_marginals > -torch.inf)).any(-1).any(-1)

    def _expected(self, values: Tensor) -> Tensor:
        """The expected sum of finite values of arcs ``(B, n+1, n+1) -> (*batch,)``."""
        return (self.arcs._marginals * values).sum((-2, -1)).reshape(self.batch_shape)

    def _expectation(self, r: Tensor) -> Tensor:
        result = self.arcs.expectation_of(self._label_values(r).over_arcs)
        return result.reshape(self.batch_shape + r.shape[self.label_scores.dim() :])

    def _covariance(self, r: Tensor, s: Tensor) -> Tensor:
        left, right = self._label_values(r), self._label_values(s)
        result = self.arcs.covariance_of(left.over_arcs, right.over_arcs) + left.covariance_given_arcs(right)
        axes = self.label_scores.dim()
        return result.reshape(self.batch_shape + r.shape[axes:] + s.shape[axes:])

    def _label_values(self, values: Tensor) -> LabelValues:
        return LabelValues(values, self.label_scores.shape, self._labels, self.arcs._marginals)

    def _score_variance(self) -> Tensor:
        arcs = torch.where(self._labels.is_arc, self.base._sums.scores, 0.0).unsqueeze(-1)
        total = label_sums.real_scores(self._labels.is_arc, self._labels.values) + arcs
        total = torch.where(total > -torch.inf, total, 0.0).reshape(self.label_scores.shape)
        return self._covariance(total, total)

    def _log_power_sum(self, order: float) -> Tensor:
        arcs = self._over_arcs(power(self.base._sums.scores, order), self._labels.power(order))
        return arcs._log_partition - order * self._log_partition

    def _check_comparable(self, q: TreeDistribution) -> TreeDistribution:
        if not isinstance(q, LabeledCRF):
            raise TreeparseError(f"A {type(self).__name__} cannot be compared with a {type(q).__name__}.")
        self.base._check_comparable(q.base)
        if q.label_scores.shape[-1] != self.label_scores.shape[-1]:
            counts = f"{self.label_scores.shape[-1]} and {q.label_scores.shape[-1]}"
            raise TreeparseError(f"The two distributions have different numbers of labels, {counts}.")
        return q

    @cached_property
    @torch.enable_grad()
    def _labels(self) -> LabelScores:
        return LabelScores(self.label_scores.reshape(-1, *self.label_scores.shape[-3:]), self.base._arcs)

    def _over_arcs(self, scores: Tensor, labels: Tensor) -> TreeCRF:
        """The base's trees under scores and label terms of arcs ``(B, n+1, n+1)``."""
        result = self.base.with_scores((scores + labels).reshape(self.scores.shape))
        result._validate_args = self._validate_args
        return result

    def _in_support(self, value: LabeledTree) -> Tensor:
        """Which pairs of heads and labels are a tree and hold nothing forbidden."""
        return self._score(*value)[1]

    def _score(self, heads: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """Summed scores of labelled trees ``(*sample, *batch)``, and which of them are in the support."""
        heads, labels = torch.broadcast_tensors(*self._check_trees(heads, labels))
        total, possible = self.base._score_heads(heads)
        fits = torch.where(heads >= 0, (labels >= 0) & (labels < self._labels.count), labels == -1).all(-1)
        flat = -1, *self._labels.is_arc.shape[:2]
        values = self._labels.of_labeled_trees(heads.reshape(flat), labels.reshape(flat)).sum(-1).reshape(total.shape)
        return total + values, possible & fits & (values > -torch.inf)

    def _expected_las(self, heads: Tensor, labels: Tensor) -> Tensor:
        heads, labels = self._check_trees(heads, labels)
        known = torch.where(labels >= 0, heads, -1)
        scores = self._labels.of_trees(known.reshape(-1, known.shape[-1]))
        probs = label_sums.log_probs(scores).exp().reshape(*known.shape, -1)
        right = probs.gather(-1, labels.clamp(0, self._labels.count - 1).unsqueeze(-1)).squeeze(-1)
        return self.arcs._expected_accuracy(known, torch.where(labels < self._labels.count, right, 0.0))

    def _check_trees(self, heads: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        return self.base._check_heads(heads), self.base._check_heads(labels, name="Labels")
