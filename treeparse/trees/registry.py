"""The distributions over trees by the names of their trees: the one table from a name to a class."""

from treeparse.names import TreeKind
from treeparse.trees.crf import TreeCRF
from treeparse.trees.nonprojective import NonProjectiveCRF
from treeparse.trees.projective import ProjectiveCRF

DISTRIBUTIONS: dict[TreeKind, type[TreeCRF]] = {"nonprojective": NonProjectiveCRF, "projective": ProjectiveCRF}
