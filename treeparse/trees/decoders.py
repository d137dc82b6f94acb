"""Which of a sentence's labelled trees is its parse: the choice among decoders."""

from typing import Literal, get_args

import torch
from torch import Tensor

from treeparse.core import TreeparseError, did_you_mean
from treeparse.trees.base import TreeCRF
from treeparse.trees.nonprojective import NonProjectiveCRF
from treeparse.trees.projective import ProjectiveCRF

Decoder = Literal["nonprojective", "projective", "minimum_risk"]
DECODERS: tuple[Decoder, ...] = get_args(Decoder)
DecoderName = Decoder | Literal["minimum-risk"]  # as it may be written


def decoder_named(name: str) -> Decoder:
    """The decoder of a name, hyphen or underscore; raises where there is none of that name."""
    spelled = str(name).replace("-", "_")
    for decoder in DECODERS:
        if spelled == decoder:
            return decoder
    problem = f"There is no decoder {name!r}: choose one of {', '.join(DECODERS)}"
    raise TreeparseError(problem + (did_you_mean(spelled, DECODERS) or "."))


def listing_decoder_named(name: str) -> Decoder:
    """The decoder of a name; raises where there is none of that name, or where it has no list of best trees."""
    decoder = decoder_named(name)
    if decoder == "minimum_risk":
        raise TreeparseError(
            "The decoder minimum_risk chooses one tree, it has no list of the best: choose nonprojective or projective."
        )
    return decoder


def best_trees(trees: NonProjectiveCRF, label_log_probs: Tensor, decoder: Decoder) -> Tensor:
    """The heads ``(B, n+1)`` that a decoder chooses.

    Args:
        trees: the distribution of the trees, whatever their labels.
        label_log_probs: ``(B, n+1, n+1)``, those of every arc's best label given the arc.
        decoder: how to choose.
    """
    if decoder == "minimum_risk":  # the expected LAS is the sum of the probabilities of labelled arcs ([Exp] §6.1)
        probabilities = trees.marginals * label_log_probs.exp()
        return trees.with_scores(probabilities.masked_fill(trees.scores == -torch.inf, -torch.inf)).mode
    return searched(trees, decoder).with_scores(trees.scores + label_log_probs).mode


def searched(trees: NonProjectiveCRF, decoder: Decoder) -> TreeCRF:
    """The trees among which a decoder searches for the best."""
    if decoder == "projective":
        return ProjectiveCRF(trees.scores, trees.lengths, single_root=trees.single_root, validate_args=False)
    return trees
