"""Distributions over dependency trees, as ``torch.distributions``."""

from treeparse.trees.base import TreeCRF as TreeCRF
from treeparse.trees.labeled import LabeledCRF as LabeledCRF
from treeparse.trees.nonprojective import NonProjectiveCRF as NonProjectiveCRF
from treeparse.trees.projective import ProjectiveCRF as ProjectiveCRF
