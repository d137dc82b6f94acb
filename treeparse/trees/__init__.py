"""Distributions over dependency trees, as ``torch.distributions``, and estimators over their samples.

Which distribution::

    a score for every arc             NonProjectiveCRF: all trees, crossing arcs included; sums in O(n^3), the best
                                      tree in O(n^2)
    no crossing arcs                  ProjectiveCRF, with the same face; sums and the best tree in O(n^3)
    scores for arcs and for labels    LabeledCRF over either; label scores are added to the arc's
    too many labels to be held        the same, over a LabelSource: slices of heads, and chosen arcs
    arcs or labels that cannot be     the same, with -inf at them
    several distributions as one      ``combined``: the product of experts, or a ``Mixture``
    heads or labels that are known    ``given``; ``within`` where several heads are possible
    several sentences                 one batch with ``lengths``: what lies beyond them is ignored, whatever it holds,
                                      in scores and in lists of heads and labels
    CUDA scores                       the same: non-projective sums stay there, by kernels with ``treeparse[cuda]`` and
                                      else in torch operations (``backend="torch"``, which the CPU has as well);
                                      projective sums, best trees and lists are computed on the CPU

Which method::

    a loss for a gold tree                            log_prob
    a probability for every arc                       marginals; log_marginals for the most improbable ones
    how unsure the model is, or to make it surer      entropy, renyi_entropy, log_norm
    how much a tree would teach the model             expected_gradient
    to draw two models together                       cross_entropy, torch.distributions.kl_divergence
    expected accuracy, or its loss                    expected_uas, expected_las, risk
    expectations of features, differentiable          expectation, dense or sparse
    variances and second moments                      covariance, second_moment
    the best tree, the K best, all in order           mode, topk, best_first
    the tree of the highest expected UAS or LAS       minimum_risk
    random trees                                      sample: exact at any score scale
    random trees, each of them once                   sample_without_replacement, with Gumbel keys
    the mean of any function of a tree                sample_mean; without replacement unordered_set, horvitz_thompson
    sharper or flatter probabilities                  tempered
    a latent tree in a network, differentiable        relaxed_sample, soft or straight-through

Everything is in nats, computed in float64 and rounded once at the end, to float32 for scores of 16 or 32 bits and to
float64 for scores of 64. Gradients have the dtype of the scores, and so have relaxed samples, which a network reads.
Finite scores lie between -1e12 and 1e12, beyond which float64 cannot tell trees apart: -inf, not a large number, is for
what cannot be. Of trees of equal score the better one is, everywhere, that whose arcs are shorter in sum, then that of
greater fixed pseudo-random keys of its arcs.

What methods take has every dimension that they name, of which those of size 1 broadcast; one list of heads ``(n+1,)``
serves a whole batch. Head lists come with -1 at node 0 and at padding, and may be given with -100, 0 or anything else
there, which is not read; at a word, a negative number says that its head is not known, as ``given``, ``expected_uas``
and ``risk`` allow. ``log_prob`` wants whole trees. ``help("treeparse.trees.checks")`` has the rule in full.

For the expectation of a function that is no sum over arcs there are unbiased estimates, and gradients, from samples::

    p = NonProjectiveCRF(torch.randn(32, 21, 21, requires_grad=True), lengths)
    heads, log_probs, keys = p.sample_without_replacement(8)  # (32, 8, 21): different trees, in the order drawn
    cost = (heads != p.mode.unsqueeze(-2)).any(-1).double()  # any function of a whole tree
    log_probs = p.log_prob(heads.movedim(-2, 0)).movedim(0, -1)  # the same with their graph
    unordered_set(log_probs, cost).mean().backward()  # the score-function gradient, with a baseline built in

A latent tree in a model of one's own, learned from whatever loss follows::

    class HeadAttention(torch.nn.Module):
        # Adds to the vector of each word that of its head in a tree that nobody annotated.
        def __init__(self, size: int) -> None:
            super().__init__()
            self.heads, self.dependents = torch.nn.Linear(size, size), torch.nn.Linear(size, size)

        def forward(self, vectors, lengths):  # (B, n+1, size), the root's vector first
            scores = self.heads(vectors) @ self.dependents(vectors).transpose(1, 2)
            trees = NonProjectiveCRF(scores, lengths)
            arcs = trees.relaxed_sample(0.5, hard=True) if self.training else trees.marginals
            return vectors + arcs.to(vectors.dtype).transpose(1, 2) @ vectors

Papers are cited by short names, such as [Exp]: ``help("treeparse.references")`` lists them.
"""

from treeparse.trees.crf import TreeCRF as TreeCRF
from treeparse.trees.distribution import TreeDistribution as TreeDistribution
from treeparse.trees.estimators import horvitz_thompson as horvitz_thompson
from treeparse.trees.estimators import sample_mean as sample_mean
from treeparse.trees.estimators import unordered_set as unordered_set
from treeparse.trees.labels.combined import combined as combined
from treeparse.trees.labels.crf import LabeledCRF as LabeledCRF
from treeparse.trees.labels.distribution import LabeledDistribution as LabeledDistribution
from treeparse.trees.labels.mixture import Mixture as Mixture
from treeparse.trees.labels.sources import LabelSource as LabelSource
from treeparse.trees.labels.trees import LabeledTree as LabeledTree
from treeparse.trees.nonprojective import NonProjectiveCRF as NonProjectiveCRF
from treeparse.trees.projective import ProjectiveCRF as ProjectiveCRF
