"""Entropies, expectations and covariances of a tree's arcs, from the three primitives of any family of trees [Exp]."""

from abc import abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import Any, Self

import torch
from torch import Tensor

from treeparse.trees.arc_values import ArcValues, arc_values, bilinear_form
from treeparse.trees.checks import arc_mask, summable
from treeparse.trees.distribution import TreeDistribution
from treeparse.trees.functions import Primitives, TreeSums


class ArcExpectations(TreeDistribution):
    """The part of a distribution over unlabelled trees that needs nothing but sums; float64, before rounding."""

    @property
    @abstractmethod
    def _primitives(self) -> Primitives:
        """How the trees of this family are summed."""

    @abstractmethod
    def _require_trees(self, exists: Callable[[], Tensor]) -> None:
        """Raise unless every item of the flat batch has a tree, ``(B,)`` bool, or arguments are not validated."""

    @abstractmethod
    def with_scores(self, scores: Tensor, lengths: Tensor | None = None) -> Self:
        """The same family of trees over other scores of any batch shape, not validated."""

    @abstractmethod
    def _allows_more(self, q: Any) -> Tensor:
        """Which items ``(B,)`` bool have a tree that q forbids."""

    @cached_property
    @torch.enable_grad()  # cached values must have their graph even if first used without one
    def _sums(self) -> TreeSums:
        """The sums of the flat batch: float64 scores ``(B, n+1, n+1)`` and lengths ``(B,)``."""
        size = self.scores.shape[-1]
        scores = self.scores.to(torch.float64)
        if scores.dim() != 3:
            scores = scores.reshape(-1, size, size)
        if not self._validate_args:
            scores = summable(scores)
        return TreeSums(self._primitives, scores, self.lengths.reshape(-1))

    @cached_property
    @torch.enable_grad()
    def _log_partition(self) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        result = self._sums.log_partition()
        self._require_trees(lambda: result > -torch.inf)
        return result if result.shape == self.batch_shape else result.reshape(self.batch_shape)

    @cached_property
    @torch.enable_grad()
    def _marginals(self) -> Tensor:
        """Marginals ``(B, n+1, n+1)``."""
        result = self._sums.marginals()
        self._require_trees(lambda: self._sums.constants[0] > -torch.inf)
        return result

    @cached_property
    @torch.enable_grad()
    def _entropy(self) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        return self._or_none(self._expected_code_length(self))

    def _cross_entropy(self, q: "ArcExpectations") -> Tensor:
        forbidden = self._allows_more(q).reshape(self.batch_shape)
        value = torch.where(forbidden, torch.inf, self._expected_code_length(q))
        return self._or_none(value)

    def _expected_code_length(self, q: "ArcExpectations") -> Tensor:
        """-E_p[log q] over trees that q allows. Columns of q's scores are shifted to maximum 0, so nothing cancels."""
        shifted, shift = q._shifted_scores
        expected = _inner_product(self._marginals, shifted).reshape(self.batch_shape)
        return (q._log_partition - shift.reshape(self.batch_shape)) - expected

    @cached_property
    @torch.enable_grad()
    def _shifted_scores(self) -> tuple[Tensor, Tensor]:
        """Scores less the best of their column ``(B, n+1, n+1)``, 0 at what is no arc; the sum of the best ``(B,)``.

        -inf stays. The shift is a constant for autograd, as no entropy depends on it.
        """
        scores = self._sums.scores
        finite = torch.where(self._arcs & (scores > -torch.inf), scores.detach(), -torch.inf)
        best = finite.amax(-2, keepdim=True)
        best = torch.where(best > -torch.inf, best, 0.0)
        return torch.where(self._arcs, scores - best, 0.0), best.sum((-2, -1))

    def _log_power_sum(self, order: float) -> Tensor:
        shifted, shift = self._shifted_scores
        raised = self.with_scores(power(shifted, order), self._sums.lengths)._log_partition
        return (raised - order * (self._log_partition.reshape(-1) - shift)).reshape(self.batch_shape)

    @cached_property
    def _arcs(self) -> Tensor:
        """Where arcs of the flat batch are ``(B, n+1, n+1)`` bool."""
        return arc_mask(self._sums.lengths, self.scores.shape[-1])

    def _expectation(self, r: Tensor) -> Tensor:
        result = self.expectation_of(arc_values(r, self.scores.shape, self.possible_arcs))
        return result.reshape(self.batch_shape + r.shape[self.scores.dim() :])

    def _covariance(self, r: Tensor, s: Tensor) -> Tensor:
        left, right = (arc_values(x, self.scores.shape, self.possible_arcs) for x in (r, s))
        axes = self.scores.dim()
        return self.covariance_of(left, right).reshape(self.batch_shape + r.shape[axes:] + s.shape[axes:])

    def expectation_of(self, values: ArcValues) -> Tensor:
        """Expected sums ``(B, values.count)`` in float64."""
        return values.weighted_sums(self._marginals.flatten(1).unsqueeze(0)).squeeze(1)

    def covariance_of(self, left: ArcValues, right: ArcValues) -> Tensor:
        """Covariances of sums ``(B, left.count, right.count)`` in float64."""
        shape = self._sums.scores.shape[-2:]

        def hessian_products(vectors: Tensor) -> Tensor:
            return self._sums.hessian_vector_products(vectors.unflatten(-1, shape)).flatten(2)

        return bilinear_form(left, right, hessian_products)

    @property
    def possible_arcs(self) -> Tensor:
        """Which arcs have a probability above 0, ``(B, (n+1)^2)`` bool."""
        return (self._marginals > 0).flatten(1)

    def _score_variance(self) -> Tensor:
        shifted, _ = self._shifted_scores
        shifted = torch.where(shifted > -torch.inf, shifted, 0.0).reshape(self.scores.shape)
        return self._covariance(shifted, shifted)


def _inner_product(marginals: Tensor, scores: Tensor) -> Tensor:
    """Expected scores ``(B,)``; an arc in no tree counts 0, whatever its score."""
    finite = torch.where((marginals > 0) & (scores > -torch.inf), scores, 0.0)
    return (marginals * finite).sum((-2, -1))


def power(scores: Tensor, order: float) -> Tensor:
    """Log weights to a power; what is forbidden stays so, at order 0 too."""
    finite = scores > -torch.inf
    return torch.where(finite, torch.where(finite, scores, 0.0) * order, -torch.inf)
