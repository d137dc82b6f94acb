"""Training objectives, each a small class over a distribution of labelled trees and a batch.

Which objective::

    the probability of the gold tree, whole or in part    TreeLikelihood
    each word's head by itself                            HeadSelection
    the gold tree above all others by a margin            MaxMargin; of cost 0, the structured perceptron
    few wrong words in expectation, exactly               MinimumRisk
    the same from random trees, for any cost of a tree    SampledRisk
    the same among the best trees                         KBestRisk
    a surer parser, with no gold tree                     Entropy
    what other parsers or a prior say of all trees        Divergence from a Reference: Teacher, ArcScores, ShortArcs
    the trees that a teacher or the parser itself finds   SilverTrees
    shares of arcs as a file says, with no gold tree      GeneralizedExpectation
    the nearest distribution that has such shares         PosteriorRegularization
    several of these                                      WeightedSum

A config names one by ``objective: treeparse.objectives.MaxMargin`` or, with arguments, by ``class_path`` and
``init_args``; the shipped configs mrt, margin, ge, semisup, distill and partial are examples: ``treeparse config mrt``.

One's own is a subclass of ``Objective``. In a file ``mine.py`` in the folder where training starts it goes by
``--objective mine.Decisive``::

    from treeparse.objectives import Objective, TreeLikelihood

    class Decisive(Objective):
        # The likelihood of the tree, and no word whose likeliest head is unlikely.
        data = "labelled"  # the sentences that it is for; "all" if this is left out

        def __init__(self, weight: float = 0.1) -> None:
            super().__init__()
            self.likelihood, self.weight = TreeLikelihood(), weight

        def forward(self, distribution, batch):  # (B,), a number for each sentence
            likeliest = distribution.arcs.marginals.amax(-2)  # (B, n+1), differentiable
            doubt = torch.where(batch.word_mask(), 1 - likeliest, 0.0).sum(-1)
            return self.likelihood(distribution, batch) + self.weight * doubt

A cost of whole trees of one's own, which need not be a sum over words, by sampled or K-best minimum risk::

    from treeparse.objectives import SampledRisk

    class WrongRoot(SampledRisk):
        # A tree with another root than the gold tree costs 1, whatever else is in it.
        def cost_of(self, heads, labels, batch):  # (S, B, n+1) twice -> (S, B)
            return ((heads == 0) != (batch.heads == 0)).any(-1).double()

A constraint is an entry of a file that ``GeneralizedExpectation`` or ``PosteriorRegularization`` is given::

    - dependent: {upos: DET}  # of all words that are such
      head: {upos: [NOUN, PROPN]}
      direction: left  # of the head
      probability: 0.9  # this share is to have such a head; or [0.8, 1.0], at_least: 0.8, at_most: 0.1
"""

from .constraints import GeneralizedExpectation as GeneralizedExpectation
from .constraints import PosteriorRegularization as PosteriorRegularization
from .entropy import Entropy as Entropy
from .likelihood import HeadSelection as HeadSelection
from .likelihood import TreeLikelihood as TreeLikelihood
from .likelihood import known_tree as known_tree
from .listed_risk import KBestRisk as KBestRisk
from .listed_risk import SampledRisk as SampledRisk
from .margin import MaxMargin as MaxMargin
from .objective import Data as Data
from .objective import Objective as Objective
from .objective import Term as Term
from .objective import total_loss as total_loss
from .reference import ArcScores as ArcScores
from .reference import Itself as Itself
from .reference import Reference as Reference
from .reference import ShortArcs as ShortArcs
from .reference import check_temperature as check_temperature
from .reference import write_arc_scores as write_arc_scores
from .risk import MinimumRisk as MinimumRisk
from .schedule import Ramp as Ramp
from .schedule import Schedule as Schedule
from .teaching import Divergence as Divergence
from .teaching import SilverTrees as SilverTrees
from .weighted_sum import Weighted as Weighted
from .weighted_sum import WeightedSum as WeightedSum
