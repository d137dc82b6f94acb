"""Named tuples of tensors for labelled trees and for lists of them."""

from typing import NamedTuple

from torch import Tensor

LabeledPair = tuple[Tensor, Tensor]  # heads and labels; methods take any pair for a `LabeledTree`


class LabeledTree(NamedTuple):
    """Labelled trees ``(..., n+1)``; -1 at node 0 and at padding."""

    heads: Tensor
    labels: Tensor


class TreeMarginals(NamedTuple):
    """Probabilities ``(*sample, *batch, n+1)`` of the arc into each word of a tree, float64."""

    arcs: Tensor  # of the head, whatever the label
    labeled: Tensor  # of the head and the label


class BestLabeledTrees(NamedTuple):
    """Labelled trees ``(..., n+1)``, best first, and scores ``(...)``; past the last tree -1 and -inf."""

    heads: Tensor
    labels: Tensor
    scores: Tensor  # unnormalised


class DistinctLabeledTrees(NamedTuple):
    """Different labelled trees ``(*batch, k, n+1)`` in the order drawn; past the last tree -1, -inf and -inf."""

    heads: Tensor
    labels: Tensor
    log_probs: Tensor  # (*batch, k) nats
    keys: Tensor  # (*batch, k) log probabilities plus Gumbel noise, descending
