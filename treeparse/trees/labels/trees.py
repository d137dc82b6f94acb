"""Labelled trees as named tuples of tensors: one a sentence, the best ones, different ones that were drawn."""

from typing import NamedTuple

from torch import Tensor

LabeledPair = tuple[Tensor, Tensor]  # heads and labels: what a `LabeledTree` is and what any method takes for one


class LabeledTree(NamedTuple):
    """Labelled trees ``(..., n+1)``; -1 at node 0 and at padding."""

    heads: Tensor
    labels: Tensor


class TreeMarginals(NamedTuple):
    """Probabilities ``(*sample, *batch, n+1)``, float64, of the arc into each word of a tree."""

    arcs: Tensor  # of the head, whatever the label
    labeled: Tensor  # of the head and the label


class BestLabeledTrees(NamedTuple):
    """Labelled trees ``(..., n+1)``, best first, and their scores ``(...)``; past the last tree -1 and -inf."""

    heads: Tensor
    labels: Tensor
    scores: Tensor  # unnormalised


class DistinctLabeledTrees(NamedTuple):
    """Different labelled trees ``(*batch, k, n+1)`` in the order drawn; past the last tree -1, -inf and -inf."""

    heads: Tensor
    labels: Tensor
    log_probs: Tensor  # (*batch, k) nats
    keys: Tensor  # (*batch, k) log probabilities plus Gumbel noise, descending
