"""Scorers of lists, minimum Bayes risk among them, and lists in the order of their scores."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal, SupportsFloat, cast, get_args

import numpy as np
from numpy.typing import NDArray

from treeparse.data.parses import NBestList, Parse
from treeparse.errors import TreeparseError, did_you_mean, name_among
from treeparse.metrics.counts import universal_label
from treeparse.user_code import import_code

Metric = Literal["las", "uas"]
Weighting = Literal["auto", "probabilities", "draws"]

Scorer = Callable[[NBestList], Iterable[SupportsFloat]]
"""Returns the scores of a list's parses, in order: the higher, the better."""


def rerank(lists: Iterable[NBestList], scorer: Scorer) -> Iterator[NBestList]:
    """Yield the lists with parses sorted by score, the highest first; parses of equal score stay in order.

    A parse's ``score`` becomes the scorer's; its ``log_prob`` stays.

    Raises:
        TreeparseError: if the scorer does not return a finite number for each parse.
    """
    return (reranked(nbest, scorer) for nbest in lists)


def reranked(nbest: NBestList, scorer: Scorer) -> NBestList:
    """Return a list sorted by score, as `rerank`."""
    scores = checked_scores(nbest, scorer)
    order = sorted(range(len(scores)), key=lambda index: -scores[index])
    return replace(nbest, parses=tuple(replace(nbest.parses[index], score=scores[index]) for index in order))


def checked_scores(nbest: NBestList, scorer: Scorer) -> list[float]:
    """Return the scores of a list's parses; raise as `rerank`."""
    result = scorer(nbest)
    where = f"of sentence {nbest.sent_id}" if nbest.sent_id else f"of the sentence {' '.join(nbest.tokens)[:40]!r}"
    try:
        scores = [float(score) for score in result]
    except (TypeError, ValueError) as error:
        raise TreeparseError(
            f"The scorer must return a number for each parse, got {result!r:.60} ({error}) for the list {where}."
        ) from error
    if len(scores) != len(nbest.parses):
        raise TreeparseError(
            f"The scorer must return a number for each parse, got {len(scores)} for {len(nbest.parses)} parses {where}."
        )
    if not all(map(math.isfinite, scores)):
        raise TreeparseError(f"The scorer must return finite numbers, got another score of a parse {where}.")
    return scores


def scorer_named(path: str) -> Scorer:
    """Return the scorer of a dotted path, ``mine.flat``: a function, or a class without constructor arguments.

    Its module is imported, which runs what is in it.

    Raises:
        TreeparseError: if there is no such module, or it has no callable of that name.
    """
    module, _, name = path.rpartition(".")
    if not module or not name:
        raise TreeparseError(
            f"The scorer must be the dotted path of a function or class, such as mine.flat, got {path!r:.100}."
        )
    names: dict[str, Any] = vars(import_code(module))
    if name not in names:
        raise TreeparseError(f"The module {module} has nothing named {name!r:.100}{did_you_mean(name, names) or '.'}")
    scorer = names[name]
    if isinstance(scorer, type):
        try:
            scorer = scorer()
        except TypeError as error:
            raise TreeparseError(f"The class {path} cannot be made without arguments ({error}).") from error
    if not callable(scorer):
        raise TreeparseError(f"The scorer {path} cannot be called: it takes a list and gives a score to each parse.")
    return cast(Scorer, scorer)


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
        name_among(self.metric, get_args(Metric), f"Unknown metric {self.metric!r:.60}")
        name_among(self.weights, get_args(Weighting), f"Unknown weighting {self.weights!r:.60}")
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
