"""The distributions over trees by the names of their trees in a config."""

from collections.abc import Mapping
from typing import Any

from treeparse.names import TreeKind
from treeparse.trees.arc_crfs import NonProjectiveCRF, ProjectiveCRF
from treeparse.trees.crf import TreeCRF
from treeparse.trees.families import Family
from treeparse.trees.families.nonprojective_family import Nonprojective
from treeparse.trees.families.projective_family import Projective
from treeparse.trees.families.second_order import NonprojectiveSiblings, ProjectiveGrandparents, ProjectiveSiblings
from treeparse.trees.parts import PartKind
from treeparse.trees.second_order_crfs import NonProjectiveSiblingCRF, SecondOrderCRF, SiblingCRF

DISTRIBUTIONS: Mapping[TreeKind, type[TreeCRF]] = {
    "nonprojective": NonProjectiveCRF,
    "projective": ProjectiveCRF,
    "siblings": SiblingCRF,
    "second_order": SecondOrderCRF,
    "nonprojective_siblings": NonProjectiveSiblingCRF,
}
_FAMILIES: Mapping[TreeKind, type[Family]] = {
    "nonprojective": Nonprojective,
    "projective": Projective,
    "siblings": ProjectiveSiblings,
    "second_order": ProjectiveGrandparents,
    "nonprojective_siblings": NonprojectiveSiblings,
}


def part_kinds(trees: TreeKind) -> tuple[PartKind, ...]:
    """Return the kinds of part besides arcs that trees of a kind score."""
    return _FAMILIES[trees].kinds


def have_sums(trees: TreeKind) -> bool:
    """Tell whether trees of a kind have log partitions and marginals."""
    return _FAMILIES[trees].has_sums


def have_crossing_arcs(trees: TreeKind) -> bool:
    """Tell whether arcs of trees of a kind may cross."""
    return _FAMILIES[trees].crossing


def search_settings(trees: TreeKind, *, training: bool) -> Mapping[str, Any]:
    """Return the arguments by which a parser keeps a search from holding up a corpus or a training.

    A trained parser's scores need fewer branches than the limit, but those of a new one may need any number.
    """
    return {"limit": 1 if training else 20} if trees == "nonprojective_siblings" else {}
