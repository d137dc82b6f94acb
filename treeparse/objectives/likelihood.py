"""Likelihoods of the gold tree: exact over trees, or word by word; what is not known of it is left open."""

import torch
from torch import Tensor

from treeparse.batch import Batch
from treeparse.errors import TreeparseError
from treeparse.trees import LabeledCRF

from .objective import Objective


class TreeLikelihood(Objective):
    """Negative log probability of what is known of the gold tree, among all labelled trees ([MTT] §3).

    A tree of which heads or labels are unknown has the summed probability of all trees that agree with the rest, and
    where several heads of a word are possible, of all trees whose arcs are among the possible ones (Riezler et al.
    2002; Täckström et al. 2013 for dependency trees).
    """

    data = "labelled"

    def forward(self, distribution: LabeledCRF, batch: Batch) -> Tensor:
        """``(B,)`` nats; infinite where complete heads are no tree. Raises where incomplete ones fit no tree."""
        heads, labels = known_tree(batch)
        if batch.allowed is not None:
            known = distribution.given(heads, labels).within(batch.allowed)
            return distribution.log_partition - known.log_partition
        if has_all_heads(batch):
            return -(distribution.arcs.log_prob(heads) + distribution.label_log_prob(heads, labels))
        return distribution.log_partition - distribution.given(heads, labels).log_partition


class HeadSelection(Objective):
    """Negative log probability of each word's gold head among all heads, trees or not ([DM] §3; Zhang et al. 2017).

    That of its label given the gold arc is added. Of several possible heads the probabilities add up.
    """

    data = "labelled"

    def forward(self, distribution: LabeledCRF, batch: Batch) -> Tensor:
        """``(B,)`` nats, summed over the words whose head is known; infinite where a known head is forbidden."""
        heads, labels = known_tree(batch)
        return head_selection(distribution.arcs.scores, batch, heads) - distribution.label_log_prob(heads, labels)


def head_selection(scores: Tensor, batch: Batch, heads: Tensor) -> Tensor:
    """Negative log probability ``(B,)`` of heads ``(B, n+1)`` under a softmax over the heads of every word.

    Of a word whose head is unknown it is that of the heads that the batch allows.
    """
    nodes = scores.shape[-1]
    position = torch.arange(nodes, device=scores.device)
    padding = position > batch.lengths.unsqueeze(-1)
    no_head = padding.unsqueeze(-1) | torch.eye(nodes, dtype=torch.bool, device=padding.device)
    scores = scores.masked_fill(no_head, -torch.inf)
    headless = (scores == -torch.inf).all(-2)
    # Columns of no word may hold NaN, and a word without any allowed head would make one.
    ignored = padding | (position == 0) | headless
    log_probs = scores.masked_fill(ignored.unsqueeze(-2), 0.0).log_softmax(-2)
    gold, known = log_probs.gather(-2, heads.clamp_min(0).unsqueeze(-2)).squeeze(-2), heads >= 0
    if batch.allowed is not None:
        narrowed = ~known & ~batch.allowed.all(-2)
        possible = torch.where(batch.allowed, log_probs, -torch.inf).logsumexp(-2)
        gold, known = torch.where(narrowed, possible, gold), known | narrowed
    return -gold.masked_fill(headless, -torch.inf).masked_fill(~known, 0.0).sum(-1)


def has_all_heads(batch: Batch) -> bool:
    """Whether the head of every word is known."""
    near = batch.near
    return near.heads is not None and bool((near.heads >= 0)[near.word_mask()].all())


def known_tree(batch: Batch) -> tuple[Tensor, Tensor]:
    """Heads and labels of a batch, -1 where unknown; raises where it has none at all."""
    if batch.heads is None or batch.labels is None:
        raise TreeparseError("A training batch holds no trees: training needs sentences with heads and labels.")
    return batch.heads, batch.labels
