"""How probable arcs are, each by itself: those of given trees, or all."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from treeparse.trees.checks import check_head_range, check_trees
from treeparse.trees.labels import sums
from treeparse.trees.labels.crf import LabeledCRF
from treeparse.trees.labels.scores import FlatLabels
from treeparse.trees.mixture import Mixture


class TreeMarginals(NamedTuple):
    """Probabilities ``(*sample, *batch, n+1)``, float64, of what stands in a tree at each word."""

    arcs: Tensor  # that the word has this head, whatever the label
    labeled: Tensor  # that it has this head and this label


def tree_marginals(
    p: LabeledCRF | Mixture, heads: Tensor, labels: Tensor, label_powers: Sequence[float] = (1.0,)
) -> TreeMarginals:
    """The marginals of the arcs, and of the labelled arcs, of trees ``(*sample, *batch, n+1)``: constants.

    Labels are looked up at these arcs alone. What has a head or label of -1, or a label that the distribution does not
    have, has the probability 0. The trees need not be in the support.

    Args:
        p: the distribution.
        heads: of the trees.
        labels: of the trees.
        label_powers: P(label | arc) is proportional to this power of what p has it, which says nothing of arcs. A
            mixture has a power for each component, or one for all; elsewhere the geometric mean of them counts.

    Raises:
        TreeparseError: for heads or labels that are no integers or have another shape, and for a tree's head that is no
            node.
        NoTreeError: as the distribution does.
    """
    if isinstance(p, LabeledCRF):
        return _tree_marginals(p, heads, labels, math.prod(label_powers) ** (1 / len(label_powers)))
    weights = p.log_weights.exp().unsqueeze(-1)
    powers = label_powers if len(label_powers) > 1 else [*label_powers] * len(p.components)
    found = [_tree_marginals(each, heads, labels, power) for each, power in zip(p.components, powers, strict=True)]
    arcs, labeled = (
        torch.stack([w * each for w, each in zip(weights, part, strict=True)]).sum(0)
        for part in zip(*found, strict=True)
    )
    return TreeMarginals(arcs, labeled)


def arc_marginals(p: LabeledCRF | Mixture) -> Tensor:
    """The marginals of all arcs of a batch, whatever their labels: constants ``(B, n+1, n+1)``, float64."""
    if isinstance(p, LabeledCRF):
        return p.arcs.flat.marginals.detach()
    weights = p.log_weights.exp().flatten(1).unsqueeze(-1).unsqueeze(-1)
    return torch.stack([w * arc_marginals(each) for w, each in zip(weights, p.components, strict=True)]).sum(0)


def _tree_marginals(p: LabeledCRF, heads: Tensor, labels: Tensor, label_power: float) -> TreeMarginals:
    heads, labels = check_trees(heads, labels, p.word_mask, samples=True)
    if p.base.flat.validate:
        check_head_range(heads, p.lengths)
    shape = heads.shape
    heads, labels = map(p.base.flat.samples_of, (heads, labels))
    marginals = arc_marginals(p)
    places = heads.clamp(0, heads.shape[-1] - 1).unsqueeze(2)
    found = marginals.expand(len(heads), *marginals.shape).gather(2, places).squeeze(2)
    arcs = torch.where((heads >= 0) & (heads < heads.shape[-1]), found, 0.0)
    known = (arcs > 0) & (labels >= 0) & (labels < p.labels.count)
    log_probs = _label_log_probs(p.labels, torch.where(known, heads, -1), labels, label_power)
    labeled = torch.where(known, arcs * log_probs.exp(), 0.0)
    return TreeMarginals(arcs.reshape(shape), labeled.reshape(shape))


def _label_log_probs(p: FlatLabels, heads: Tensor, labels: Tensor, power: float) -> Tensor:
    """Log probabilities ``(S, B, n+1)`` of labels given their arcs, after the labels' own weights got the power."""
    if power == 1:
        return p.log_probs_of_arcs(heads, labels).detach()
    chosen = labels.clamp(0, p.count - 1).unsqueeze(-1)
    trees = zip(heads, chosen, strict=True)  # one at a time: the scores of all labels are held
    found = [sums.log_probs(p.of_trees(tree) * power).gather(-1, label).squeeze(-1) for tree, label in trees]
    return torch.stack(found).detach()
