"""The distributions over trees by the names of their trees in a config."""

from collections.abc import Mapping
from typing import Any

from treeparse.names import TreeKind
from treeparse.trees.arc_crfs import NonProjectiveCRF, ProjectiveCRF
from treeparse.trees.crf import TreeCRF
from treeparse.trees.second_order_crfs import NonProjectiveSiblingCRF, SecondOrderCRF, SiblingCRF

DISTRIBUTIONS: Mapping[TreeKind, type[TreeCRF]] = {
    "nonprojective": NonProjectiveCRF,
    "projective": ProjectiveCRF,
    "siblings": SiblingCRF,
    "second_order": SecondOrderCRF,
    "nonprojective_siblings": NonProjectiveSiblingCRF,
}
# What parsers give them besides scores: a sentence must not hold up a corpus, and trained models need fewer branches.
SETTINGS: Mapping[TreeKind, Mapping[str, Any]] = {"nonprojective_siblings": {"limit": 200}}


def names_of_parts(trees: TreeKind) -> list[str]:
    """Return the names of the kinds of part besides arcs that trees of a kind score."""
    return [kind.name for kind in DISTRIBUTIONS[trees].kinds]
