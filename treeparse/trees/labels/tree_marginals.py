"""Probabilities of the arcs of given trees, each arc by itself."""

from typing import NamedTuple

import torch
from torch import Tensor

from treeparse.trees.labels import sums
from treeparse.trees.labels.scores import FlatLabels


class TreeMarginals(NamedTuple):
    """Probabilities ``(*sample, *batch, n+1)``, float64, of the arc into each word of a tree."""

    arcs: Tensor  # of the head, whatever the label
    labeled: Tensor  # of the head and the label


def tree_marginals(
    marginals: Tensor, scores: FlatLabels, heads: Tensor, labels: Tensor, label_power: float
) -> TreeMarginals:
    """Return the marginals of the arcs, and of the labelled arcs, of trees: float64 constants ``(S, B, n+1)``.

    Args:
        marginals: of all arcs ``(B, n+1, n+1)``.
        scores: label scores.
        heads: heads of the trees ``(S, B, n+1)``.
        labels: labels of the trees ``(S, B, n+1)``.
        label_power: P(label | arc) is taken to this power and normalised.
    """
    index = heads.clamp(0, heads.shape[-1] - 1).unsqueeze(2)
    values = marginals.expand(len(heads), *marginals.shape).gather(2, index).squeeze(2)
    arcs = torch.where((heads >= 0) & (heads < heads.shape[-1]), values, 0.0)
    known = (arcs > 0) & (labels >= 0) & (labels < scores.count)
    log_probs = _label_log_probs(scores, torch.where(known, heads, -1), labels, label_power)
    return TreeMarginals(arcs, torch.where(known, arcs * log_probs.exp(), 0.0))


def _label_log_probs(scores: FlatLabels, heads: Tensor, labels: Tensor, power: float) -> Tensor:
    """Return log probabilities ``(S, B, n+1)`` of labels given their arcs, after a power of the label weights."""
    if power == 1:
        return scores.log_probs_of_arcs(heads, labels).detach()
    chosen = labels.clamp(0, scores.count - 1).unsqueeze(-1)
    trees = zip(heads, chosen, strict=True)  # one at a time, because the scores of all labels are in memory
    rows = [sums.log_probs(scores.of_trees(tree) * power).gather(-1, label).squeeze(-1) for tree, label in trees]
    return torch.stack(rows).detach()
