"""How well probabilities match outcomes: calibration errors and reliability tables."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import chain, starmap
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from treeparse.errors import TreeparseError
from treeparse.metrics.counts import check_comparable
from treeparse.sentence import EMPTY, Sentence

BINS = 15


@dataclass(frozen=True, slots=True)
class ReliabilityBin:
    """Words with probabilities from ``low`` to ``high``: their number, mean probability and share of right words."""

    low: float
    high: float
    words: int
    confidence: float
    accuracy: float


@dataclass(frozen=True, slots=True)
class Calibration:
    """How well probabilities of words match outcomes, all in [0, 1].

    The expected calibration error is the mean, over words, of the distance between their bin's mean probability and its
    share of right words: ``ece`` by bins of equal width (Naeini, Cooper and Hauskrecht 2015; Guo et al. 2017, eq. 3),
    ``ece_mass`` by bins of equally many words. ``bins`` are the bins of equal width with a word. ``confidence`` and
    ``accuracy`` are of all words. ``brier`` is the mean squared distance of probabilities from outcomes, 1 or 0 (Brier
    1950).
    """

    words: int
    confidence: float
    accuracy: float
    ece: float
    ece_mass: float
    brier: float
    bins: tuple[ReliabilityBin, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return all values by name, for JSON."""
        return asdict(self)


def calibration(probs: ArrayLike, right: ArrayLike, *, bins: int = BINS) -> Calibration:
    """Return the calibration of probabilities ``(N,)`` that words are right, from whether they are ``(N,)``.

    Raises:
        TreeparseError: if there are no words or bins, shapes differ, or a value is not a probability.
    """
    chances, truth = np.asarray(probs, dtype=np.float64), np.asarray(right, dtype=np.float64)
    if chances.ndim != 1 or chances.shape != truth.shape or not len(chances) or bins < 1:
        shapes = f"{chances.shape} and {truth.shape}, in {bins} bins"
        raise TreeparseError(
            f"Calibration needs a probability and an outcome of every word and one or more bins, got shapes {shapes}."
        )
    if not ((chances >= 0) & (chances <= 1)).all():
        raise TreeparseError("Calibration needs probabilities from 0 to 1, got others.")
    edges = np.linspace(0.0, 1.0, bins + 1)
    of_width = np.clip(np.searchsorted(edges, chances, side="right") - 1, 0, bins - 1)
    of_mass = np.empty(len(chances), dtype=np.int64)
    of_mass[np.argsort(chances, kind="stable")] = np.arange(len(chances)) * bins // len(chances)
    by_width, by_mass = (_binned(indices, chances, truth, bins) for indices in (of_width, of_mass))
    rows = zip(*(column.tolist() for column in (edges[:-1], edges[1:], *by_width)), strict=True)
    return Calibration(
        words=len(chances),
        confidence=float(chances.mean()),
        accuracy=float(truth.mean()),
        ece=_error(*by_width),
        ece_mass=_error(*by_mass),
        brier=float(np.square(chances - truth).mean()),
        bins=tuple(bin_ for bin_ in starmap(ReliabilityBin, rows) if bin_.words),
    )


def parse_calibration(
    gold: Sequence[Sentence],
    system: Sequence[Sentence],
    arc_probs: Sequence[Sequence[float]],
    label_probs: Sequence[Sequence[float]],
    *,
    bins: int = BINS,
) -> dict[str, Calibration]:
    """Return the calibration of a system's parses: of ``arcs``, ``labels`` and ``labeled_arcs``.

    An arc is right if its head is right, a labelled arc if its full label, subtypes included, is right too. The
    probability of a label is conditional on its arc, so ``labels`` counts words with right arcs. Words without a gold
    label count in ``arcs`` alone. A part without words is missing.

    Args:
        gold: sentences with gold trees.
        system: the same words under the parses.
        arc_probs: the probability of each word's arc.
        label_probs: the joint probability of its arc and label.
        bins: the number of bins of the expected calibration errors.

    Raises:
        TreeparseError: as ``attachment_scores``.
    """
    check_comparable(gold, system)
    heads = _equal([s.heads for s in gold], [s.heads for s in system])
    labels = _equal([s.labels for s in gold], [s.labels for s in system])
    arcs, labeled = (np.fromiter(chain.from_iterable(probs), dtype=np.float64) for probs in (arc_probs, label_probs))
    known = np.fromiter((label != EMPTY for s in gold for label in s.labels or ()), dtype=bool)
    result = {"arcs": calibration(arcs, heads, bins=bins)}
    if (used := heads & known).any():
        conditional = np.divide(labeled, arcs, out=np.zeros_like(arcs), where=arcs > 0).clip(0, 1)
        result["labels"] = calibration(conditional[used], labels[used], bins=bins)
    if known.any() or not len(known):
        result["labeled_arcs"] = calibration(labeled[known], (heads & labels)[known], bins=bins)
    return result


def _equal(gold: Sequence[Any], system: Sequence[Any]) -> NDArray[np.bool_]:
    """Return ``(words,)``: whether gold and system are equal."""
    pairs = zip(chain.from_iterable(gold), chain.from_iterable(system), strict=True)
    return np.fromiter((ours == theirs for ours, theirs in pairs), dtype=bool)


def _binned(
    indices: NDArray[np.int64], probs: NDArray[np.float64], truth: NDArray[np.float64], bins: int
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """Return each bin's number of words, mean probability and share of right words; 0 in empty bins."""
    counts = np.bincount(indices, minlength=bins)
    sums = (np.bincount(indices, weights=values, minlength=bins) for values in (probs, truth))
    confidences, accuracies = (total / np.maximum(counts, 1) for total in sums)
    return counts, confidences, accuracies


def _error(counts: NDArray[np.int64], confidences: NDArray[np.float64], accuracies: NDArray[np.float64]) -> float:
    return float((counts * np.abs(confidences - accuracies)).sum() / counts.sum())
