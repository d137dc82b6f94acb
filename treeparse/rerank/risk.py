"""Minimum Bayes risk over lists: the tree with the most right words in expectation over the list's trees."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from treeparse.data.parses import NBestList, Parse
from treeparse.errors import TreeparseError, name_among
from treeparse.metrics.counts import universal_label
from treeparse.rerank.scoring import Scorer, checked_scores

Metric = Literal["las", "uas"]
METRICS: tuple[Metric, ...] = ("las", "uas")
Weighting = Literal["auto", "probabilities", "draws"]
WEIGHTINGS: tuple[Weighting, ...] = ("auto", "probabilities", "draws")


@dataclass(frozen=True)
class ExpectedAccuracy:
    """Scores each parse of a list by its expected LAS, or UAS, under a distribution over the list's parses.

    The scores are shares of words, in [0, 1]; labels count without subtypes, as in LAS. The first parse of the highest
    score is the minimum Bayes risk choice (Goodman 1998) among the list's trees. The cost is linear in the parses'
    words.

    Args:
        metric: "las" or "uas".
        weights: the distribution. "probabilities": the trees' probabilities, renormalised over the different trees of
            the list; right for the best trees and for samples without replacement. "draws": every parse has the
            same weight; right for samples with replacement. "auto": "draws" for a list with a repeated tree,
            "probabilities" for any other list, and always with a scorer.
        scorer: replaces log probabilities: the exponentials of its scores are renormalised, so that the choice combines
            a reranker and expected accuracy.
    """

    metric: Metric = "las"
    weights: Weighting = "auto"
    scorer: Scorer | None = None

    def __post_init__(self) -> None:
        name_among(self.metric, METRICS, f"Unknown metric {self.metric!r:.60}")
        name_among(self.weights, WEIGHTINGS, f"Unknown weighting {self.weights!r:.60}")
        if self.weights == "draws" and self.scorer is not None:
            raise TreeparseError(
                "weights='draws' cannot be combined with a scorer, because draws have equal weights: leave one out."
            )

    def __call__(self, nbest: NBestList) -> list[float]:
        """Return the expected share of right words of each parse."""
        votes: dict[tuple[int, int, str], float] = defaultdict(float)
        for weight, parse in zip(self.distribution(nbest).tolist(), nbest.parses, strict=True):
            for arc in self._arcs(parse):
                votes[arc] += weight
        return [sum(votes[arc] for arc in self._arcs(parse)) / len(parse.tokens) for parse in nbest.parses]

    def distribution(self, nbest: NBestList) -> NDArray[np.float64]:
        """Return the weights ``(parses,)`` of a list's parses, which sum to 1."""
        size, different = len(nbest.parses), first_indices(nbest)
        repeated = self.scorer is None and len(different) < size
        if self.weights == "draws" or (self.weights == "auto" and repeated):
            return np.full(size, 1 / size)
        scores = (
            [parse.log_prob for parse in nbest.parses] if self.scorer is None else checked_scores(nbest, self.scorer)
        )
        values = np.full(size, -np.inf)
        values[different] = np.asarray(scores)[different]
        weights = np.exp(values - values.max())
        return weights / weights.sum()

    def _arcs(self, parse: Parse) -> Iterator[tuple[int, int, str]]:
        labels: Iterable[str] = map(universal_label, parse.labels) if self.metric == "las" else ("",) * len(parse.heads)
        return zip(range(len(parse.heads)), parse.heads, labels, strict=True)


def first_indices(nbest: NBestList) -> list[int]:
    """Return the index of the first occurrence of each different tree of a list."""
    indices: dict[tuple[tuple[int, ...], tuple[str, ...]], int] = {}
    for index, parse in enumerate(nbest.parses):
        indices.setdefault((parse.heads, parse.labels), index)
    return [*indices.values()]
