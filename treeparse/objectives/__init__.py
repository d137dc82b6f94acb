"""Training objectives, each a small class over a distribution of labelled trees and a batch."""

from .entropy import Entropy as Entropy
from .likelihood import HeadSelection as HeadSelection
from .likelihood import TreeLikelihood as TreeLikelihood
from .likelihood import known_tree as known_tree
from .listed_risk import KBestRisk as KBestRisk
from .listed_risk import SampledRisk as SampledRisk
from .margin import MaxMargin as MaxMargin
from .objective import Objective as Objective
from .risk import MinimumRisk as MinimumRisk
from .weighted_sum import WeightedSum as WeightedSum
