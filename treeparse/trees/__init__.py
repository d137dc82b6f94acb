"""Distributions over dependency trees, as ``torch.distributions``, and estimators over their samples.

Papers are cited by short names, such as [Exp]: ``help(treeparse.references)`` lists them.
"""

from treeparse.trees.crf import TreeCRF as TreeCRF
from treeparse.trees.estimators import horvitz_thompson as horvitz_thompson
from treeparse.trees.estimators import sample_mean as sample_mean
from treeparse.trees.estimators import unordered_set as unordered_set
from treeparse.trees.labels.crf import LabeledCRF as LabeledCRF
from treeparse.trees.labels.sources import LabelSource as LabelSource
from treeparse.trees.nonprojective import NonProjectiveCRF as NonProjectiveCRF
from treeparse.trees.projective import ProjectiveCRF as ProjectiveCRF
