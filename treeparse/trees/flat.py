"""A batch of sentences and their trees as one flat batch: sums, best trees and draws, in float64, before rounding."""

from functools import cached_property

import numpy as np
import torch
from torch import Size, Tensor

from treeparse.trees import support
from treeparse.trees.arc_values import ArcValues, arc_values, bilinear_form
from treeparse.trees.checks import arc_mask, no_tree_error, summable
from treeparse.trees.families import DistinctMethod, Family, KBest, LabelDraws, Method
from treeparse.trees.looks import is_at_hand
from treeparse.trees.sums import TreeSums


class FlatTrees:
    """The trees of a family under scores; a distribution rounds and reshapes what is found here.

    Values are computed once and share one graph. Results ``(B,)`` have the batch's own shape where they say
    ``(*batch,)``.

    Args:
        family: which trees there are, and how they are computed with.
        scores: ``(*batch, n+1, n+1)`` log weights of arcs, any floating dtype.
        lengths: int64 ``(*batch,)``.
        validate: whether items without a tree raise; if not, scores may be anything.
    """

    def __init__(self, family: Family, scores: Tensor, lengths: Tensor, *, validate: bool) -> None:
        self.family, self.validate = family, validate
        self.shape = lengths.shape
        with torch.enable_grad():  # cached values must have their graph even if first used without one
            arcs = scores.to(torch.float64)
            if arcs.dim() != 3:
                arcs = arcs.reshape(-1, *arcs.shape[-2:])
            self.arcs = arcs if validate else summable(arcs, scores)
        self.lengths = lengths.reshape(-1)

    def with_arcs(self, arcs: Tensor, *, validate: bool | None = None) -> "FlatTrees":
        """The same trees under other scores of arcs ``(B, n+1, n+1)``; ``validate`` as here if None."""
        validate = self.validate if validate is None else validate
        return FlatTrees(self.family, self.unflat(arcs), self.unflat(self.lengths), validate=validate)

    def unflat(self, value: Tensor) -> Tensor:
        """A value ``(B, ...)`` as ``(*batch, ...)``."""
        return value if len(self.shape) == 1 else value.reshape(self.shape + value.shape[1:])

    def samples_of(self, trees: Tensor) -> Tensor:
        """Heads or labels of trees ``(*sample, *batch, n+1)`` as ``(S, B, n+1)``."""
        samples = trees.shape[: trees.dim() - 1 - len(self.shape)].numel()
        return trees.reshape(samples, len(self.lengths), trees.shape[-1])

    @cached_property
    def is_arc(self) -> Tensor:
        """Where arcs are ``(B, n+1, n+1)`` bool."""
        return arc_mask(self.lengths, self.arcs.shape[-1])

    @cached_property
    def sums(self) -> TreeSums:
        """The differentiable sums of the parts."""
        return TreeSums(self.family, (self.arcs,), self.lengths)

    @cached_property
    @torch.enable_grad()
    def log_partition(self) -> Tensor:
        """Log partition ``(*batch,)`` before it is rounded: losses are small differences of large sums."""
        result = self.sums.log_partition()
        self._require_sums(result)
        return self.unflat(result)

    @cached_property
    @torch.enable_grad()
    def marginals(self) -> Tensor:
        """The probability of every arc ``(B, n+1, n+1)``."""
        (result,) = self.sums.marginals()
        self._require_sums(self.sums.constants[0])
        return result

    @cached_property
    def log_marginals(self) -> Tensor:
        """Log probability of every arc ``(B, n+1, n+1)``, a constant; -inf exactly where no tree has the arc."""
        (result,) = self.family.log_marginals((self.arcs,), self.lengths)
        self.require((result > -torch.inf).any(-1).any(-1))
        return result

    def or_none(self, value: Tensor) -> Tensor:
        """A value ``(*batch,)``, -inf for items without a tree."""
        return torch.where(self.log_partition > -torch.inf, value, -torch.inf)

    @cached_property
    @torch.enable_grad()
    def entropy(self) -> Tensor:
        """Entropy ``(*batch,)``."""
        return self.or_none(self._expected_code_length(self))

    def cross_entropy(self, q: "FlatTrees") -> Tensor:
        """``-E_p[log q]`` ``(*batch,)``; +inf where q forbids what p allows."""
        forbidden = self.unflat(self._allows_more(q))
        return self.or_none(torch.where(forbidden, torch.inf, self._expected_code_length(q)))

    def _expected_code_length(self, q: "FlatTrees") -> Tensor:
        """-E_p[log q] over trees that q allows. Columns of q's scores are shifted to maximum 0, so nothing cancels."""
        shifted, shift = q.shifted_arcs
        expected = self.unflat(_inner_product(self.marginals, shifted))
        return (q.log_partition - self.unflat(shift)) - expected

    @cached_property
    @torch.enable_grad()
    def shifted_arcs(self) -> tuple[Tensor, Tensor]:
        """Scores less the best of their column ``(B, n+1, n+1)``, 0 at what is no arc; the sum of the best ``(B,)``.

        -inf stays. The shift is a constant for autograd, as no entropy depends on it.
        """
        finite = torch.where(self.is_arc & (self.arcs > -torch.inf), self.arcs.detach(), -torch.inf)
        best = finite.amax(-2, keepdim=True)
        best = torch.where(best > -torch.inf, best, 0.0)
        return torch.where(self.is_arc, self.arcs - best, 0.0), best.sum((-2, -1))

    def _allows_more(self, q: "FlatTrees") -> Tensor:
        """Which items ``(B,)`` have a tree that q forbids."""
        result = q.log_partition.reshape(-1) == -torch.inf
        forbidden = self.is_arc & (self.arcs > -torch.inf) & (q.arcs == -torch.inf)
        result = result | self.allows_some(forbidden)
        own, other = self.family, q.family
        constants = own, self.arcs.detach(), self.lengths
        if own.crossing and not other.crossing:
            result = result | support.allows_crossing_arcs(*constants, self.log_marginals > -torch.inf)
        if other.single_root and not own.single_root:
            if not own.crossing:
                return result | support.allows_several_roots(*constants, self.log_marginals > -torch.inf)
            # Two words that the root may head can hang from it both: cutting their arcs makes no cycle.
            result = result | ((self.is_arc & (self.arcs > -torch.inf))[:, 0].sum(-1) > 1)
        return result

    def allows_some(self, arcs: Tensor) -> Tensor:
        """Which items ``(B,)`` have a tree with one of some arcs ``(B, n+1, n+1)`` bool."""
        if is_at_hand(arcs) and not bool(arcs.any()):  # as mostly, and log marginals take longer than all else
            return arcs.any(-1).any(-1)
        return (arcs & (self.log_marginals > -torch.inf)).any(-1).any(-1)

    def expected_gradient(self) -> Tensor:
        """The trace of the covariance of arcs: 1 where a tree has them, else 0; ``(*batch,)``."""
        return self.unflat((self.marginals * (1 - self.marginals)).sum((-2, -1)))

    def log_power_sum(self, order: float) -> Tensor:
        """Log of the sum over trees of their probability to a power ``(*batch,)``."""
        shifted, shift = self.shifted_arcs
        raised = self.with_arcs(power(shifted, order)).log_partition
        return raised - order * (self.log_partition - self.unflat(shift))

    @property
    def possible_arcs(self) -> Tensor:
        """Which arcs have a probability above 0, ``(B, (n+1)^2)`` bool."""
        return (self.marginals > 0).flatten(1)

    def expectation(self, r: Tensor) -> Tensor:
        """Expected sums of values of arcs: ``(*batch, n+1, n+1, R) -> (*batch, R)``."""
        result = self.expectation_of(self._arc_values(r))
        return result.reshape(self.shape + r.shape[len(self.shape) + 2 :])

    def covariance(self, r: Tensor, s: Tensor) -> Tensor:
        """The covariance of two such sums ``(*batch, R, S)``."""
        axes = len(self.shape) + 2
        result = self.covariance_of(self._arc_values(r), self._arc_values(s))
        return result.reshape(self.shape + r.shape[axes:] + s.shape[axes:])

    def score_variance(self) -> Tensor:
        """The variance of a tree's score ``(*batch,)``."""
        shifted, _ = self.shifted_arcs
        shifted = self.unflat(torch.where(shifted > -torch.inf, shifted, 0.0))
        return self.covariance(shifted, shifted)

    def _arc_values(self, values: Tensor) -> ArcValues:
        return arc_values(values, Size((*self.shape, *self.arcs.shape[1:])), self.possible_arcs)

    def expectation_of(self, values: ArcValues) -> Tensor:
        """Expected sums ``(B, values.count)``."""
        return values.weighted_sums(self.marginals.flatten(1).unsqueeze(0)).squeeze(1)

    def covariance_of(self, left: ArcValues, right: ArcValues) -> Tensor:
        """Covariances of sums ``(B, left.count, right.count)``."""
        shape = self.arcs.shape[-2:]

        def hessian_products(vectors: Tensor) -> Tensor:
            (products,) = self.sums.hessian_vector_products((vectors.unflatten(-1, shape),))
            return products.flatten(2)

        return bilinear_form(left, right, hessian_products)

    @cached_property
    def heads(self) -> Tensor:
        """Heads of the best trees ``(B, n+1)``."""
        heads = self.family.best_trees((self.arcs,), self.lengths)
        self.require(heads[:, 1] >= 0)
        return heads

    def k_best(self, count: int) -> KBest:
        """A new list of the best trees with so many of them made."""
        found = self.family.k_best((self.arcs,), self.lengths)
        found.extend(count, threads=torch.get_num_threads())
        self.require(torch.from_numpy(found.scores[:, 0] > -np.inf))
        return found

    def as_batch(self, array: np.ndarray) -> Tensor:
        """An array ``(B, ...)`` as a tensor ``(*batch, ...)``."""
        return self.unflat(torch.from_numpy(array).to(self.arcs.device))

    def sample(self, seeds: Tensor, count: int, method: Method | None = None) -> Tensor:
        """Heads ``(B, count, n+1)`` of exact, independent samples by seeds ``(B,)``."""
        heads = self.family.sample((self.arcs,), self.lengths, seeds, count, method)
        if heads.numel():
            self.require(heads[:, 0, 1] >= 0)
        return heads

    def sample_without_replacement(
        self, seeds: Tensor, count: int, method: DistinctMethod | None = None, labels: LabelDraws | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Rows ``(*batch, k, n+1)`` or, with labels, ``(*batch, k, 2n+2)``; log probabilities and keys."""
        shifted, _ = self.shifted_arcs  # differences of large scores keep their digits
        draw = self.family.sample_without_replacement
        rows, log_probs, keys = draw((shifted.detach(),), self.lengths, seeds, count, method=method, labels=labels)
        self.require(rows[:, 0, 1] >= 0)
        return self.unflat(rows), self.unflat(log_probs), self.unflat(keys)

    def scores_of(self, heads: Tensor) -> tuple[Tensor, Tensor]:
        """Summed scores of head lists ``(S, B, n+1)``, and which of them are trees of finite score, ``(S, B)`` both.

        Lists are as `check_heads` returns them.
        """
        items, size = self.arcs.shape[:2]
        samples = len(heads)
        position = torch.arange(size, device=self.arcs.device)
        # One row of arcs an item, all samples in it: gathering from expanded scores would expand their gradient too.
        arcs = (heads.clamp(0, size - 1) * size + position).transpose(0, 1).reshape(items, samples * size)
        values = self.arcs.reshape(items, size * size).gather(1, arcs).reshape(items, samples, size).transpose(0, 1)
        total = torch.where(heads >= 0, values, 0.0).sum(-1)
        repeated = self.lengths.expand(samples, items).reshape(-1)
        trees = self.family.are_trees(heads.reshape(-1, size), repeated).reshape(total.shape)
        return total, trees & (total > -torch.inf)

    def _require_sums(self, log_z: Tensor) -> None:
        """Raise as ``require`` where a log partition ``(B,)`` is -inf."""
        if self.validate:
            self.require(log_z > -torch.inf)

    def require(self, exist: Tensor) -> None:
        """Raise where an item has no tree, by ``(B,)`` bool, unless arguments are not validated."""
        if self.validate and not bool(exist.all()):
            item = self.unflat(~exist).nonzero()[0].tolist()
            scores = self.unflat(self.arcs.detach())
            raise no_tree_error(scores, self.unflat(self.lengths), item, single_root=self.family.single_root)


def _inner_product(marginals: Tensor, scores: Tensor) -> Tensor:
    """Expected scores ``(B,)``; an arc in no tree counts 0, whatever its score."""
    finite = torch.where((marginals > 0) & (scores > -torch.inf), scores, 0.0)
    return (marginals * finite).sum((-2, -1))


def power(scores: Tensor, order: float) -> Tensor:
    """Log weights to a power; what is forbidden stays so, at order 0 too."""
    finite = scores > -torch.inf
    return torch.where(finite, torch.where(finite, scores, 0.0) * order, -torch.inf)
