"""Whether things come true as often as a model says: expected calibration errors and reliability tables."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import chain, starmap
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from treeparse.errors import TreeparseError
from treeparse.metrics.counts import check_comparable
from treeparse.sentence import Sentence

BINS = 15


@dataclass(frozen=True, slots=True)
class ReliabilityBin:
    """The words whose probability lies from ``low`` to ``high``: how many, their mean probability, the share right."""

    low: float
    high: float
    words: int
    confidence: float
    accuracy: float


@dataclass(frozen=True, slots=True)
class Calibration:
    """How well probabilities of words fit what is right, all in [0, 1].

    The expected calibration error is the mean, over words, of the distance between their bin's mean probability and its
    share of right words: ``ece`` by bins of equal width (Naeini, Cooper and Hauskrecht 2015; Guo et al. 2017, eq. 3),
    ``ece_mass`` by bins of equally many words. ``bins`` are those of equal width that hold a word. ``confidence`` and
    ``accuracy`` are of all words. ``brier`` is the mean squared distance of probabilities from what came true, 1 or 0
    (Brier 1950).
    """

    words: int
    confidence: float
    accuracy: float
    ece: float
    ece_mass: float
    brier: float
    bins: tuple[ReliabilityBin, ...]

    def as_dict(self) -> dict[str, Any]:
        """Everything by name: what JSON takes."""
        return asdict(self)


def calibration(probs: ArrayLike, right: ArrayLike, *, bins: int = BINS) -> Calibration:
    """The calibration of probabilities ``(N,)`` of words being right, beside whether they are ``(N,)``.

    Raises:
        TreeparseError: without words or bins, or where the two have other shapes or what is no probability.
    """
    chances, truth = np.asarray(probs, dtype=np.float64), np.asarray(right, dtype=np.float64)
    if chances.ndim != 1 or chances.shape != truth.shape or not len(chances) or bins < 1:
        shapes = f"{chances.shape} and {truth.shape}, in {bins} bins"
        raise TreeparseError(f"Calibration wants a probability of every word and whether it is right, not {shapes}.")
    if not ((chances >= 0) & (chances <= 1)).all():
        raise TreeparseError("Calibration wants probabilities, from 0 to 1.")
    edges = np.linspace(0.0, 1.0, bins + 1)
    of_width = np.clip(np.searchsorted(edges, chances, side="right") - 1, 0, bins - 1)
    of_mass = np.empty(len(chances), dtype=np.int64)
    of_mass[np.argsort(chances, kind="stable")] = np.arange(len(chances)) * bins // len(chances)
    counts, confidences, accuracies = _binned(of_width, chances, truth, bins)
    columns = (edges[:-1], edges[1:], counts, confidences, accuracies)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return Calibration(
        words=len(chances),
        confidence=float(chances.mean()),
        accuracy=float(truth.mean()),
        ece=_error(of_width, chances, truth, bins),
        ece_mass=_error(of_mass, chances, truth, bins),
        brier=float(np.square(chances - truth).mean()),
        bins=tuple(each for each in starmap(ReliabilityBin, rows) if each.words),
    )


def parse_calibration(
    gold: Sequence[Sentence],
    system: Sequence[Sentence],
    arc_probs: Sequence[Sequence[float]],
    label_probs: Sequence[Sequence[float]],
    *,
    bins: int = BINS,
) -> dict[str, Calibration]:
    """The calibration of a system's parses: of ``arcs``, ``labels`` and ``labeled_arcs``.

    An arc is right where the head is, a labelled arc where the label is too, in full, subtypes included: it is the full
    label whose probability is given. The probability of a label is that given its arc, so it counts where the arc is
    right, and is missing where none is.

    Args:
        gold: sentences with gold trees.
        system: the same words under the parses.
        arc_probs: of each word's arc.
        label_probs: of its arc and label together.
        bins: of the expected calibration errors.

    Raises:
        TreeparseError: as ``attachment_scores`` does.
    """
    check_comparable(gold, system)
    heads = _equal([s.heads for s in gold], [s.heads for s in system])
    labels = _equal([s.labels for s in gold], [s.labels for s in system])
    arcs, labeled = (np.fromiter(chain.from_iterable(probs), dtype=np.float64) for probs in (arc_probs, label_probs))
    found = {"arcs": calibration(arcs, heads, bins=bins)}
    if heads.any():
        given = np.divide(labeled, arcs, out=np.zeros_like(arcs), where=arcs > 0).clip(0, 1)
        found["labels"] = calibration(given[heads], labels[heads], bins=bins)
    return {**found, "labeled_arcs": calibration(labeled, heads & labels, bins=bins)}


def _equal(gold: Sequence[Any], system: Sequence[Any]) -> NDArray[np.bool_]:
    """Word by word whether the two have the same."""
    pairs = zip(chain.from_iterable(gold), chain.from_iterable(system), strict=True)
    return np.fromiter((ours == theirs for ours, theirs in pairs), dtype=bool)


def _binned(
    places: NDArray[np.int64], probs: NDArray[np.float64], truth: NDArray[np.float64], bins: int
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """Of each bin the number of words, their mean probability and the share that is right; 0 where there are none."""
    counts = np.bincount(places, minlength=bins)
    sums = (np.bincount(places, weights=values, minlength=bins) for values in (probs, truth))
    confidences, accuracies = (total / np.maximum(counts, 1) for total in sums)
    return counts, confidences, accuracies


def _error(places: NDArray[np.int64], probs: NDArray[np.float64], truth: NDArray[np.float64], bins: int) -> float:
    counts, confidences, accuracies = _binned(places, probs, truth, bins)
    return float((counts * np.abs(confidences - accuracies)).sum() / len(probs))
