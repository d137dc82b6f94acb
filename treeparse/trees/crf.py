"""The base class of distributions over unlabelled trees: arguments, checks and the torch.distributions interface."""

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Self

import torch
from torch import Size, Tensor

from treeparse.batch import is_plain, readable_without_sync
from treeparse.errors import TreeparseError
from treeparse.lazy import cached_property, graph_property
from treeparse.pictures import distribution_in_notebook
from treeparse.trees import operators
from treeparse.trees.batched_trees import BatchedTrees
from treeparse.trees.checks import (
    BROADCASTING,
    check_count,
    check_head_range,
    check_heads,
    check_other_parts,
    check_scores,
    check_shape,
    check_tensor,
    check_whole_trees,
    clamped,
    fits,
    full_lengths,
)
from treeparse.trees.distribution import TreeDistribution
from treeparse.trees.families import DistinctMethod, Family, Method
from treeparse.trees.look_ups import rows_at
from treeparse.trees.part_values import expected_accuracy
from treeparse.trees.parts import Parts, arcs_agreeing_with, arcs_of, named, straight_through
from treeparse.trees.randomness import Generators, item_seeds, perturbed
from treeparse.trees.tree_lists import (
    MAX_ENUMERATED_WORDS,
    BestTrees,
    DrawnTrees,
    growing_indices,
    head_lists,
    pad_lists,
    sort_by_score,
)

SHOWN = 4  # sentences of a batch in a notebook
MIN_TEMPERATURE = 1e-12  # by which scores stay far from the largest float64


class TreeCRF(TreeDistribution):
    """A distribution over trees whose log probability is, up to a constant, the summed score of the tree's parts.

    A subclass names its ``tree_family``, or has a ``family`` of its own.

    The parts are arcs and, in some families, further kinds (``parts``). Node 0 is the root and node ``j`` the ``j``-th
    word; ``scores[..., head, dependent]``. -inf forbids a part; finite scores lie between -1e6 and 1e6
    (``MAX_SCORE``). Column 0, the diagonal and entries beyond ``lengths`` are ignored, whatever they hold. A tree is a
    head list ``(n+1,)``: the head of every word, and -1 at node 0 and at padding. In arguments, anything may pad
    (``help("treeparse.trees.checks")``).

    Log partitions, log probabilities, marginals, risks and their gradients are right to nine digits for float64 scores
    of all these sizes (``scripts/experiments/measure_accuracy.py``). Entropies and divergences are differences of large
    numbers: they are right to 1e-9 nats for scores up to 1e3, to 3e-8 up to 1e4, and to 1e-3 where scores of 1e6 tie.

    Of trees of equal score, the tree of shorter arcs in sum is the better one, then the tree of the greater sum of
    fixed pseudo-random keys of arcs. The rule is the same for every kind of distribution, and the tree does not depend
    on the batch. Scores are equal if their sums are, rounding included: where
    sums differ in their last digits alone, ``mode`` and ``topk`` may name different trees.

    Values share one graph: add up the terms of a loss and call ``backward`` once for each distribution. Log partitions
    and ``log_prob`` are differentiable twice; marginals, expectations, entropies, risks and divergences once.

    ``torch.func`` transforms all of these, and ``torch.compile`` and ``torch.export`` trace them in one graph, except
    for lists (``topk``, ``best_first``, ``enumerate_support``) and draws without replacement. Arguments are not
    validated there, because values cannot be read, nor by default in all that a process does after ``torch.compile``,
    which turns torch's default off. ``help("treeparse.trees.operators")`` lists what torch cannot do.

    Without ``validate_args`` no method causes a device sync, so that a CUDA graph can hold a whole training step:
    lengths on the device are clamped, and known heads are not checked. The exceptions are lists (``topk``,
    ``best_first``, ``enumerate_support``), sparse values, draws without replacement except by "beam", and divergences
    between distributions of different classes.

    Args:
        scores: ``(*batch, n+1, n+1)`` log weights of arcs in any floating dtype; sums over trees are taken in float64.
        lengths: ``(*batch,)`` numbers of words, without the root, in any integer dtype; all ``n`` if None. A sentence
            without words has one tree, which has no part and whose log weight is 0, with a single root too.
        others: scores ``(*batch, ...)`` of the family's further kinds of part, in their order. A subclass with such
            parts takes their scores as positional arguments between ``scores`` and ``lengths``.
        single_root: whether exactly one word hangs from the root.
        validate_args: whether NaN, +inf and too large scores and items without a tree raise; torch's default if None.

    Raises:
        TreeparseError: a ``ValueError``, for scores or lengths that fit no batch of sentences.
        NoTreeError: in the first method that needs a tree of a batch item without one. Without ``validate_args`` the
            item's log partition and log probabilities are -inf, its marginals 0 and its heads -1. A larger score then
            counts as 1e6 of its sign, and NaN as -inf.
    """

    batched: BatchedTrees  # the trees in float64, from which all values are computed

    tree_family: ClassVar[type[Family]]
    search_limits: ClassVar[tuple[int, int] | None] = None  # of a parser in training and otherwise: its ``limit``

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "tree_family" in vars(cls):
            operators.MAKERS[cls.tree_family.name] = cls.make_family

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
        for part in others:
            check_tensor(part, "Scores of parts besides arcs")
        plain = all(map(is_plain, (scores, *others)))
        if scores.is_meta or not plain:  # values cannot be read
            validate_args = False
        self.single_root = single_root
        super().__init__(scores.shape[:-2], scores.shape[-1:], validate_args=validate_args)
        self.lengths: Tensor = full_lengths(scores, lengths, validate=bool(self._validate_args))
        self.parts = Parts((scores, *others))
        if self._validate_args:
            check_scores(scores, self.lengths)
        else:
            self.parts = self.parts.map(clamped)
        self.scores = self.parts[0]
        if others:
            check_other_parts(self.parts, self.family.part_kinds, self.lengths, values=bool(self._validate_args))
        validate = bool(self._validate_args)
        self.batched = BatchedTrees(self.family, self.parts, self.lengths, validate=validate, plain=plain)

    @classmethod
    def make_family(cls, device: torch.device, single_root: bool, option: str = "") -> Family:
        """Return the family for scores on a device; ``option`` tells it from others of its class."""
        del device, option
        return cls.tree_family(single_root)

    @property
    def family(self) -> Family:
        """The family, which defines the trees and computes sums, best trees and draws."""
        return self.make_family(self.scores.device, self.single_root)

    @property
    def dtype(self) -> torch.dtype:
        return torch.promote_types(self.scores.dtype, torch.float32)

    @property
    def has_sums(self) -> bool:
        return self.family.has_sums

    @property
    def kind_of_trees(self) -> str:
        return f"{type(self).__name__} with {'one root' if self.single_root else 'many roots'}"

    def with_scores(
        self, scores: Tensor | Parts, lengths: Tensor | None = None, *, validate_args: bool | None = None
    ) -> Self:
        """Return the same distribution under other scores, whose values are not checked.

        Args:
            scores: of all parts, in any batch shape; or of arcs alone, where other parts keep their scores.
            lengths: ``(*batch,)`` of the new scores; None takes this distribution's lengths.
            validate_args: whether items without a tree raise; None takes this distribution's setting.
        """
        parts = scores if isinstance(scores, Parts) else Parts((scores, *self.parts[1:]))
        result = self._replaced(
            scores=parts[0],
            parts=parts,
            lengths=self.lengths if lengths is None else lengths,
            _batch_shape=parts[0].shape[:-2],
            _event_shape=parts[0].shape[-1:],
            _validate_args=self._validate_args if validate_args is None else validate_args,
        )
        result.batched = BatchedTrees(result.family, parts, result.lengths, validate=bool(result._validate_args))
        return result

    @graph_property
    def marginals(self) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The probability of every arc ``(*batch, n+1, n+1)``, differentiable; 0 at column 0, diagonal and padding."""
        return self.batched.in_batch_shape(self.batched.part_marginals_as_given[0]).to(self.dtype)

    @graph_property
    def part_marginals(self) -> Parts:
        """The probability of every part, arcs first and other kinds after them, ``(*batch, ...)`` each."""
        others = self.batched.part_marginals_as_given.others
        return Parts((self.marginals, *(self._round(self.batched.in_batch_shape(part)) for part in others)))

    @cached_property
    def log_marginals(self) -> Tensor:
        """Log probability of every arc ``(*batch, n+1, n+1)``, a constant: exact for the most improbable arcs too.

        It is -inf exactly where no tree has the arc, and at column 0, the diagonal and padding. No sum subtracts.
        ``p.marginals`` has a gradient.
        """
        return self._round(self.batched.in_batch_shape(self.batched.log_marginals))

    @property
    def mode(self) -> Tensor:
        """Heads of the best tree ``(*batch, n+1)``."""
        return self.batched.in_batch_shape(self.batched.heads)

    def topk(self, k: int) -> BestTrees:
        """Return the k best trees: heads ``(k, *batch, n+1)``, unnormalised scores and log_probs ``(k, *batch)``.

        Exact and distinct, best first ([KBest]; projective ones by Huang and Chiang 2005). Past the number of trees
        heads are -1, scores and log probabilities -inf. All three are constants: ``p.score(best.heads)`` and
        ``p.log_prob(best.heads)`` have gradients.

        Raises:
            TreeparseError: unless k is an integer, 1 or more.
        """
        trees = self.batched.k_best(check_count(k))
        return BestTrees(*self._with_log_probs(*sort_by_score(trees.scores[:, :k], trees.heads[:, :k])))

    def best_first(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield all trees, best first: heads ``(*batch, n+1)`` and scores ``(*batch,)``, each computed on request.

        Shorter lists are padded as in ``topk``; the iteration ends with the longest. Both are constants:
        ``p.score(heads)`` has a gradient.
        """
        trees = self.batched.k_best(1)
        for index in growing_indices(trees):
            heads, scores = self._listed(trees.scores[:, index], trees.heads[:, index])
            yield heads, self._round(scores)

    def minimum_risk(self) -> Tensor:
        """Return heads ``(*batch, n+1)`` of the tree of the support with the highest expected UAS, the MBR tree.

        It is the best tree under the arcs' probabilities as scores ([Exp] §6.1); ties are broken as for ``mode``.
        """
        batched = self.batched
        expected = torch.where(batched.arcs > -torch.inf, batched.marginals, -torch.inf).detach()
        return batched.in_batch_shape(batched.with_parts(batched.parts.detach().neutral().with_arcs(expected)).heads)

    def sample(  # pyright: ignore[reportIncompatibleMethodOverride]
        self,
        sample_shape: Size | Sequence[int] = (),
        *,
        generator: Generators = None,
        method: Method | None = None,
    ) -> Tensor:
        """Draw exact, independent samples: heads ``(*sample, *batch, n+1)``.

        One seed an item is drawn from ``generator``, by default torch's. A list holds one generator an item, in the
        order of the flat batch: then an item's samples do not depend on its batch. With equal generators, a smaller
        number of samples are the first of a larger one.

        ``method`` is for ``NonProjectiveCRF``: "expansion", which takes O(n^3) once and O(n^2) a tree for all scores;
        or random walks, which are faster on flat scores ([Samp]; [Unb]): "wilson" for any number of roots,
        "wilson_marginal" for a single root. None takes a fast method for each item.
        """
        shape = Size(sample_shape)
        heads = self.batched.sample(item_seeds(generator, self.batch_shape.numel()), shape.numel(), method)
        return heads.transpose(0, 1).reshape(shape + self.scores.shape[:-1])

    def relaxed_sample(self, temperature: float, hard: bool = False, *, generator: Generators = None) -> Tensor:
        """Draw a relaxed tree ``(*batch, n+1, n+1)``, differentiable in the scores: a layer over latent trees.

        The result is the marginals of the distribution whose scores of arcs are perturbed by Gumbel noise, all scores
        being divided by the temperature (Paulus et al. 2020, *Gradient estimation with stochastic softmax tricks*). As
        the temperature falls, it becomes the best tree of the perturbed scores (perturb and MAP), whose law is near the
        law of ``sample``, but not the same. In structured attention, a relaxed tree weighs the heads of each word::

            tree = NonProjectiveCRF(scores, lengths).relaxed_sample(0.5)
            words = tree.transpose(-2, -1) @ vectors  # (batch, n+1, size)

        Args:
            temperature: above 0.
            hard: whether to return the tree itself, exactly 0 and 1, with the gradient of the relaxed tree.
            generator: as for ``sample``.

        Raises:
            TreeparseError: as ``tempered``.
        """
        p = self.with_scores(perturbed(self.scores, self.batch_shape, generator))
        relaxed = p.tempered(temperature).marginals
        return (straight_through(relaxed, arcs_of(p.mode)) if hard else relaxed).to(self.scores.dtype)

    def sample_without_replacement(
        self, k: int, *, generator: Generators = None, method: DistinctMethod | None = None
    ) -> DrawnTrees:
        """Draw different trees in order, each from all that are left: heads, log probabilities and keys.

        A key is a tree's log probability plus independent Gumbel noise, and the drawn trees have the k largest keys.
        Estimators without replacement use keys (``treeparse.trees.estimators``; Kool et al. 2019, *Stochastic beams and
        where to find them*). An item with fewer than k trees has each tree once; its probabilities then sum to 1.

        Args:
            k: the number of trees an item.
            generator: as for ``sample``.
            method: "repeat" draws with replacement and drops repeats, until they dominate; "trie" stores the mass that
                remains under every prefix ([Unb] §5); "beam" is a stochastic beam search on the scores' device, for
                non-projective trees. All have the same law, but not the same trees for a seed. None takes "repeat" on
                the CPU and for projective trees, otherwise "beam".

        Returns:
            Heads ``(k, *batch, n+1)``, log_probs ``(k, *batch)`` in nats, and keys ``(k, *batch)``, which descend.
            Past the number of trees heads are -1, log probabilities and keys -inf. All three are constants:
            ``p.log_prob(drawn.heads)`` has a gradient.

        Raises:
            TreeparseError: unless k is an integer, 1 or more; for an unknown method.
        """
        seeds = item_seeds(generator, self.batch_shape.numel())
        columns = self.batched.sample_without_replacement(seeds, check_count(k), method)
        heads, log_probs, keys = (column.movedim(len(self.batch_shape), 0) for column in columns)
        return DrawnTrees(heads, self._round(log_probs), self._round(keys))

    def expected_uas(self, heads: Tensor) -> Tensor:
        """Return the expected share ``(*batch,)`` of words with a known head whose head is right in a random tree.

        ``heads`` ``(*batch, n+1)`` are negative where unknown; without any known head the share is 1. Differentiable
        ([Exp] §6.1).
        """
        return self._round(self._expected_accuracy(heads))

    def risk(self, heads: Tensor) -> Tensor:
        """Return the expected share of wrong heads, 1 - ``expected_uas``: the loss of minimum-risk training."""
        return self._round(1 - self._expected_accuracy(heads))

    def _expected_accuracy(self, heads: Tensor) -> Tensor:
        heads = check_heads(heads, self.word_mask)
        if self._validate_args:
            check_head_range(heads, self.lengths)
        return expected_accuracy(self.batched.in_batch_shape(self.batched.marginals), heads)

    def given(self, heads: Tensor) -> Self:
        """Condition this distribution on heads ``(*batch, n+1)``; a negative number leaves a word's head open.

        Arcs that compete with a known head get the score -inf. Differentiable in the scores. Where no tree has these
        heads, the result is a distribution without a tree.

        Raises:
            TreeparseError: for heads that are not integers, have another shape, or lie beyond the words.
        """
        heads = check_heads(heads, self.word_mask, name="Known heads")
        if self._validate_args or readable_without_sync(heads):
            check_head_range(heads, self.lengths)
        return self.with_scores(self.scores.masked_fill(~arcs_agreeing_with(heads), -torch.inf))

    def within(self, mask: Tensor) -> Self:
        """Restrict this distribution to the trees whose arcs all lie in a mask ``(*batch, n+1, n+1)`` bool.

        For ambiguous supervision: ``p.log_partition - p.within(mask).log_partition`` is the negative log probability of
        all trees within the mask together. Column 0, the diagonal and padding are ignored. Where no tree lies within,
        the result is a distribution without a tree.

        Raises:
            TreeparseError: for a mask that is not bool or has another shape; dimensions of size 1 broadcast.
        """
        check_tensor(mask, "A mask of arcs")
        if mask.dtype != torch.bool or not fits(tuple(mask.shape), tuple(self.scores.shape)):
            raise TreeparseError(
                f"A mask of arcs must be torch.bool of the scores' shape {tuple(self.scores.shape)}, got {mask.dtype} "
                f"{tuple(mask.shape)}: {BROADCASTING}."
            )
        return self.with_scores(self.scores.masked_fill(~mask, -torch.inf))

    def detach(self) -> Self:
        """Return the same distribution as a constant for autograd."""
        return self.with_scores(self.parts.detach())

    def __getitem__(self, index: Any) -> Self:
        """Select from the batch, as a tensor of the batch's shape is indexed: ``p[0]``, ``p[2:5]``, ``p[mask]``."""
        places, axes = self._positions(index), len(self.batch_shape)
        parts = self.parts.map(lambda part: rows_at(part.reshape(-1, *part.shape[axes:]), places))
        return self.with_scores(parts, self.lengths.reshape(-1)[places])

    def to(self, device: torch.device | str) -> Self:
        """Return the same distribution over scores on a device."""
        return self.with_scores(self.parts.to(device), self.lengths.to(device))

    def of_items(self, items: Tensor) -> Self:
        """Select items ``(I,)`` of a flat batch, in order; in the result, an item without a tree is no error."""
        items = self._positions(items)
        return self.with_scores(self.parts.of_items(items), self.lengths[items], validate_args=False)

    def tempered(self, temperature: float) -> Self:
        """Raise all probabilities to the power ``1 / temperature`` and normalise them; float64.

        Raises:
            TreeparseError: unless the temperature is at least ``MIN_TEMPERATURE``.
        """
        if not temperature >= MIN_TEMPERATURE:
            raise TreeparseError(f"A temperature must be above 0, at least {MIN_TEMPERATURE}, got {temperature}.")
        return self.with_scores(self.parts.map(lambda part: part.double() / temperature))

    def log_prob(self, value: Tensor) -> Tensor:
        """Return log probabilities ``(*sample, *batch)`` of head lists ``(*sample, *batch, n+1)``; -inf for no tree.

        Raises:
            TreeparseError: for heads that are not integers or have another shape; and, with validated arguments, for
                lists that lack the heads of some words only, or with heads that are no nodes.
        """
        scores, possible = self._checked_scores(value)
        return self._round(torch.where(possible, scores - self.batched.log_partition, -torch.inf))

    def score(self, value: Tensor) -> Tensor:
        """Return scores ``(*sample, *batch)`` of head lists ``(*sample, *batch, n+1)``; otherwise as ``log_prob``."""
        scores, possible = self._checked_scores(value)
        return self._round(torch.where(possible, scores, -torch.inf))

    def _in_support(self, value: Tensor) -> Tensor:
        """Tell which head lists are trees without a forbidden part."""
        heads = check_heads(value, self.word_mask, samples=True)
        return self.batched.scores_of(self.batched.samples_of(heads))[1].reshape(heads.shape[:-1])

    def _checked_scores(self, value: Tensor) -> tuple[Tensor, Tensor]:
        """Return the scores of head lists ``(*sample, *batch, n+1)``, and which lists are trees of finite score.

        Lists that are no trees, whatever the scores, raise.
        """
        heads = check_heads(value, self.word_mask, samples=True)
        scores, possible = self.batched.scores_of(self.batched.samples_of(heads))
        if self._validate_args and not bool(possible.all()):  # because the check takes longer
            check_whole_trees(heads, self.word_mask, self.lengths)
        return scores.reshape(heads.shape[:-1]), possible.reshape(heads.shape[:-1])

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """Return all trees ``(trees, *batch, n+1)``, by head of word 1, then 2, and so on; -1 pads items with fewer.

        Raises:
            TreeparseError: for more than 7 words, which have too many trees.
        """
        if self.scores.shape[-1] > MAX_ENUMERATED_WORDS + 1:
            words = self.scores.shape[-1] - 1
            raise TreeparseError(f"The support can be enumerated for up to {MAX_ENUMERATED_WORDS} words, got {words}.")
        self.batched.check_values()
        parts, lengths = self.batched.parts.detach(), self.batched.lengths
        trees = []
        for item in map(slice, range(len(lengths)), range(1, len(lengths) + 1)):
            trees_of_item = BatchedTrees(self.family, parts.of_items(item), lengths[item], validate=False)
            heads = head_lists(lengths[item], self.scores.shape[-1])
            _, is_possible = trees_of_item.scores_of(heads.unsqueeze(1))
            trees.append(heads[is_possible.squeeze(1)])
        return pad_lists(trees, like=self.scores[..., 0])

    def expand(self, batch_shape: Any, _instance: Any = None) -> Self:
        """Add leading batch dimensions; memory is shared."""
        batch_shape = self._expanded(batch_shape)
        parts = self.parts.expand(batch_shape, len(self.batch_shape))
        return self.with_scores(parts, self.lengths.expand(batch_shape))

    def __repr__(self) -> str:
        shape = tuple(self.scores.shape)
        return f"{type(self).__name__}(scores: {shape} {self.scores.dtype}, single_root={self.single_root})"

    def _repr_html_(self) -> str | None:
        """Return the probabilities of the first sentences' arcs as heat maps, for notebooks; None without sums."""
        return arcs_in_notebook(self, repr(self))

    def comparable(self, q: TreeDistribution) -> TreeDistribution:
        """Return q, or raise if it cannot be compared with this distribution."""
        if not isinstance(q, TreeCRF):
            raise TreeparseError(f"A {type(self).__name__} must be compared with a TreeCRF, got a {type(q).__name__}.")
        if q.scores.shape != self.scores.shape:
            shapes = f"{tuple(self.scores.shape)} and {tuple(q.scores.shape)}"
            raise TreeparseError(f"Two distributions to compare must have one shape, got different shapes, {shapes}.")
        lengths, can_read = self.lengths, self._validate_args or readable_without_sync(self.lengths)
        if can_read and q.lengths is not lengths and not torch.equal(q.lengths.to(lengths.device), lengths):
            raise TreeparseError("Two distributions to compare must be over the same lengths, got different lengths.")
        if q.family.part_kinds != self.family.part_kinds[: len(q.family.part_kinds)]:
            raise TreeparseError(
                f"-E_p[log q] needs marginals of all parts that q scores: p scores {named(self.family.part_kinds)}, "
                f"q scores {named(q.family.part_kinds)}."
            )
        return q


def arcs_in_notebook(trees: TreeCRF, text: str) -> str | None:
    """Return a text and the probabilities of the first sentences' arcs as heat maps; None without sums."""
    if not trees.has_sums:
        return None
    batched, shown = trees.detach().batched, slice(min([SHOWN, *trees.batch_shape[-1:]]))
    batched = BatchedTrees(trees.family, batched.parts.of_items(shown), batched.lengths[shown], validate=False)
    sizes = (batched.lengths + 1).tolist()
    marginals = [item[:size, :size].tolist() for item, size in zip(batched.marginals, sizes, strict=True)]
    return distribution_in_notebook(text, marginals, trees.batch_shape.numel() - len(sizes))
