"""Training objectives, each a small class over a distribution of labelled trees and a batch.

Which objective::

    likelihood of the gold tree, complete or partial      TreeLikelihood
    likelihood of each head among the heads of its word   HeadSelection
    a margin between the gold tree and all others         MaxMargin; with cost 0, the structured perceptron
    any of these where trees have no probabilities        MeanField, for trees: nonprojective_siblings
    expected number of wrong words, exactly               MinimumRisk
    expected cost from sampled trees, for any cost        SampledRisk
    expected cost among the K best trees                  KBestRisk
    entropy, without gold trees                           Entropy
    distance to other parsers or a prior, over all trees  Divergence from a Reference: Teacher, ArcScores, ShortArcs
    likelihood of trees from a teacher or the parser      SilverTrees
    shares of arcs that a file expects, no gold trees     GeneralizedExpectation
    distance to the nearest distribution of such shares   PosteriorRegularization
    a sum of several objectives                           WeightedSum

A config names one by ``objective: treeparse.objectives.MaxMargin`` or, with arguments, by ``class_path`` and
``init_args``; the shipped configs mrt, margin, ge, semisup, distill and partial are examples: ``treeparse config mrt``.

A custom objective is a subclass of ``Objective``. In a file ``mine.py`` in the folder where training starts, its name
is ``--objective mine.Decisive``::

    import torch

    from treeparse.objectives import Objective, TreeLikelihood

    class Decisive(Objective):
        # The likelihood of the tree, plus a penalty for words whose likeliest head is unlikely.
        data = "labelled"  # the sentences that it uses; "all" by default

        def __init__(self, weight: float = 0.1) -> None:
            super().__init__()
            self.likelihood, self.weight = TreeLikelihood(), weight

        def forward(self, distribution, batch):  # (B,), a number for each sentence
            likeliest = distribution.arcs.marginals.amax(-2)  # (B, n+1), differentiable
            doubt = torch.where(batch.word_mask(), 1 - likeliest, 0.0).sum(-1)
            return self.likelihood(distribution, batch) + self.weight * doubt

A custom cost of whole trees, which need not be a sum over words, for sampled or K-best minimum risk::

    from treeparse.objectives import SampledRisk

    class WrongRoot(SampledRisk):
        # A tree whose root differs from the gold tree's costs 1.
        def cost_of(self, heads, labels, batch):  # (S, B, n+1) twice -> (S, B)
            return ((heads == 0) != (batch.heads == 0)).any(-1).double()

A constraint is an entry of a file that ``GeneralizedExpectation`` or ``PosteriorRegularization`` reads::

    - dependent: {upos: DET}  # among these words
      head: {upos: [NOUN, PROPN]}
      direction: left  # of the head
      probability: 0.9  # the share with such a head; or [0.8, 1.0], at_least: 0.8, at_most: 0.1
"""

from .constraints import GeneralizedExpectation, PosteriorRegularization
from .likelihood import Entropy, HeadSelection, MeanField, TreeLikelihood, known_tree
from .objective import Data, Objective, Ramp, Schedule, Term, Weighted, WeightedSum, check_temperature, total_loss
from .risk import KBestRisk, MaxMargin, MinimumRisk, SampledRisk
from .teaching import ArcScores, Divergence, Itself, Reference, ShortArcs, SilverTrees, write_arc_scores

__all__ = [
    "ArcScores",
    "Data",
    "Divergence",
    "Entropy",
    "GeneralizedExpectation",
    "HeadSelection",
    "Itself",
    "KBestRisk",
    "MaxMargin",
    "MeanField",
    "MinimumRisk",
    "Objective",
    "PosteriorRegularization",
    "Ramp",
    "Reference",
    "SampledRisk",
    "Schedule",
    "ShortArcs",
    "SilverTrees",
    "Term",
    "TreeLikelihood",
    "Weighted",
    "WeightedSum",
    "check_temperature",
    "known_tree",
    "total_loss",
    "write_arc_scores",
]
