"""Entropies, expectations and covariances of labelled trees, from those of their arcs and, given these, of labels."""

from functools import cached_property

import torch
from torch import Tensor

from treeparse.trees import label_sums
from treeparse.trees.base import TreeCRF
from treeparse.trees.distribution import TreeDistribution
from treeparse.trees.expectations import power
from treeparse.trees.label_scores import LabelScores
from treeparse.trees.label_values import LabelValues


class LabeledExpectations(TreeDistribution):
    """The part of a distribution over labelled trees that needs nothing but sums; float64, before rounding."""

    base: TreeCRF
    label_scores: Tensor

    @cached_property
    @torch.enable_grad()
    def arcs(self) -> TreeCRF:
        """The distribution of the trees, whatever their labels; float64."""
        return self._over_arcs(self.base._sums.scores, self._labels.log_sums)

    @cached_property
    @torch.enable_grad()
    def marginals(self) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The probability of every labelled arc ``(*batch, n+1, n+1, L)``, differentiable."""

        def labelled(scores: Tensor, marginals: Tensor) -> Tensor:
            return self._round(marginals.unsqueeze(-1) * label_sums.log_probs(scores).exp())

        return self._labels.reduce(labelled, self.arcs._marginals).reshape(self.label_scores.shape)

    @property
    def _log_partition(self) -> Tensor:
        return self.arcs._log_partition

    @cached_property
    @torch.enable_grad()
    def _entropy(self) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        return self.arcs._entropy + self._expected(self._labels.reduce(label_sums.entropy))

    def _cross_entropy(self, q: "LabeledExpectations") -> Tensor:
        value = self.arcs._cross_entropy(q.arcs) + self._expected(self._labels.code_length(q._labels))
        return torch.where(self._forbids_label(q).reshape(self.batch_shape), torch.inf, value)

    def _forbids_label(self, q: "LabeledExpectations") -> Tensor:
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

    @cached_property
    @torch.enable_grad()
    def _labels(self) -> LabelScores:
        return LabelScores(self.label_scores.reshape(-1, *self.label_scores.shape[-3:]), self.base._arcs)

    def _over_arcs(self, scores: Tensor, labels: Tensor) -> TreeCRF:
        """The base's trees under scores and label terms of arcs ``(B, n+1, n+1)``."""
        result = self.base.with_scores((scores + labels).reshape(self.scores.shape))
        result._validate_args = self._validate_args
        return result
