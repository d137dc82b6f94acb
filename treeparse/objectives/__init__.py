"""Training objectives, each a small class over a distribution of trees."""

from .labels import label_cross_entropy as label_cross_entropy
from .likelihood import HeadSelection as HeadSelection
from .likelihood import TreeLikelihood as TreeLikelihood
from .objective import Objective as Objective
