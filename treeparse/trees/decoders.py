"""The distributions over trees by the names of their trees."""

from treeparse.names import TreeKind
from treeparse.trees.crf import TreeCRF
from treeparse.trees.nonprojective import NonProjectiveCRF
from treeparse.trees.projective import ProjectiveCRF

DISTRIBUTIONS: dict[TreeKind, type[TreeCRF]] = {"nonprojective": NonProjectiveCRF, "projective": ProjectiveCRF}
