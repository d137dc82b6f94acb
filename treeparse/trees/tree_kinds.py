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


def search_settings(trees: TreeKind, *, training: bool) -> Mapping[str, Any]:
    """Return the arguments by which a parser keeps a search from holding up a corpus or a training.

    A trained parser's scores need fewer branches than the limit, but those of a new one may need any number.
    """
    return {"limit": 1 if training else 20} if trees == "nonprojective_siblings" else {}


def names_of_parts(trees: TreeKind) -> list[str]:
    """Return the names of the kinds of part besides arcs that trees of a kind score."""
    return [kind.name for kind in DISTRIBUTIONS[trees].kinds]
