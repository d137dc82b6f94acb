"""What every distribution over dependency trees shares: arguments, checks, the face of ``torch.distributions``."""

from abc import abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import Any, Self

import torch
from torch import Size, Tensor

from treeparse.core import TreeparseError
from treeparse.trees import families
from treeparse.trees.checks import check_heads_in_range, check_scores, full_lengths, no_tree_error
from treeparse.trees.distribution import TreeDistribution
from treeparse.trees.lists import side_by_side
from treeparse.trees.sampling import SampledTrees

MAX_ENUMERATED_WORDS = 7


class TreeCRF(SampledTrees):
    """A distribution over trees whose log probability is, up to a constant, a sum of arc scores.

    Node 0 is the root and node ``j`` the ``j``-th word; ``scores[..., head, dependent]``. -inf forbids an arc; finite
    scores lie between -1e12 and 1e12 (``MAX_SCORE``), beyond which the rounding of sums hides what trees differ by.
    Column 0, the diagonal and what lies beyond ``lengths`` are ignored, whatever they hold. A tree is a head list
    ``(n+1,)``: the head of every word, -1 at node 0 and at padding.

    Values share one graph: add the terms of a loss up and call ``backward`` once a distribution. Log partitions and
    ``log_prob`` are differentiable twice, marginals and what is made of them (expectations, entropies, risks,
    divergences) once, by ``torch.autograd``; ``torch.vmap`` and the transforms of ``torch.func`` raise.

    Args:
        scores: ``(*batch, n+1, n+1)`` log weights of arcs in any floating dtype; sums over trees are taken in float64.
        lengths: ``(*batch,)`` numbers of words, without the root, in any integer dtype; all ``n`` if None.
        single_root: whether exactly one word hangs from the root.
        validate_args: whether NaN, +inf and too large scores and items without a tree raise; torch's default if None.

    Raises:
        TreeparseError: a ``ValueError``, for scores or lengths that fit no batch of sentences.
        NoTreeError: once a quantity is asked for and a batch item has no tree. Without ``validate_args`` the item's log
            partition and log probabilities are -inf, its marginals 0 and its heads -1. Too large scores then give
            numbers that are rounded as much as their sums, but every method ends.
    """

    def __init__(
        self,
        scores: Tensor,
        lengths: Tensor | None = None,
        *,
        single_root: bool = True,
        validate_args: bool | None = None,
    ) -> None:
        self.scores = scores
        self.lengths = full_lengths(scores, lengths)
        self.single_root = single_root
        super().__init__(scores.shape[:-2], scores.shape[-1:], validate_args=validate_args)
        if self._validate_args:
            check_scores(scores, self.lengths)

    @abstractmethod
    def _are_trees(self, heads: Tensor, lengths: Tensor) -> Tensor:
        """Which head lists ``(B, n+1)`` are trees of this family, whatever their scores, ``(B,)`` bool."""

    @abstractmethod
    def _log_marginals_of(self, scores: Tensor, lengths: Tensor) -> Tensor:
        """Log marginals ``(B, n+1, n+1)``, right to relative accuracy and exact about -inf."""

    def with_scores(self, scores: Tensor, lengths: Tensor | None = None) -> Self:
        lengths = self.lengths if lengths is None else lengths
        return type(self)(scores, lengths, single_root=self.single_root, validate_args=False)

    @cached_property
    @torch.enable_grad()
    def marginals(self) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The probability of every arc ``(*batch, n+1, n+1)``, differentiable; 0 at column 0, diagonal and padding."""
        return self._round(self._marginals.reshape(self.scores.shape))

    @cached_property
    def log_marginals(self) -> Tensor:
        """Log probability of every arc ``(*batch, n+1, n+1)``, a constant: exact for the most improbable arcs too.

        By sums that never subtract: -inf exactly where no tree has the arc, and at column 0, the diagonal and padding.
        """
        return self._round(self._log_marginals.reshape(self.scores.shape))

    def expected_uas(self, heads: Tensor) -> Tensor:
        """The share ``(*batch,)`` of words with a known head that a random tree is expected to get right.

        ``heads`` ``(*batch, n+1)``, -1 where unknown; without any known head it is 1. Differentiable ([Exp] §6.1).
        """
        return self._round(self._expected_accuracy(heads))

    def risk(self, heads: Tensor) -> Tensor:
        """The expected share of wrong heads, 1 - ``expected_uas``: the loss of minimum-risk training."""
        return self._round(1 - self._expected_accuracy(heads))

    def _expected_accuracy(self, heads: Tensor, weights: Tensor | float = 1.0) -> Tensor:
        """Mean over the words of known head of its probability, times a weight of the word ``(*batch, n+1)``."""
        heads = self._check_heads(heads)
        position = torch.arange(heads.shape[-1], device=heads.device)
        known = (heads >= 0) & (position > 0) & (position <= self.lengths.unsqueeze(-1))
        marginals = self._marginals.reshape(self.scores.shape)
        right = marginals.gather(-2, heads.clamp(0, heads.shape[-1] - 1).unsqueeze(-2)).squeeze(-2) * weights
        total = known.sum(-1)
        return torch.where(total > 0, torch.where(known, right, 0.0).sum(-1) / total.clamp_min(1), 1.0)

    def given(self, heads: Tensor) -> Self:
        """The same distribution, conditioned on these heads ``(*batch, n+1)``; -1 leaves a word's head open.

        Arcs that compete with a known head get the score -inf. Differentiable in the scores. Where no tree has these
        heads, the result is a distribution without a tree.

        Raises:
            TreeparseError: for heads that are no integers, have another shape, or lie beyond the words.
        """
        heads = self._check_heads(heads)
        if heads.shape != self.scores.shape[:-1]:
            raise TreeparseError(
                f"Known heads must have the shape (*batch, n+1), here {tuple(self.scores.shape[:-1])}, not "
                f"{tuple(heads.shape)}."
            )
        position = torch.arange(heads.shape[-1], device=heads.device)
        known = ((heads >= 0) & (position > 0) & (position <= self.lengths.unsqueeze(-1))).unsqueeze(-2)
        check_heads_in_range(heads, self.lengths)
        competing = known & (heads.unsqueeze(-2) != position.unsqueeze(-1))
        result = self.with_scores(self.scores.masked_fill(competing, -torch.inf))
        result._validate_args = self._validate_args
        return result

    def log_prob(self, value: Tensor) -> Tensor:
        """Log probability ``(*sample, *batch)`` of head lists ``(*sample, *batch, n+1)``; -inf for what is no tree."""
        total, possible = self._score_heads(self._check_heads(value))
        return self._round(torch.where(possible, total - self._log_partition, -torch.inf))

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All trees ``(trees, *batch, n+1)``, by head of word 1, then 2, ...; items with fewer trees are padded by -1.

        Raises:
            TreeparseError: for more than 7 words, where there are too many trees.
        """
        scores, lengths = self._flat
        size = scores.shape[-1]
        if size - 1 > MAX_ENUMERATED_WORDS:
            raise TreeparseError(
                f"The support can be enumerated for up to {MAX_ENUMERATED_WORDS} words, but there are {size - 1}."
            )
        position = torch.arange(size, device=scores.device)
        items = []
        for item_scores, length in zip(scores.detach(), lengths, strict=True):
            trees = self._trees_of_length(length, size)
            arcs = item_scores[trees.clamp(min=0), position]
            items.append(trees[((arcs > -torch.inf) | (trees < 0)).all(-1)])
        return side_by_side(items, like=self.scores[..., 0])

    def expand(self, batch_shape: Any, _instance: Any = None) -> Self:
        """The same distribution with new leading batch dimensions, sharing memory."""
        scores = self.scores.expand(*batch_shape, *self.scores.shape[-2:])
        result = self.with_scores(scores, self.lengths.expand(batch_shape))
        result._validate_args = self._validate_args
        return result

    def __repr__(self) -> str:
        shape = tuple(self.scores.shape)
        return f"{type(self).__name__}(scores: {shape} {self.scores.dtype}, single_root={self.single_root})"

    @cached_property
    def _log_marginals(self) -> Tensor:
        result = self._log_marginals_of(*self._flat)
        self._require_trees(lambda: (result > -torch.inf).any(-1).any(-1))
        return result

    def _allows_more(self, q: "TreeCRF") -> Tensor:
        own, other = self._sums.scores, q._sums.scores
        result = q._log_partition.reshape(-1) == -torch.inf
        forbidden = self._arcs & (own > -torch.inf) & (other == -torch.inf)
        if bool(forbidden.any()):
            result = result | (forbidden & (self._log_marginals > -torch.inf)).any(-1).any(-1)
        if q.projective and not self.projective:
            result = result | families.allows_crossing_arcs(self)
        if q.single_root and not self.single_root:
            if self.projective:
                return result | families.allows_several_roots(self)
            # Two words that the root may head can hang from it both: cutting their arcs makes no cycle.
            result = result | ((self._arcs & (own > -torch.inf))[:, 0].sum(-1) > 1)
        return result

    def _check_comparable(self, q: TreeDistribution) -> TreeDistribution:
        if not isinstance(q, TreeCRF):
            raise TreeparseError(f"A {type(self).__name__} cannot be compared with a {type(q).__name__}.")
        if q.scores.shape != self.scores.shape:
            shapes = f"{tuple(self.scores.shape)} and {tuple(q.scores.shape)}"
            raise TreeparseError(f"The two distributions have scores of different shapes, {shapes}.")
        if not torch.equal(q.lengths.to(self.lengths.device), self.lengths):
            raise TreeparseError("The two distributions are over sentences of different lengths.")
        return q

    def _require_trees(self, exists: Callable[[], Tensor]) -> None:
        if self._validate_args and not bool((found := exists()).all()):
            item = (~found.reshape(self.scores.shape[:-2])).nonzero()[0].tolist()
            raise no_tree_error(self.scores.detach(), self.lengths, item, single_root=self.single_root)

    def _check_heads(self, heads: Tensor, name: str = "Heads") -> Tensor:
        """Head lists, or labels of words, with all batch dimensions, or an error."""
        shape = self.scores.shape[:-1]
        if heads.is_floating_point() or heads.is_complex() or heads.dtype == torch.bool:
            raise TreeparseError(f"{name} must be integers, not {heads.dtype}.")
        try:
            full = torch.broadcast_shapes(heads.shape, shape)
        except RuntimeError:
            full = Size()
        if heads.dim() == 0 or heads.shape[-1] != shape[-1] or full[-len(shape) :] != shape:
            raise TreeparseError(
                f"{name} must have shape (*sample, *batch, n+1), ending in {tuple(shape)}, not {tuple(heads.shape)}."
            )
        return heads.to(self.scores.device, torch.int64).expand(full)

    def _in_support(self, value: Tensor) -> Tensor:
        """Which head lists are trees without a forbidden arc."""
        return self._score_heads(self._check_heads(value))[1]

    def _score_heads(self, heads: Tensor) -> tuple[Tensor, Tensor]:
        """Summed scores of head lists ``(*sample, *batch, n+1)``, and which of them are trees of finite score."""
        scores, lengths = self._flat
        shape = heads.shape[:-1]
        items, size = scores.shape[:2]
        samples = shape[: len(shape) - len(self.batch_shape)].numel()
        position = torch.arange(size, device=scores.device)
        words = (position > 0) & (position <= lengths[:, None])
        lists = heads.reshape(samples, items, size)
        # One row of arcs an item, all samples in it: gathering from expanded scores would expand their gradient too.
        arcs = (lists.clamp(0, size - 1) * size + position).transpose(0, 1).reshape(items, samples * size)
        values = scores.reshape(items, size * size).gather(1, arcs).reshape(items, samples, size).transpose(0, 1)
        total = torch.where(words, values, 0.0).sum(-1)
        repeated = lengths.expand(samples, items).reshape(-1)
        trees = self._are_trees(lists.reshape(-1, size), repeated).reshape(total.shape)
        return total.reshape(shape), (trees & (total > -torch.inf)).reshape(shape)

    def _trees_of_length(self, length: Tensor, size: int) -> Tensor:
        """All trees over the first ``length`` words ``(trees, size)``, whatever their scores."""
        words = int(length)
        choices = [[head for head in range(words + 1) if head != word] for word in range(1, words + 1)]
        grid = torch.cartesian_prod(*map(torch.tensor, choices)).reshape(-1, words)
        heads = torch.nn.functional.pad(grid, (1, size - 1 - words), value=-1).to(length.device)
        return heads[self._are_trees(heads, length.expand(len(heads)))]
