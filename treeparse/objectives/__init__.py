"""Training objectives, each a small class over a distribution of labelled trees and a batch.

Which objective::

    the probability of the gold tree, whole or in part    TreeLikelihood
    each word's head by itself                            HeadSelection
    the gold tree above all others by a margin            MaxMargin; of cost 0, the structured perceptron
    few wrong words in expectation, exactly               MinimumRisk
    the same from random trees, for any cost of a tree    SampledRisk
    the same among the best trees                         KBestRisk
    a surer parser, with no gold tree                     Entropy
    several of these                                      WeightedSum

A config names one by ``objective: treeparse.objectives.MaxMargin`` or, with arguments, by ``class_path`` and
``init_args``. One's own is a subclass of ``Objective``.
"""

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
