"""Likelihoods of the gold tree, exact over trees or word by word, and the entropy of all trees."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

import torch
from torch import Tensor

from treeparse.batch import Batch, moved
from treeparse.errors import NoTreeError, TreeparseError
from treeparse.objectives.objective import Data, Objective, Term, check_smoothing
from treeparse.trees import LabeledCRF
from treeparse.trees.arc_conflicts import has_nonprojective_arc
from treeparse.trees.parts import named


class TreeLikelihood(Objective):
    """Negative log probability of the known heads and labels of the gold tree, among all labelled trees ([MTT] §3).

    A partial tree has the summed probability of all trees that agree with it. If a word has several possible heads, all
    trees with one of them count (Riezler et al. 2002; Täckström et al. 2013 for dependency trees). If the distribution
    has projective trees alone, words with a non-projective arc count as words of unknown head.

    Args:
        smoothing: the share of each known head's probability, and of each known label's, that all possible heads or
            labels of the word get in equal parts. For trees of one root, the loss is then the cross-entropy to the gold
            tree mixed with the uniform distribution over all trees, whose marginals are equal. ``trees: nonprojective``
            alone have these.
    """

    data: ClassVar[Data] = "labelled"

    def __init__(self, smoothing: float = 0.0) -> None:
        super().__init__()
        self.smoothing: float = check_smoothing(smoothing)

    def forward(self, distribution: LabeledCRF, batch: Batch) -> Tensor:
        """``(B,)`` nats; infinite for complete heads that are no tree. Raises if partial heads fit no tree."""
        if not self.smoothing:
            return self._loss(distribution, batch)
        family = distribution.base.family
        if family.part_kinds or not family.crossing:
            raise TreeparseError(
                f"Smoothing spreads the probability of a head over all words, which {family.name} trees do not allow: "
                "train with smoothing 0, or with trees: nonprojective."
            )
        return self._loss(distribution, batch) + self.smoothing * smoothing_loss(distribution, batch)

    def _loss(self, distribution: LabeledCRF, batch: Batch) -> Tensor:
        heads, labels, partial = known_trees(distribution, batch)
        if batch.allowed is not None:
            known = distribution.given(heads, labels).within(batch.allowed)
            return distribution.log_partition - known.log_partition
        if len(partial) == len(batch):
            return distribution.log_partition - distribution.given(heads, labels).log_partition
        whole_heads, whole_labels = (known.index_fill(0, partial, -1) for known in (heads, labels))
        log_probs = distribution.arcs.log_prob(whole_heads) + distribution.label_log_prob(whole_heads, whole_labels)
        if len(partial):
            log_probs = log_probs.index_copy(0, partial, _log_prob_of_partial(distribution, heads, labels, partial))
        return -log_probs


def _log_prob_of_partial(distribution: LabeledCRF, heads: Tensor, labels: Tensor, items: Tensor) -> Tensor:
    """Return the log probability ``(I,)`` of all trees of some items that agree with the known heads and labels."""
    try:
        known = distribution[items].given(heads[items], labels[items]).log_partition
    except NoTreeError:  # which names the item by its place among these
        known = distribution.given(heads, labels).log_partition[items]
    return known - distribution.log_partition[items]


class HeadSelection(Objective):
    """Negative log probability of each word's gold head, each word independently ([DM] §3; Zhang et al. 2017).

    The negative log probability of its label given the gold arc is added. Probabilities of several possible heads add
    up.

    Args:
        smoothing: the share of each known head's probability, and of each known label's, that all possible heads or
            labels of the word get in equal parts (Szegedy et al. 2016, §7).
    """

    data: ClassVar[Data] = "labelled"

    def __init__(self, smoothing: float = 0.0) -> None:
        super().__init__()
        self.smoothing: float = check_smoothing(smoothing)

    def forward(self, distribution: LabeledCRF, batch: Batch) -> Tensor:
        """``(B,)`` nats, summed over the words of known head; infinite if a known head is forbidden.

        Raises:
            TreeparseError: for trees that score more than arcs.
        """
        if distribution.base.family.part_kinds:
            raise TreeparseError(
                f"HeadSelection scores arcs alone, but {distribution.base.family.name} trees score "
                f"{named(distribution.base.family.part_kinds)}: train with TreeLikelihood, MaxMargin or MeanField."
            )
        heads, labels = known_tree(batch)
        loss = head_selection(distribution.arcs.scores, batch, heads) - distribution.label_log_prob(heads, labels)
        return loss + self.smoothing * smoothing_loss(distribution, batch) if self.smoothing else loss


class Entropy(Objective):
    """The entropy of the labelled trees, for sentences with and without gold trees ([Exp] §6.2).

    Added to a likelihood, it makes the parser more confident on unlabelled sentences (Grandvalet and Bengio 2004; Smith
    and Eisner 2007); a negative weight makes it less confident. Alone it has no gradient in a new parser, because all
    trees are equally probable there.

    Args:
        order: the order of the Renyi entropy; 1 is Shannon's entropy.
    """

    scores_all_labels = True

    def __init__(self, order: float = 1.0) -> None:
        super().__init__()
        if not order >= 0:
            raise TreeparseError(f"order must be a number that is at least 0, got {order}.")
        self.order = order

    def forward(self, distribution: LabeledCRF, batch: Batch) -> Tensor:
        """``(B,)`` nats."""
        return distribution.entropy() if self.order == 1 else distribution.renyi_entropy(self.order)


def head_selection(scores: Tensor, batch: Batch, heads: Tensor) -> Tensor:
    """Return the negative log probability ``(B,)`` of heads ``(B, n+1)`` under a softmax over the heads of every word.

    For a word of unknown head, the heads that the batch allows count together.
    """
    scores = _of_possible_heads(scores, batch)
    headless = (scores == -torch.inf).all(-2)
    # Columns that are no word may hold NaN, and a word without any allowed head would make one.
    ignored = ~batch.word_mask() | headless
    log_probs = scores.masked_fill(ignored.unsqueeze(-2), 0.0).log_softmax(-2)
    gold, known = log_probs.gather(-2, heads.clamp_min(0).unsqueeze(-2)).squeeze(-2), heads >= 0
    if batch.allowed is not None:
        narrowed = ~known & ~batch.allowed.all(-2)
        possible = torch.where(batch.allowed, log_probs, -torch.inf).logsumexp(-2)
        gold, known = torch.where(narrowed, possible, gold), known | narrowed
    return -gold.masked_fill(headless, -torch.inf).masked_fill(~known, 0.0).sum(-1)


def smoothing_loss(distribution: LabeledCRF, batch: Batch) -> Tensor:
    """Return how much a batch's known heads and labels score above the mean of all possible ones, summed ``(B,)``.

    This is the derivative of a likelihood's loss in the share of probability that is smoothed: normalising constants
    cancel out, and so do sums over trees.
    """
    heads, labels = known_tree(batch)
    of_heads = _above_mean(_of_possible_heads(distribution.arcs.scores, batch).transpose(-1, -2), heads)
    return (of_heads + _above_mean(distribution.labels.of_trees(heads), torch.where(heads >= 0, labels, -1))).sum(-1)


def _above_mean(scores: Tensor, chosen: Tensor) -> Tensor:
    """Return the scores of chosen columns of ``(B, n+1, C)`` less the means of all finite ones; 0 for none."""
    possible, index = scores > -torch.inf, chosen.clamp_min(0).unsqueeze(-1)
    values = torch.where(possible, scores, 0.0)
    differences = values.gather(-1, index).squeeze(-1) - values.sum(-1) / possible.sum(-1).clamp_min(1)
    return torch.where((chosen >= 0) & possible.gather(-1, index).squeeze(-1), differences, 0.0)


def _of_possible_heads(scores: Tensor, batch: Batch) -> Tensor:
    """Return the scores ``(B, n+1, n+1)`` of arcs, -inf from padding and from a word to itself."""
    nodes = scores.shape[-1]
    position = torch.arange(nodes, device=scores.device)
    padding = position > batch.lengths.unsqueeze(-1)
    no_head = padding.unsqueeze(-1) | torch.eye(nodes, dtype=torch.bool, device=padding.device)
    return scores.masked_fill(no_head, -torch.inf)


def known_trees(distribution: LabeledCRF, batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
    """Return the known heads and labels ``(B, n+1)`` of gold trees, -1 where unknown; raise if nothing is known.

    The third result ``(I,)`` int64 is the items with a word of unknown head. Words with a non-projective arc have no
    known head and label, unless the distribution has such arcs. Causes no device sync.
    """
    heads, labels = known_tree(batch)
    on_cpu = batch.on_cpu
    assert on_cpu.heads is not None
    is_known = on_cpu.heads >= 0
    if not distribution.base.family.crossing:
        opened = has_nonprojective_arc(on_cpu.heads)
        if bool(opened.any()):
            is_known &= ~opened
            opened = moved(opened, heads.device)
            heads, labels = heads.masked_fill(opened, -1), labels.masked_fill(opened, -1)
    partial = (on_cpu.word_mask() & ~is_known).any(-1).nonzero().squeeze(-1)
    return heads, labels, moved(partial, heads.device)


def known_tree(batch: Batch) -> tuple[Tensor, Tensor]:
    """Return heads and labels ``(B, n+1)`` of a batch, -1 where unknown; raise if the batch has none."""
    if batch.heads is None or batch.labels is None:
        raise TreeparseError("A training batch must hold trees, got none: train on sentences with heads and labels.")
    return batch.heads, batch.labels


class MeanField(Objective):
    """An objective of the mean-field approximation, for ``trees: nonprojective_siblings``, which have no probabilities.

    Training through the approximation teaches scores that suit it (Wang and Tu 2020).

    Args:
        objective: the objective; None for ``TreeLikelihood``.
        rounds: the number of rounds of the approximation.
    """

    needs_sums = False

    def __init__(self, objective: Objective | None = None, rounds: int = 3) -> None:
        super().__init__()
        if rounds < 0:
            raise TreeparseError(f"The number of rounds must be 0 or more, got {rounds}.")
        self.objective: Objective = objective or TreeLikelihood()
        self.rounds = rounds

    def forward(self, distribution: LabeledCRF, batch: Batch) -> Tensor:
        """``(B,)`` of the approximation. Raises for trees that need none."""
        return self.objective(distribution.mean_field(self.rounds), batch)

    def terms(self, distribution: LabeledCRF, batch: Batch) -> Sequence[Term]:
        return self.objective.terms(distribution.mean_field(self.rounds), batch)

    def kinds(self) -> Mapping[str, Data]:
        return self.objective.kinds()
