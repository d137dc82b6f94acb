"""Combine several distributions over labelled trees into one."""

from collections.abc import Callable, Hashable, Sequence

import torch
from torch import Tensor

from treeparse.errors import name_among
from treeparse.names import COMBINATIONS, Combination
from treeparse.trees.labels import sums
from treeparse.trees.labels.crf import LabeledCRF
from treeparse.trees.labels.distribution import LabeledDistribution
from treeparse.trees.labels.mixture import Mixture, check_alike
from treeparse.trees.labels.sources import ChangedLabels, LabelSource, at_label
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
    return LabeledCRF(first.base.with_scores(scores), LabelMean([p.labels.source for p in distributions]))


def product_of_arcs(distributions: Sequence[LabeledCRF]) -> LabeledCRF:
    """Return the distribution whose labelled arcs score their mean log marginal.

    ``score(h -> d, l) = mean_m (log P_m(h -> d) + log P_m(l | h -> d))``, -inf where a term is. The marginals of arcs
    are constants for autograd. Unlike ``product``, it changes a single distribution too.
    """
    first = check_alike(distributions)[0]
    flats = [p.arcs.flat for p in distributions]
    parts = Parts.mean([p.base.parts.to(torch.float64) for p in distributions]).neutral()
    scores = parts.with_arcs(torch.stack([flat.unflat(flat.log_marginals) for flat in flats]).mean(0))
    labels = LabelMean([LabelLogProbs(p.labels.source) for p in distributions])
    return LabeledCRF(first.base.with_scores(scores), labels)


class LabelLogProbs(ChangedLabels):
    """Log probabilities of labels given their arcs, in float64."""

    dtype: torch.dtype

    def __init__(self, source: LabelSource) -> None:
        super().__init__(source)
        self.dtype, self.bound, self.support = torch.float64, 0.0, source.support

    def change(self, scores: Tensor) -> Tensor:
        return sums.log_probs(scores.double())

    def among(self, first: int, last: int, item: Tensor, head: Tensor, dependent: Tensor) -> Tensor:
        return self.source.among(first, last, item, head, dependent)

    def at_labels(self, item: Tensor, head: Tensor, dependent: Tensor, label: Tensor) -> Tensor:
        return at_label(self.at(item, head, dependent), label)


class LabelMean:
    """The mean of the label scores of several sources, in float64; -inf for a label that one of them forbids."""

    shape: torch.Size
    device: torch.device

    dtype: torch.dtype = torch.float64

    def __init__(self, sources: Sequence[LabelSource]) -> None:
        self.sources: tuple[LabelSource, ...] = tuple(sources)
        self.shape, self.device = sources[0].shape, sources[0].device
        self.requires_grad: bool = any(source.requires_grad for source in sources)
        self.resolution: float = max(source.resolution for source in sources)
        bounds = [source.bound for source in sources if source.bound is not None]
        self.bound: float | None = sum(bounds) / len(sources) if len(bounds) == len(sources) else None
        supports = tuple(source.support for source in sources)
        self.support: Hashable | None = None if None in supports else supports

    def from_heads(self, first: int, last: int) -> Tensor:
        return self._mean(lambda source: source.from_heads(first, last).double())

    def among(self, first: int, last: int, item: Tensor, head: Tensor, dependent: Tensor) -> Tensor:
        return self._mean(lambda source: source.among(first, last, item, head, dependent))

    def at(self, item: Tensor, head: Tensor, dependent: Tensor) -> Tensor:
        return self._mean(lambda source: source.at(item, head, dependent).double())

    def at_labels(self, item: Tensor, head: Tensor, dependent: Tensor, label: Tensor) -> Tensor:
        return self._mean(lambda source: source.at_labels(item, head, dependent, label).double())

    def log_sums(self, arcs: Tensor) -> None:
        return None

    def of_items(self, items: Tensor) -> "LabelMean":
        return LabelMean([source.of_items(items) for source in self.sources])

    def _mean(self, scores_of: Callable[[LabelSource], Tensor]) -> Tensor:
        total = scores_of(self.sources[0])
        for source in self.sources[1:]:  # one at a time: memory does not grow with their number
            total = total + scores_of(source)
        return total / len(self.sources)
