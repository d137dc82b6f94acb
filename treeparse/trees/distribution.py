"""The interface that all distributions over dependency trees share, labelled or not."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor
from torch.distributions import Distribution, constraints, register_kl

from treeparse.batch import word_mask
from treeparse.errors import NoItemError, TreeparseError
from treeparse.lazy import cached_property
from treeparse.trees.checks import fits
from treeparse.trees.parts import Parts

NEAR_ONE = 1e-5  # Renyi entropies of orders within this distance of 1 use the expansion at 1


class TreeDistribution(Distribution, ABC):
    """A distribution over trees whose log probability is, up to a constant, the summed score of the tree's parts.

    Parts are arcs ``(n+1, n+1)`` or labelled arcs ``(n+1, n+1, L)``, with further kinds after them in some families.
    Everything is computed in float64 and rounded once at the end, to ``dtype``; logarithms are in nats. If a batch item
    has no tree and arguments are not validated, its expectations are 0 and its entropies -inf.

    ``TreeCRF`` has the rules for derivatives: call ``backward`` once for each distribution.
    """

    has_enumerate_support = True
    has_labels: ClassVar[bool] = False
    lengths: Tensor
    batched: Any  # sums ``(*batch, ...)`` in float64, before rounding: `BatchedTrees` or `BatchedLabeledTrees`

    # None, because the constructor checks all arguments together.
    arg_constraints: ClassVar[dict[str, constraints.Constraint]] = {}  # pyright: ignore[reportIncompatibleMethodOverride]

    @property
    def support(self) -> constraints.Constraint:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The trees without a forbidden part."""
        return _Support(self._in_support)

    @property
    @abstractmethod
    def dtype(self) -> torch.dtype:
        """The dtype of values: the scores' dtype, but at least float32. Gradients have the scores' dtype."""

    @property
    def device(self) -> torch.device:
        """The device of the scores."""
        return self.lengths.device

    @property
    @abstractmethod
    def kind_of_trees(self) -> str:
        """The trees in words, such as "ProjectiveCRF with one root": the same for all distributions over them."""

    @abstractmethod
    def __getitem__(self, index: Any) -> "TreeDistribution":
        """Select from the batch, as a tensor of the batch's shape is indexed: ``p[0]``, ``p[2:5]``, ``p[mask]``."""

    @abstractmethod
    def to(self, device: torch.device | str) -> "TreeDistribution":
        """Return the same distribution over scores on a device."""

    def _replaced(self, **attributes: Any) -> Self:
        """Return a copy with other attributes, which are not checked, and without cached values."""
        result = object.__new__(type(self))
        for name, value in (self.__dict__ | attributes).items():
            if not isinstance(getattr(type(self), name, None), cached_property):
                setattr(result, name, value)
        return result

    def _positions(self, index: Any) -> Tensor:
        """Return the positions in the flat batch that an index selects.

        Raises:
            NoItemError: a ``TreeparseError`` and an ``IndexError``, for an index that selects nothing of the batch.
        """
        positions = torch.arange(self.batch_shape.numel(), device=self.lengths.device)
        try:
            return positions.reshape(self.batch_shape)[index]
        except IndexError as error:
            raise NoItemError(
                f"An index must select from a batch of the shape {tuple(self.batch_shape)}: {error}."
            ) from error

    def _expanded(self, batch_shape: Sequence[int]) -> torch.Size:
        """Return the shape ``(*sample, *batch)`` to which the batch is expanded."""
        sizes, shape = tuple(self.batch_shape), tuple(batch_shape)
        if len(shape) < len(sizes) or not fits(sizes, shape[len(shape) - len(sizes) :]):
            raise TreeparseError(
                f"The batch of the shape {sizes} can be expanded to a shape that ends in it, dimensions of size 1 to "
                f"any size, got {shape}."
            )
        return torch.Size(shape)

    @cached_property
    def word_mask(self) -> Tensor:
        """The nodes ``(*batch, n+1)`` bool that are words: neither node 0 nor padding."""
        return word_mask(self.lengths, self.event_shape[-1])

    @property
    def log_partition(self) -> Tensor:
        """Log of the summed weight of all trees ``(*batch,)``, differentiable twice."""
        return self.batched.log_partition.to(self.dtype)

    @property
    @abstractmethod
    def has_sums(self) -> bool:
        """Whether there are sums over all trees: log partition, marginals, entropy and what is made of them."""

    @property
    @abstractmethod
    def marginals(self) -> Tensor:
        """The probability of every arc or labelled arc ``(*batch, *part)``, differentiable; 0 at other entries."""

    def entropy(self) -> Tensor:
        """Return the entropy ``(*batch,)``, differentiable ([Exp] §6.2)."""
        return self._round(self.batched.entropy)

    def cross_entropy(self, q: "TreeDistribution") -> Tensor:
        """Return ``-E_p[log q]`` ``(*batch,)``, differentiable in both; +inf if q forbids a tree of p ([Exp] §6.3).

        Raises:
            TreeparseError: unless q is of the same kind, with the same batch shape, words and lengths.
        """
        return self._round(self.batched.cross_entropy(self.comparable(q).batched))

    def renyi_entropy(self, alpha: float) -> Tensor:
        """Return the Renyi entropy of order ``alpha`` ``(*batch,)``, differentiable.

        Order 0 gives the log of the number of trees, order infinity minus the greatest log probability. Within 1e-5 of
        order 1 the value is an expansion around the entropy, without a gradient, because the formula cancels there.

        Raises:
            TreeparseError: for an order below 0, and for 1, whose limit is ``entropy``.
        """
        if not alpha >= 0 or alpha == 1:
            raise TreeparseError(
                f"The order of a Renyi entropy must be at least 0 and not 1, got {alpha}; for order 1, use entropy()."
            )
        if math.isinf(alpha):
            return -self.log_prob(self.mode)
        if abs(1 - alpha) < NEAR_ONE:
            return self._round(self.batched.entropy - (alpha - 1) / 2 * self.batched.score_variance())
        return self._round(self.batched.minus_inf_without_tree(self.batched.log_power_sum(alpha) / (1 - alpha)))

    def score_variance(self) -> Tensor:
        """Return the variance of a tree's score ``(*batch,)``, which is that of its log probability."""
        return self._round(self.batched.score_variance())

    def log_norm(self, order: float) -> Tensor:
        """Return the log of the l_order norm of the trees' probabilities ``(*batch,)``, differentiable.

        Raises:
            TreeparseError: unless the order is above 0; order infinity gives the greatest log probability.
        """
        if not order > 0:
            raise TreeparseError(f"The order of a norm must be above 0, got {order}.")
        if math.isinf(order):
            return self.log_prob(self.mode)
        return self._round(self.batched.minus_inf_without_tree(self.batched.log_power_sum(order) / order))

    def expected_gradient(self) -> Tensor:
        """Return the expected squared length of the gradient of a tree's log probability ``(*batch,)``, differentiable.

        The gradient in the score of a part is 1 if the tree has the part, otherwise 0, minus the part's marginal. So
        the value is the trace of the parts' covariance, the sum of ``marginal * (1 - marginal)``. For arcs, it is the
        expected number of words at which two independent trees differ. It is the squared expected gradient length of
        Settles and Craven (2008) with respect to scores instead of a model's weights.
        """
        return self._round(self.batched.expected_gradient())

    def expectation(self, r: Tensor | Parts) -> Tensor:
        """Return expected sums of values: ``(*batch, *part, R) -> (*batch, R)``, ``(*batch, *part) -> (*batch,)``.

        Dimensions of size 1 broadcast. ``r`` may be a sparse COO tensor of the full shape; besides the marginals, the
        time then grows with its entries only ([Exp] §5.1, T1). Parts of probability 0 count 0 whatever ``r`` holds. For
        trees with parts besides arcs, ``Parts`` hold values of every kind, and a tensor holds values of arcs alone.
        Differentiable in scores and ``r``.
        """
        return self._round(self.batched.expectation(r))

    def covariance(self, r: Tensor | Parts, s: Tensor | Parts) -> Tensor:
        """Return covariances of sums: ``(*batch, *part, R)``, ``(*batch, *part, S)`` -> ``(*batch, R, S)``.

        Either may lack its last axis, which the result then lacks too; otherwise shapes are as for ``expectation``. The
        cost is min(R, S) Hessian-vector products of O(n^3) ([Exp] §5.2, T2). Differentiable in ``r`` and ``s``; a
        gradient in the scores raises.
        """
        return self._round(self.batched.covariance(r, s))

    def second_moment(self, r: Tensor | Parts, s: Tensor | Parts) -> Tensor:
        """Return ``E[r(tree) s(tree)^T]``: shapes, cost and derivatives as for ``covariance``."""
        first, second = self.batched.expectation(r), self.batched.expectation(s)
        batch = len(self.batch_shape)
        left = first.reshape(*first.shape, *[1] * (second.dim() - batch))
        right = second.reshape(*self.batch_shape, *[1] * (first.dim() - batch), *second.shape[batch:])
        return self._round(self.batched.covariance(r, s) + left * right)

    @abstractmethod
    def comparable(self, q: "TreeDistribution") -> "TreeDistribution":
        """Return q, or raise if it cannot be compared with this distribution."""

    @abstractmethod
    def _in_support(self, value: Any) -> Tensor:
        """Tell which values are in the support ``(*sample, *batch)`` bool."""

    def _log_probs_of_scored(self, scores: Tensor) -> Tensor:
        """Return log probabilities of trees from scores ``(*sample, *batch)``: NaN without sums, -inf for -inf."""
        log_partition = self.batched.log_partition if self.has_sums else torch.nan
        return torch.where(scores > -torch.inf, scores - log_partition, -torch.inf)

    def _listed(self, scores: np.ndarray, *trees: np.ndarray) -> list[Tensor]:
        """Convert scores ``(*list, B)`` and trees ``(*list, B, n+1)``: trees ``(*list, *batch, n+1)``, then scores."""
        shape = (*scores.shape[:-1], *self.batch_shape)
        *rows, values = (torch.from_numpy(column).to(self.lengths.device) for column in (*trees, scores))
        return [*(row.reshape(*shape, row.shape[-1]) for row in rows), values.reshape(shape)]

    def _with_log_probs(self, *columns: np.ndarray) -> list[Tensor]:
        """Return trees, scores and log probabilities from scores ``(B, k)`` and trees ``(B, k, n+1)``."""
        *trees, scores = self._listed(*(column.swapaxes(0, 1) for column in columns))
        return [*trees, self._round(scores), self._round(self._log_probs_of_scored(scores).detach())]

    def _round(self, value: Tensor) -> Tensor:
        return value.to(self.dtype)


class _Support(constraints.Constraint):
    """The support of a distribution over trees."""

    is_discrete = True
    event_dim = 1

    def __init__(self, contains: Callable[[Any], Tensor]) -> None:
        self._contains = contains
        super().__init__()

    def check(self, value: Any) -> Tensor:
        return self._contains(value)


@register_kl(TreeDistribution, TreeDistribution)
def _kl_divergence(p: TreeDistribution, q: TreeDistribution) -> Tensor:
    """Return the KL divergence in nats: +inf where q forbids a tree of p, -inf where p has no tree."""
    divergence = p.batched.cross_entropy(p.comparable(q).batched) - p.batched.entropy
    return p.batched.minus_inf_without_tree(divergence).to(p.dtype)
