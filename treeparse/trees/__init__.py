"""Distributions over dependency trees, as ``torch.distributions``, and estimators over their samples.

Which distribution::

    a score for every arc             NonProjectiveCRF: all trees, crossing arcs included; sums in O(n^3), the best
                                      tree in O(n^2)
    no crossing arcs                  ProjectiveCRF, with the same interface; sums and the best tree in O(n^3)
    scores for pairs of dependents    SiblingCRF: no crossing arcs, and a score for every dependent and the next one
                                      between it and its head; otherwise as ProjectiveCRF
    scores for the heads of heads     SecondOrderCRF: the same, and a score for every word, its head and that one's
                                      head; in O(n^4)
    pairs of dependents, crossing     NonProjectiveSiblingCRF: the best tree, exact and with a certificate, but no
    arcs included                     sums, which are NP-hard; ``mean_field`` approximates them
    scores for arcs and for labels    LabeledCRF over any of these; label scores are added to the arc's
    too many labels for memory        LabeledCRF over a LabelSource, which is read by slices of heads and by arcs
    forbidden arcs or labels          any of these, with scores of -inf
    several distributions as one      ``combined``: the product of experts, or a ``Mixture``
    heads or labels that are known    ``given``; ``within`` where several heads are possible
    several sentences                 one batch with ``lengths``: entries beyond them are ignored, whatever they hold,
                                      in scores and in lists of heads and labels
    CUDA scores                       any of these: with ``treeparse[cuda]``, kernels compute sums, best trees and
                                      samples on the device; without it, non-projective sums use torch operations
                                      (``backend="torch"``) there. Everything else is computed on the CPU

Which method::

    a loss for a gold tree                            log_prob
    a probability for every arc                       marginals; log_marginals for the most improbable ones
    the uncertainty of the model, or a penalty on it  entropy, renyi_entropy, log_norm
    the use of annotating a sentence                  expected_gradient
    the distance of two models                        cross_entropy, torch.distributions.kl_divergence
    expected accuracy, or its loss                    expected_uas, expected_las, risk
    expectations of features, differentiable          expectation, dense or sparse
    variances and second moments                      covariance, second_moment
    the best tree, the K best, all in order           mode, topk, best_first
    the tree of the highest expected UAS or LAS       minimum_risk
    the best tree by any function of a tree           ``climb``, by changes of one arc; not exact
    random trees                                      sample: exact
    random trees, each at most once                   sample_without_replacement, with Gumbel keys
    the mean of any function of a tree                sample_mean; without replacement unordered_set, horvitz_thompson
    sharper or flatter probabilities                  tempered
    a latent tree in a network, differentiable        relaxed_sample, soft or straight-through

Logarithms are in nats. Values are computed in float64 and rounded once at the end, to float32 for scores of 16 or 32
bits and to float64 for scores of 64. Gradients and relaxed samples have the dtype of the scores. Finite scores lie
between -1e6 and 1e6; forbid an arc by -inf, not by a large negative number. Of trees of equal score, the tree of
shorter arcs in sum is the better one everywhere, then the tree of the greater sum of fixed pseudo-random keys of arcs.

Arguments have every dimension that a method names; dimensions of size 1 broadcast, and one list of heads ``(n+1,)``
serves a whole batch. Methods return head lists with -1 at node 0 and at padding, and read nothing there: -100, 0 or
anything else may pad. At a word, a negative number means that the head is unknown, which ``given``, ``expected_uas``
and ``risk`` allow. ``log_prob`` takes whole trees. ``help("treeparse.trees.checks")`` has the rule in full.

The expectation of a function that is no sum over arcs has unbiased estimates, and gradients, from samples::

    p = NonProjectiveCRF(torch.randn(32, 21, 21, requires_grad=True), lengths)
    heads = p.sample_without_replacement(8).heads  # (8, 32, 21): different trees, in the order drawn
    cost = (heads != p.mode).any(-1).double()  # any function of a whole tree
    log_probs = p.log_prob(heads)  # with their graph
    unordered_set(log_probs, cost).mean().backward()  # the score-function gradient, with a baseline built in

A custom model can learn a latent tree from any loss::

    class HeadAttention(torch.nn.Module):
        # Adds to the vector of each word the vector of its head in a latent tree.
        def __init__(self, size: int) -> None:
            super().__init__()
            self.heads, self.dependents = torch.nn.Linear(size, size), torch.nn.Linear(size, size)

        def forward(self, vectors, lengths):  # (B, n+1, size), the root's vector first
            scores = self.heads(vectors) @ self.dependents(vectors).transpose(1, 2)
            trees = NonProjectiveCRF(scores, lengths)
            arcs = trees.relaxed_sample(0.5, hard=True) if self.training else trees.marginals
            return vectors + arcs.to(vectors.dtype).transpose(1, 2) @ vectors

The guide's page "Comparisons" says how torch-struct, SuPar, SynJax and ufal.chu_liu_edmonds lay out scores. Papers are
cited by short names, such as [Exp], which the guide's page "References" lists.
"""

from collections.abc import Mapping

from treeparse.trees.approximate import climb
from treeparse.trees.arc_crfs import NonProjectiveCRF, ProjectiveCRF
from treeparse.trees.crf import TreeCRF
from treeparse.trees.distribution import TreeDistribution
from treeparse.trees.estimators import horvitz_thompson, sample_mean, unordered_set
from treeparse.trees.labels.combination import LabeledDistribution, Mixture, combined
from treeparse.trees.labels.labeled_crf import LabeledCRF
from treeparse.trees.labels.sources import LabelSource
from treeparse.trees.parts import Parts
from treeparse.trees.second_order_crfs import NonProjectiveSiblingCRF, SecondOrderCRF, SiblingCRF
from treeparse.trees.tree_lists import LabeledTree
from treeparse.user_code import class_named

__all__ = [
    "DISTRIBUTIONS",
    "LabelSource",
    "LabeledCRF",
    "LabeledDistribution",
    "LabeledTree",
    "Mixture",
    "NonProjectiveCRF",
    "NonProjectiveSiblingCRF",
    "Parts",
    "ProjectiveCRF",
    "SecondOrderCRF",
    "SiblingCRF",
    "TreeCRF",
    "TreeDistribution",
    "climb",
    "combined",
    "distribution_named",
    "horvitz_thompson",
    "sample_mean",
    "unordered_set",
]

DISTRIBUTIONS: Mapping[str, type[TreeCRF]] = {
    "nonprojective": NonProjectiveCRF,
    "projective": ProjectiveCRF,
    "siblings": SiblingCRF,
    "second_order": SecondOrderCRF,
    "nonprojective_siblings": NonProjectiveSiblingCRF,
}
"""The distributions by the names of their trees in a config."""


def distribution_named(trees: str) -> type[TreeCRF]:
    """Return the distribution of a name, or of a class path; it must have a ``tree_family``, see `class_named`."""
    return class_named(trees, DISTRIBUTIONS, TreeCRF, "kind of trees")
