"""Several distributions over labelled trees as one: the choice among ways to combine them."""

from collections.abc import Sequence

import torch
from torch import Tensor

from treeparse.names import Combination
from treeparse.trees.labels.crf import LabeledCRF
from treeparse.trees.labels.distribution import LabeledDistribution
from treeparse.trees.labels.means import LabelLogProbs, LabelMean
from treeparse.trees.labels.mixture import Mixture, check_alike
from treeparse.trees.parts import Parts


def combined(distributions: Sequence[LabeledCRF], how: Combination) -> LabeledDistribution:
    """One distribution of several over the same labelled trees.

    - "scores": :func:`product`, the normalised geometric mean;
    - "log_probs": :func:`product_of_arcs`, by the log probabilities of arcs in the place of their scores;
    - "marginals": a :class:`Mixture`, the arithmetic mean, whose best tree by expected accuracy is that of the mean
      marginals.

    Raises:
        TreeparseError: as :func:`check_alike` does.
    """
    if how == "marginals":
        return Mixture(distributions)
    return product(distributions) if how == "scores" else product_of_arcs(distributions)


def product(distributions: Sequence[LabeledCRF]) -> LabeledCRF:
    """The distribution of the mean scores: ``P(tree)`` is proportional to ``prod_m P_m(tree)^(1/M)``.

    One alone is itself. A tree that one of them forbids is forbidden.
    """
    first, *others = check_alike(distributions)
    if not others:
        return first
    scores = Parts.mean([p.base.parts.to(torch.float64) for p in distributions])
    return LabeledCRF(first.base.with_scores(scores), LabelMean([p.labels.source for p in distributions]))


def product_of_arcs(distributions: Sequence[LabeledCRF]) -> LabeledCRF:
    """The distribution whose labelled arcs score the mean log of their marginals: constants in the arcs' scores.

    ``score(h -> d, l) = mean_m (log P_m(h -> d) + log P_m(l | h -> d))``, -inf where one of these is. Other than in
    :func:`product`, an arc counts by what trees it is in; so one distribution alone gives another one.
    """
    first = check_alike(distributions)[0]
    flats = [p.arcs.flat for p in distributions]
    parts = Parts.mean([p.base.parts.to(torch.float64) for p in distributions]).neutral()
    scores = parts.with_arcs(_mean([flat.unflat(flat.log_marginals) for flat in flats]))
    labels = LabelMean([LabelLogProbs(p.labels.source) for p in distributions])
    return LabeledCRF(first.base.with_scores(scores), labels)


def _mean(scores: Sequence[Tensor]) -> Tensor:
    return torch.stack(list(scores)).mean(0)
