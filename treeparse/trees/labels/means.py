"""Label scores of several distributions as one: their mean, and the probabilities of a mixture."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from treeparse.trees.labels import sums
from treeparse.trees.labels.sources import LabelSource


class LabelLogProbs:
    """Log probabilities of labels given their arcs, by the scores of another source; float64."""

    dtype = torch.float64
    bound = 0.0

    def __init__(self, source: LabelSource) -> None:
        self.source, self.shape, self.device = source, source.shape, source.device
        self.requires_grad, self.support, self.resolution = source.requires_grad, source.support, source.resolution

    def from_heads(self, first: int, last: int) -> Tensor:
        return sums.log_probs(self.source.from_heads(first, last).double())

    def among(self, first: int, last: int, item: Tensor, head: Tensor, dependent: Tensor) -> Tensor:
        return self.source.among(first, last, item, head, dependent)

    def at(self, item: Tensor, head: Tensor, dependent: Tensor) -> Tensor:
        return sums.log_probs(self.source.at(item, head, dependent).double())

    def at_labels(self, item: Tensor, head: Tensor, dependent: Tensor, label: Tensor) -> Tensor:
        return _chosen(self.at(item, head, dependent), label)

    def log_sums(self, arcs: Tensor) -> None:
        return None  # 0, but for arcs without any label

    def of_items(self, items: Tensor) -> "LabelLogProbs":
        return LabelLogProbs(self.source.of_items(items))


class LabelMean:
    """The mean of the label scores of several sources, in float64: -inf where one of them forbids a label."""

    dtype = torch.float64

    def __init__(self, sources: Sequence[LabelSource]) -> None:
        self.sources = tuple(sources)
        self.shape, self.device = sources[0].shape, sources[0].device
        self.requires_grad = any(source.requires_grad for source in sources)
        self.resolution = max(source.resolution for source in sources)
        bounds = [source.bound for source in sources if source.bound is not None]
        self.bound = sum(bounds) / len(sources) if len(bounds) == len(sources) else None
        supports = tuple(source.support for source in sources)
        self.support = None if None in supports else supports

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


class MixtureLabels:
    """Probabilities of labelled arcs under a mixture less those of their arcs, so at most 0; constants.

    A label that no component allows on an arc has -inf.

    Args:
        sources: the label scores of the components.
        marginals: the arcs' marginals under each component times its weight, ``(B, n+1, n+1)`` each.
    """

    dtype = torch.float64
    bound = 0.0
    support = None
    requires_grad = False

    def __init__(self, sources: Sequence[LabelSource], marginals: Sequence[Tensor]) -> None:
        self.sources, self.marginals = tuple(sources), tuple(marginals)
        self.shape, self.device = sources[0].shape, sources[0].device
        self.resolution = max(source.resolution for source in sources)

    def from_heads(self, first: int, last: int) -> Tensor:
        return self._mixed(
            lambda source: source.from_heads(first, last), [marginals[:, first:last] for marginals in self.marginals]
        )

    def among(self, first: int, last: int, item: Tensor, head: Tensor, dependent: Tensor) -> Tensor:
        return self.at(item, head, dependent)

    def at(self, item: Tensor, head: Tensor, dependent: Tensor) -> Tensor:
        return self._mixed(
            lambda source: source.at(item, head, dependent),
            [marginals[item, head, dependent] for marginals in self.marginals],
        )

    def at_labels(self, item: Tensor, head: Tensor, dependent: Tensor, label: Tensor) -> Tensor:
        return _chosen(self.at(item, head, dependent), label)

    def log_sums(self, arcs: Tensor) -> None:
        return None

    def of_items(self, items: Tensor) -> "MixtureLabels":
        return MixtureLabels(
            [source.of_items(items) for source in self.sources], [marginals[items] for marginals in self.marginals]
        )

    def _mixed(self, scores_of: Callable[[LabelSource], Tensor], marginals: Sequence[Tensor]) -> Tensor:
        """What all sources say of some arcs, whose weighted marginals are given."""
        probs, possible = torch.zeros((), device=self.device), torch.zeros((), dtype=torch.bool, device=self.device)
        for source, weights in zip(self.sources, marginals, strict=True):
            log_probs = sums.log_probs(scores_of(source).detach().double())
            probs = probs + weights.unsqueeze(-1) * log_probs.exp()
            possible = possible | (log_probs > -torch.inf)
        arcs = torch.stack(list(marginals)).sum(0).unsqueeze(-1)
        return torch.where(possible, (probs - arcs).clamp_max(0.0), -torch.inf)


def _chosen(scores: Tensor, label: Tensor) -> Tensor:
    """The score of one label each ``(A,)`` among those of arcs ``(A, L)``."""
    return scores.gather(-1, label.unsqueeze(-1)).squeeze(-1)
