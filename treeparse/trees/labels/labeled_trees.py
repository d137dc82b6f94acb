"""Named tuples of tensors for labelled trees."""

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
