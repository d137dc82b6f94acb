"""Which of a sentence's labelled trees is its parse: the choice among decoders."""

from typing import overload

from treeparse.names import Decoder, TreeKind
from treeparse.trees.crf import TreeCRF
from treeparse.trees.labels.crf import LabeledCRF, LabeledTree
from treeparse.trees.mixture import Mixture
from treeparse.trees.nonprojective import NonProjectiveCRF
from treeparse.trees.projective import ProjectiveCRF

DISTRIBUTIONS: dict[TreeKind, type[TreeCRF]] = {"nonprojective": NonProjectiveCRF, "projective": ProjectiveCRF}


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
