"""The distributions over trees by the names of their trees in a config."""

from collections.abc import Mapping

from treeparse.trees.arc_crfs import NonProjectiveCRF, ProjectiveCRF
from treeparse.trees.crf import TreeCRF
from treeparse.trees.second_order_crfs import NonProjectiveSiblingCRF, SecondOrderCRF, SiblingCRF
from treeparse.user_code import class_named

DISTRIBUTIONS: Mapping[str, type[TreeCRF]] = {
    "nonprojective": NonProjectiveCRF,
    "projective": ProjectiveCRF,
    "siblings": SiblingCRF,
    "second_order": SecondOrderCRF,
    "nonprojective_siblings": NonProjectiveSiblingCRF,
}


def distribution_named(trees: str) -> type[TreeCRF]:
    """Return the distribution of a name, or of a class path; it must have a ``tree_family``, see `class_named`."""
    return class_named(trees, DISTRIBUTIONS, TreeCRF, "kind of trees")
