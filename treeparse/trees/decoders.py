"""Which of a sentence's labelled trees is its parse: the choice among decoders."""

from typing import Literal, get_args, overload

from treeparse.errors import TreeparseError, name_among
from treeparse.trees.crf import TreeCRF
from treeparse.trees.labels.crf import LabeledCRF, LabeledTree
from treeparse.trees.mixture import Mixture
from treeparse.trees.nonprojective import NonProjectiveCRF
from treeparse.trees.projective import ProjectiveCRF

TreeKind = Literal["nonprojective", "projective"]
Decoder = Literal["best", "nonprojective", "projective", "minimum_risk"]
DECODERS: tuple[Decoder, ...] = get_args(Decoder)
DecoderName = Decoder | Literal["minimum-risk"]  # as it may be written

DISTRIBUTIONS: dict[TreeKind, type[TreeCRF]] = {"nonprojective": NonProjectiveCRF, "projective": ProjectiveCRF}


def decoder_named(name: str) -> Decoder:
    """The decoder of a name, hyphen or underscore; raises where there is none of that name."""
    return name_among(name, DECODERS, f"There is no decoder {name!r}")


def listing_decoder_named(name: str) -> Decoder:
    """The decoder of a name; raises where there is none of that name, or where it has no list of best trees."""
    decoder = decoder_named(name)
    if decoder == "minimum_risk":
        raise TreeparseError(
            "The decoder minimum_risk chooses one tree, it has no list of the best: choose best, nonprojective or "
            "projective."
        )
    return decoder


def decoded(p: LabeledCRF | Mixture, decoder: Decoder) -> LabeledTree:
    """Heads and labels ``(B, n+1)`` that a decoder chooses; of a mixture, by expected LAS whichever the decoder."""
    if isinstance(p, Mixture):
        return searched(p.expected, decoder).mode
    return p.minimum_risk() if decoder == "minimum_risk" else searched(p, decoder).mode


@overload
def searched(p: LabeledCRF, decoder: Decoder) -> LabeledCRF: ...


@overload
def searched(p: Mixture, decoder: Decoder) -> Mixture: ...


def searched(p: LabeledCRF | Mixture, decoder: Decoder) -> LabeledCRF | Mixture:
    """The distribution over the trees among which a decoder searches; those of both keep the ratios of their weights.

    That is: with the same scores, and of a mixture, with weights by how probable these trees are to each component.
    """
    if isinstance(p, Mixture):
        return _searched_mixture(p, decoder)
    if decoder in ("best", "minimum_risk") or isinstance(p.base, DISTRIBUTIONS[decoder]):
        return p
    base = DISTRIBUTIONS[decoder](
        p.base.scores, p.lengths, single_root=p.base.single_root, validate_args=p.base.flat.validate
    )
    return LabeledCRF(base, p.label_scores)


def _searched_mixture(p: Mixture, decoder: Decoder) -> Mixture:
    found = [searched(component, decoder) for component in p.components]
    if found[0] is p.components[0]:
        return p
    return p.conditioned(found)
