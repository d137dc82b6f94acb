"""Pruning: which arcs of a batch are likely by the scores of arcs alone, for trees that score more than arcs."""

import torch
from torch import Tensor

from treeparse.batch import Batch, moved, readable_without_sync
from treeparse.trees import TreeCRF
from treeparse.trees.arc_conflicts import has_nonprojective_arc
from treeparse.trees.parts import arcs_agreeing_with, arcs_of


@torch.no_grad()
def likely_arcs(trees: TreeCRF, least: float, within: Tensor | None = None) -> Tensor:
    """Return the arcs ``(B, n+1, n+1)`` bool whose marginal is ``least`` or more, and those of the best tree.

    So there is a tree of likely arcs. With ``within``, a mask of arcs, the arcs are added that are likely among the
    trees of that mask: if there is such a tree, there is one of likely arcs.
    """
    likely = _likely(trees, least)
    if within is None:
        return likely
    if readable_without_sync(within) and bool((within.sum(-2) <= 1)[trees.word_mask].all()):
        return likely | (within & trees.word_mask.unsqueeze(-2))  # complete trees
    scores = trees.scores.masked_fill(~within, -torch.inf)
    return likely | _likely(trees.with_scores(scores, validate_args=False), least)  # of a mask without a tree, nothing


def _likely(trees: TreeCRF, least: float) -> Tensor:
    return (trees.marginals >= least) | arcs_of(trees.mode)


def known_arcs(batch: Batch, *, crossing: bool) -> Tensor | None:
    """Return the arcs ``(B, n+1, n+1)`` bool that the batch's heads and possible heads leave; None for all.

    Unless arcs of trees may cross, words with a non-projective arc count as words of unknown head. Causes no device
    sync.
    """
    heads, original = batch.heads, batch.on_cpu.heads
    if heads is None or original is None:
        return batch.allowed
    if not crossing:
        heads = heads.masked_fill(moved(has_nonprojective_arc(original), heads.device), -1)
    known = arcs_agreeing_with(heads)
    return known if batch.allowed is None else known & batch.allowed
