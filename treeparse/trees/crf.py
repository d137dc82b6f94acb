"""What every distribution over dependency trees shares: arguments, checks, the face of ``torch.distributions``."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, Self

import torch
from torch import Size, Tensor

from treeparse.batch import readable_without_sync
from treeparse.errors import TreeparseError
from treeparse.trees.checks import (
    check_count,
    check_equal_lengths,
    check_head_range,
    check_heads,
    check_mask,
    check_other_parts,
    check_scores,
    check_shape,
    check_whole_trees,
    full_lengths,
)
from treeparse.trees.distribution import TreeDistribution
from treeparse.trees.families import DistinctMethod, Family, Method
from treeparse.trees.flat import FlatTrees
from treeparse.trees.part_values import expected_accuracy
from treeparse.trees.parts import Parts, named
from treeparse.trees.randomness import Generators, item_seeds
from treeparse.trees.relaxed import arcs_of, check_hard, perturbed, straight_through
from treeparse.trees.tree_lists import check_enumerable, growing_indices, head_lists, pad_lists, sort_by_score


class TreeCRF(TreeDistribution):
    """A distribution over trees whose log probability is, up to a constant, a sum of arc scores.

    Node 0 is the root and node ``j`` the ``j``-th word; ``scores[..., head, dependent]``. -inf forbids an arc; finite
    scores lie between -1e12 and 1e12 (``MAX_SCORE``), beyond which the rounding of sums hides what trees differ by.
    Column 0, the diagonal and what lies beyond ``lengths`` are ignored, whatever they hold. A tree is a head list
    ``(n+1,)``: the head of every word, and -1 at node 0 and at padding, where what is given may be anything
    (``help("treeparse.trees.checks")``).

    Of trees of equal score the better one is that whose arcs are shorter in sum, then that of the greater sum of fixed
    pseudo-random keys of arcs. The rule is the same for every kind of distribution, and the tree does not depend on the
    batch. Scores are equal where their sums are, rounding included.

    Values share one graph: add the terms of a loss up and call ``backward`` once a distribution. Log partitions and
    ``log_prob`` are differentiable twice, marginals and what is made of them (expectations, entropies, risks,
    divergences) once, by ``torch.autograd``; ``torch.vmap`` and the transforms of ``torch.func`` raise.

    Without ``validate_args`` nothing waits for a CUDA device, so that a CUDA graph can hold a whole step of training:
    lengths on the device are forced into range unseen, and known heads not looked at. What has to wait are lists
    (``topk``, ``best_first``, ``enumerate_support``), sparse values, draws without replacement but by "beam", and
    divergences between trees of different kinds.

    Args:
        scores: ``(*batch, n+1, n+1)`` log weights of arcs in any floating dtype; sums over trees are taken in float64.
        lengths: ``(*batch,)`` numbers of words, without the root, in any integer dtype; all ``n`` if None.
        others: scores ``(*batch, ...)`` of the family's further kinds of part, in their order. A subclass with such
            parts takes their scores as further positional arguments, after those of arcs and before ``lengths``.
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
        others: tuple[Tensor, ...] = (),
        single_root: bool = True,
        validate_args: bool | None = None,
    ) -> None:
        check_shape(scores)
        self.scores, self.parts = scores, Parts((scores, *others))
        self.single_root = single_root
        super().__init__(scores.shape[:-2], scores.shape[-1:], validate_args=validate_args)
        self.lengths = full_lengths(scores, lengths, validate=bool(self._validate_args))
        if self._validate_args:
            check_scores(scores, self.lengths)
        if others:
            check_other_parts(self.parts, self.family.kinds, self.lengths, values=bool(self._validate_args))

    @property
    @abstractmethod
    def family(self) -> Family:
        """Which trees these are, and how they are computed with."""

    @property
    def kind_of_trees(self) -> str:
        return f"{type(self).__name__} with {'one root' if self.single_root else 'many roots'}"

    @property
    def settings(self) -> dict[str, Any]:
        """The constructor's arguments besides scores, lengths and ``validate_args``."""
        return {"single_root": self.single_root}

    @cached_property
    def flat(self) -> FlatTrees:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The trees as one flat batch in float64, from which all values are made."""
        return FlatTrees(self.family, self.parts, self.lengths, validate=bool(self._validate_args))

    def with_scores(
        self, scores: Tensor | Parts, lengths: Tensor | None = None, *, validate_args: bool | None = None
    ) -> Self:
        """The same kind of distribution, all settings included, with other scores, whose values are not checked.

        Args:
            scores: of all parts, in any batch shape; or of arcs alone, and scores of other parts stay.
            lengths: ``(*batch,)`` of the new scores; those of this distribution if None.
            validate_args: whether items without a tree raise; as here if None.
        """
        lengths = self.lengths if lengths is None else lengths
        parts = scores if isinstance(scores, Parts) else self.parts.with_arcs(scores)
        result = type(self)(*parts, lengths, **self.settings, validate_args=False)  # pyright: ignore[reportCallIssue]
        result._validate_args = self._validate_args if validate_args is None else validate_args
        return result

    @cached_property
    @torch.enable_grad()
    def marginals(self) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The probability of every arc ``(*batch, n+1, n+1)``, differentiable; 0 at column 0, diagonal and padding."""
        return self._round(self.flat.unflat(self.flat.marginals))

    @cached_property
    @torch.enable_grad()
    def part_marginals(self) -> Parts:
        """The probability of every part, of arcs first and of other kinds after them, ``(*batch, ...)`` each."""
        return Parts((self.marginals, *(self._round(self.flat.unflat(part)) for part in self.flat.part_marginals[1:])))

    @cached_property
    def log_marginals(self) -> Tensor:
        """Log probability of every arc ``(*batch, n+1, n+1)``, a constant: exact for the most improbable arcs too.

        By sums that never subtract: -inf exactly where no tree has the arc, and at column 0, the diagonal and padding.
        """
        return self._round(self.flat.unflat(self.flat.log_marginals))

    @property
    def mode(self) -> Tensor:
        """Heads of the best tree ``(*batch, n+1)``."""
        return self.flat.unflat(self.flat.heads)

    def topk(self, k: int) -> tuple[Tensor, Tensor]:
        """The k best trees: heads ``(*batch, k, n+1)`` and their unnormalised scores ``(*batch, k)``, best first.

        Exact and distinct ([KBest]; projective ones by Huang and Chiang 2005). Past the number of trees heads are -1
        and scores -inf.

        Raises:
            TreeparseError: unless k is a whole number, 1 or more.
        """
        found = self.flat.k_best(check_count(k))
        scores, heads = sort_by_score(found.scores[:, :k], found.heads[:, :k])
        return self.flat.as_batch(heads), self._round(self.flat.as_batch(scores))

    def best_first(self) -> Iterator[tuple[Tensor, Tensor]]:
        """All trees, best first, made as they are asked for: heads ``(*batch, n+1)``, scores ``(*batch,)``.

        Shorter lists are padded as in ``topk``; the iteration ends with the longest.
        """
        found = self.flat.k_best(1)
        for index in growing_indices(found):
            yield self.flat.as_batch(found.heads[:, index]), self._round(self.flat.as_batch(found.scores[:, index]))

    def minimum_risk(self) -> Tensor:
        """Heads ``(*batch, n+1)`` of the tree of the support with the highest expected UAS, the MBR tree.

        That is the best tree where an arc's score is its probability ([Exp] §6.1); ties go as for ``mode``.
        """
        flat = self.flat
        expected = torch.where(flat.arcs > -torch.inf, flat.marginals, -torch.inf).detach()
        return flat.unflat(flat.with_parts(flat.parts.detach().neutral().with_arcs(expected)).heads)

    def sample(self, sample_shape: Size | Sequence[int] = (), *, generator: Generators = None) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Heads ``(*sample, *batch, n+1)`` of exact, independent samples.

        One seed an item is drawn from ``generator``, torch's default one if None; or from one generator an item, in the
        order of the flat batch: then an item's samples do not depend on its batch. Fewer samples by an equal generator
        are the first of more.
        """
        return self._sample(sample_shape, generator)

    def _sample(
        self, sample_shape: Size | Sequence[int], generator: Generators, method: Method | None = None
    ) -> Tensor:
        shape = Size(sample_shape)
        heads = self.flat.sample(item_seeds(generator, self.batch_shape.numel()), shape.numel(), method)
        return heads.transpose(0, 1).reshape(shape + self.scores.shape[:-1])

    def relaxed_sample(self, temperature: float, hard: bool = False, *, generator: Generators = None) -> Tensor:
        """A random tree made soft ``(*batch, n+1, n+1)``, differentiable in the scores: a layer over latent trees.

        These are the marginals of the distribution whose scores are perturbed by Gumbel noise and divided by the
        temperature (Paulus et al. 2020, *Gradient estimation with stochastic softmax tricks*). As the temperature falls
        they become the best tree of the perturbed scores (perturb and MAP), whose law is near that of ``sample``, not
        the same. For structured attention, words take from their heads what a relaxed tree gives them::

            tree = NonProjectiveCRF(scores, lengths).relaxed_sample(0.5)
            words = tree.transpose(-2, -1) @ vectors  # (batch, n+1, size)

        Args:
            temperature: above 0.
            hard: whether the tree itself is returned, 0 and 1 exactly, with the gradient of the soft one.
            generator: as for ``sample``.

        Raises:
            TreeparseError: as ``tempered``.
        """
        check_hard(hard)
        p = self.with_scores(perturbed(self.scores, self.batch_shape, generator))
        relaxed = p.tempered(temperature).marginals
        return (straight_through(relaxed, arcs_of(p.mode)) if hard else relaxed).to(self.scores.dtype)

    def sample_without_replacement(
        self, k: int, *, generator: Generators = None, method: DistinctMethod | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Different trees in the order drawn, each from all that are left: heads, log probabilities and keys.

        Keys are the log probabilities of all trees plus independent Gumbel noise, and the trees those of the k largest:
        what estimators without replacement need (``treeparse.trees.estimators``; Kool et al. 2019, *Stochastic beams
        and where to find them*). An item with fewer than k trees has each of them once; its probabilities then sum
        to 1.

        Args:
            k: the number of trees an item.
            generator: as for ``sample``.
            method: "repeat" draws with replacement and drops repeats, until they dominate; "trie" keeps what remains
                under every prefix ([Unb] §5); "beam" is a stochastic beam search on the scores' device, for
                non-projective trees. All have the same law, but not the same trees for a seed. None takes "repeat" on
                the CPU and for projective trees, otherwise "beam".

        Returns:
            Heads ``(*batch, k, n+1)``, log probabilities ``(*batch, k)`` in nats, and keys ``(*batch, k)``, which
            descend. Past the number of trees heads are -1, log probabilities and keys -inf.

        Raises:
            TreeparseError: unless k is a whole number, 1 or more; for a method that does not exist.
        """
        seeds = item_seeds(generator, self.batch_shape.numel())
        heads, log_probs, keys = self.flat.sample_without_replacement(seeds, check_count(k), method)
        return heads, self._round(log_probs), self._round(keys)

    def expected_uas(self, heads: Tensor) -> Tensor:
        """The share ``(*batch,)`` of words with a known head that a random tree is expected to get right.

        ``heads`` ``(*batch, n+1)`` are negative where unknown; without any known head it is 1. Differentiable ([Exp]
        §6.1).
        """
        return self._round(self._expected_accuracy(heads))

    def risk(self, heads: Tensor) -> Tensor:
        """The expected share of wrong heads, 1 - ``expected_uas``: the loss of minimum-risk training."""
        return self._round(1 - self._expected_accuracy(heads))

    def _expected_accuracy(self, heads: Tensor) -> Tensor:
        heads = check_heads(heads, self.word_mask)
        if self._validate_args:
            check_head_range(heads, self.lengths)
        return expected_accuracy(self.flat.unflat(self.flat.marginals), heads)

    def given(self, heads: Tensor) -> Self:
        """The same distribution, conditioned on these heads ``(*batch, n+1)``; a negative one leaves a word's open.

        Arcs that compete with a known head get the score -inf. Differentiable in the scores. Where no tree has these
        heads, the result is a distribution without a tree.

        Raises:
            TreeparseError: for heads that are no integers, have another shape, or lie beyond the words.
        """
        heads = check_heads(heads, self.word_mask, name="Known heads")
        if self._validate_args or readable_without_sync(heads):
            check_head_range(heads, self.lengths)
        competing = (heads >= 0).unsqueeze(-2) & ~arcs_of(heads)
        return self.with_scores(self.scores.masked_fill(competing, -torch.inf))

    def within(self, mask: Tensor) -> Self:
        """The same distribution over the trees all of whose arcs lie in a mask ``(*batch, n+1, n+1)`` bool.

        For ambiguous supervision: ``p.log_partition - p.within(mask).log_partition`` is the negative log probability of
        all trees within the mask together. Column 0, the diagonal and padding are ignored. Where no tree lies within,
        the result is a distribution without a tree.

        Raises:
            TreeparseError: for a mask that is not bool or has another shape; dimensions of size 1 broadcast.
        """
        check_mask(mask, self.scores)
        return self.with_scores(self.scores.masked_fill(~mask, -torch.inf))

    def detach(self) -> Self:
        """The same distribution, a constant for autograd."""
        return self.with_scores(self.parts.detach())

    def of_items(self, items: Tensor) -> Self:
        """The distributions of items ``(I,)`` of a flat batch, in order; there it is no error to have no tree."""
        return self.with_scores(self.parts.of_items(items), self.lengths[items], validate_args=False)

    def tempered(self, temperature: float) -> Self:
        """The distribution whose probabilities are proportional to the power ``1 / temperature`` of these; float64.

        Raises:
            TreeparseError: unless the temperature is above 0 and, arguments being validated, scores stay in range.
        """
        if not temperature > 0:
            raise TreeparseError(f"A temperature must be above 0, got {temperature}.")
        parts = self.parts.map(lambda part: part.double() / temperature)
        if self._validate_args:
            check_scores(parts.arcs, self.lengths)
            check_other_parts(parts, self.family.kinds, self.lengths, values=True)
        return self.with_scores(parts)

    def log_prob(self, value: Tensor) -> Tensor:
        """Log probability ``(*sample, *batch)`` of head lists ``(*sample, *batch, n+1)``; -inf for what is no tree.

        Raises:
            TreeparseError: for heads that are no integers or have another shape; and, arguments being validated, for
                lists that lack the heads of some words alone, or that hold what is no node.
        """
        total, possible = self._checked_score(value)
        return self._round(torch.where(possible, total - self.flat.log_partition, -torch.inf))

    def score(self, value: Tensor) -> Tensor:
        """Summed scores ``(*sample, *batch)`` of head lists ``(*sample, *batch, n+1)``; else as ``log_prob``."""
        total, possible = self._checked_score(value)
        return self._round(torch.where(possible, total, -torch.inf))

    def _in_support(self, value: Tensor) -> Tensor:
        """Which head lists are trees without a forbidden arc."""
        return self._score(check_heads(value, self.word_mask, samples=True))[1]

    def _checked_score(self, value: Tensor) -> tuple[Tensor, Tensor]:
        """``_score`` of lists as they are given; raises for what can be no tree of any scores."""
        heads = check_heads(value, self.word_mask, samples=True)
        total, possible = self._score(heads)
        if self._validate_args and not bool(possible.all()):  # as lists mostly are, and the check takes longer
            check_whole_trees(heads, self.word_mask, self.lengths)
        return total, possible

    def _score(self, heads: Tensor) -> tuple[Tensor, Tensor]:
        """Summed scores of head lists ``(*sample, *batch, n+1)``, and which of them are trees of finite score."""
        total, possible = self.flat.scores_of(self.flat.samples_of(heads))
        return total.reshape(heads.shape[:-1]), possible.reshape(heads.shape[:-1])

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All trees ``(trees, *batch, n+1)``, by head of word 1, then 2, ...; items with fewer trees are padded by -1.

        Raises:
            TreeparseError: for more than 7 words, where there are too many trees.
        """
        check_enumerable(self.scores.shape[-1] - 1)
        parts, lengths = self.flat.parts.detach(), self.flat.lengths
        trees = []
        for item in map(slice, range(len(lengths)), range(1, len(lengths) + 1)):
            one = FlatTrees(self.family, parts.of_items(item), lengths[item], validate=False)
            heads = head_lists(lengths[item], self.scores.shape[-1])
            _, is_possible = one.scores_of(heads.unsqueeze(1))
            trees.append(heads[is_possible.squeeze(1)])
        return pad_lists(trees, like=self.scores[..., 0])

    def expand(self, batch_shape: Any, _instance: Any = None) -> Self:
        """The same distribution with new leading batch dimensions, sharing memory."""
        parts = self.parts.expand(batch_shape, len(self.batch_shape))
        return self.with_scores(parts, self.lengths.expand(batch_shape))

    def __repr__(self) -> str:
        shape = tuple(self.scores.shape)
        return f"{type(self).__name__}(scores: {shape} {self.scores.dtype}, single_root={self.single_root})"

    def comparable(self, q: TreeDistribution) -> TreeDistribution:
        """q, or an error that says why it cannot be compared with this distribution."""
        if not isinstance(q, TreeCRF):
            raise TreeparseError(f"A {type(self).__name__} must be compared with a TreeCRF, got a {type(q).__name__}.")
        if q.scores.shape != self.scores.shape:
            shapes = f"{tuple(self.scores.shape)} and {tuple(q.scores.shape)}"
            raise TreeparseError(f"Two distributions to compare must have one shape, got different shapes, {shapes}.")
        if self._validate_args or readable_without_sync(self.lengths):
            check_equal_lengths(self.lengths, q.lengths)
        if q.family.kinds != self.family.kinds[: len(q.family.kinds)]:
            raise TreeparseError(
                f"-E_p[log q] needs marginals of all parts that q scores: p scores {named(self.family.kinds)}, "
                f"q scores {named(q.family.kinds)}."
            )
        return q
