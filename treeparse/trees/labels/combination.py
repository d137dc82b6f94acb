"""Combine several distributions over labelled trees into one."""

from collections.abc import Sequence
from functools import reduce

import torch
from torch import Tensor

from treeparse.errors import name_among
from treeparse.names import COMBINATIONS, Combination
from treeparse.trees.labels import label_sums
from treeparse.trees.labels.labeled_crf import LabeledCRF
from treeparse.trees.labels.mixture import LabeledDistribution, Mixture, check_alike
from treeparse.trees.labels.sources import Arcs, ChangedLabels, LabelSource
from treeparse.trees.parts import Parts


def combined(distributions: Sequence[LabeledCRF], how: Combination) -> LabeledDistribution:
    """Combine distributions over the same labelled trees into one.

    - "scores": ``product``, the normalised geometric mean;
    - "log_probs": ``product_of_arcs``, from log probabilities of arcs instead of scores;
    - "marginals": a ``Mixture``, the arithmetic mean.

    Raises:
        TreeparseError: for another name, and as ``check_alike`` does.
    """
    how = name_among(how, COMBINATIONS, f"Distributions cannot be combined by {how!r:.60}")
    if how == "marginals":
        return Mixture(distributions)
    return product(distributions) if how == "scores" else product_of_arcs(distributions)


def product(distributions: Sequence[LabeledCRF]) -> LabeledCRF:
    """Return the distribution of the mean scores: ``P(tree)`` is proportional to ``prod_m P_m(tree)^(1/M)``.

    A single distribution is returned as it is. A tree that one distribution forbids is forbidden.
    """
    first, *others = check_alike(distributions)
    if not others:
        return first
    scores = Parts.mean([p.base.parts.to(torch.float64) for p in distributions])
    return LabeledCRF(first.base.with_scores(scores), label_mean([p.labels.source for p in distributions]))


def product_of_arcs(distributions: Sequence[LabeledCRF]) -> LabeledCRF:
    """Return the distribution whose labelled arcs score their mean log marginal.

    ``score(h -> d, l) = mean_m (log P_m(h -> d) + log P_m(l | h -> d))``, -inf where a term is. The marginals of arcs
    are constants for autograd. Unlike ``product``, it changes a single distribution too.
    """
    first = check_alike(distributions)[0]
    flats = [p.arcs.flat for p in distributions]
    parts = Parts.mean([p.base.parts.to(torch.float64) for p in distributions]).neutral()
    scores = parts.with_arcs(torch.stack([flat.unflat(flat.log_marginals) for flat in flats]).mean(0))
    labels = label_mean([label_log_probs(p.labels.source) for p in distributions])
    return LabeledCRF(first.base.with_scores(scores), labels)


def label_log_probs(source: LabelSource) -> ChangedLabels:
    """Return log probabilities of labels given their arcs, in float64."""
    attributes = {"dtype": torch.float64, "bound": 0.0, "support": source.support}
    return ChangedLabels([source], lambda _, scores: label_sums.log_probs(scores.double()), **attributes)


def label_mean(sources: Sequence[LabelSource]) -> ChangedLabels:
    """Return the mean of several sources' label scores, in float64; -inf for a label that one of them forbids."""
    bounds = [source.bound for source in sources if source.bound is not None]
    bound = sum(bounds) / len(sources) if len(bounds) == len(sources) else None
    supports = tuple(source.support for source in sources)
    support = None if None in supports else supports

    def mean(_: Arcs, *scores: Tensor) -> Tensor:
        return reduce(torch.add, (part.double() for part in scores)) / len(scores)

    return ChangedLabels(sources, mean, dtype=torch.float64, bound=bound, support=support)
