"""The distributions over trees by the names of their trees in a config."""

from collections.abc import Mapping

from treeparse.names import TreeKind
from treeparse.trees.arc_crfs import NonProjectiveCRF, ProjectiveCRF
from treeparse.trees.crf import TreeCRF
from treeparse.trees.second_order_crfs import SecondOrderCRF, SiblingCRF

DISTRIBUTIONS: Mapping[TreeKind, type[TreeCRF]] = {
    "nonprojective": NonProjectiveCRF,
    "projective": ProjectiveCRF,
    "siblings": SiblingCRF,
    "second_order": SecondOrderCRF,
}
