"""How probable arcs are, each by itself: those of given trees, or all."""

from typing import NamedTuple

import torch
from torch import Tensor

from treeparse.trees.checks import check_head_range, check_trees
from treeparse.trees.labels.crf import LabeledCRF
from treeparse.trees.mixture import Mixture


class TreeMarginals(NamedTuple):
    """Probabilities ``(*sample, *batch, n+1)``, float64, of what stands in a tree at each word."""

    arcs: Tensor  # that the word has this head, whatever the label
    labeled: Tensor  # that it has this head and this label


def tree_marginals(p: LabeledCRF | Mixture, heads: Tensor, labels: Tensor) -> TreeMarginals:
    """The marginals of the arcs, and of the labelled arcs, of trees ``(*sample, *batch, n+1)``: constants.

    Labels are looked up at these arcs alone. What has a head or label of -1, or a label that the distribution does not
    have, has the probability 0. The trees need not be in the support.

    Raises:
        TreeparseError: for heads or labels that are no integers or have another shape, and for a tree's head that is no
            node.
        NoTreeError: as the distribution does.
    """
    if isinstance(p, LabeledCRF):
        return _tree_marginals(p, heads, labels)
    weights = p.log_weights.exp().unsqueeze(-1)
    found = [_tree_marginals(component, heads, labels) for component in p.components]
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


def _tree_marginals(p: LabeledCRF, heads: Tensor, labels: Tensor) -> TreeMarginals:
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
    log_probs = p.labels.log_probs_of_arcs(torch.where(known, heads, -1), labels).detach()
    labeled = torch.where(known, arcs * log_probs.exp(), 0.0)
    return TreeMarginals(arcs.reshape(shape), labeled.reshape(shape))
