"""The paired bootstrap test over sentences: whether one system parses better than another."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from treeparse.errors import TreeparseError
from treeparse.metrics.counts import Count, sentence_counts
from treeparse.sentence import Sentence

# Compared scores: name -> columns whose sums are the numerator and the denominator.
STATISTICS = {
    "uas": ((Count.HEADS,), (Count.WORDS,)),
    "las": ((Count.LABELED,), (Count.WITH_LABEL,)),
    "clas": ((Count.CONTENT_CORRECT, Count.CONTENT_CORRECT), (Count.CONTENT_GOLD, Count.CONTENT_SYSTEM)),
}

CHUNK = 1 << 20  # sentences drawn at a time, which bounds memory
ROUNDING = 1e-12  # differences this close are equal


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two systems on the same sentences by one score; ``difference`` is ``second - first``, all in [-1, 1].

    ``low`` and ``high`` bound the percentile interval of the difference. ``p_value`` is two-sided;
    ``p_value_one_sided`` tests that the system that scored higher is better.
    """

    first: float
    second: float
    difference: float
    low: float
    high: float
    confidence: float
    p_value: float
    p_value_one_sided: float
    resamples: int


def paired_bootstrap(
    gold: Sequence[Sentence],
    first: Sequence[Sentence],
    second: Sequence[Sentence],
    *,
    resamples: int = 10_000,
    confidence: float = 0.95,
    seed: int = 0,
) -> dict[str, Comparison]:
    """Compare two systems by ``uas``, ``las`` and ``clas``, resampling sentences; the same seed gives the same figures.

    Without any label in gold the comparison is by ``uas`` alone.

    The test is the shifted one of Berg-Kirkpatrick, Burkett and Klein (2012): under the null hypothesis the differences
    of the resamples scatter around 0 as they scatter in the sample around the observed difference d, so the one-sided
    p-value is the share of resamples whose difference lies d or more above d, the two-sided one that of those |d| or
    more off d. Both count the observed sample as one more resample (Davison and Hinkley 1997, eq. 4.11), so no p-value
    is 0 and equal systems have 1. (The test of Koehn 2004, the share of resamples in which the better system loses,
    agrees where that scatter is symmetric.)

    Raises:
        TreeparseError: if ``attachment_scores`` would raise it for either system, there is no sentence, or a number is
            out of range.
    """
    counts = [sentence_counts(gold, system)[:, 0] for system in (first, second)]
    return compare_counts(*counts, resamples=resamples, confidence=confidence, seed=seed)


def compare_counts(
    first: NDArray[np.int64],
    second: NDArray[np.int64],
    *,
    resamples: int = 10_000,
    confidence: float = 0.95,
    seed: int = 0,
) -> dict[str, Comparison]:
    """Do ``paired_bootstrap`` from the counts ``(sentences, len(Count))`` of each system."""
    if not len(first):
        raise TreeparseError("There is no sentence to compare the systems on.")
    if resamples < 1 or seed < 0 or not 0 < confidence < 1:
        values = f"resamples {resamples}, seed {seed}, confidence {confidence}"
        raise TreeparseError(f"The bootstrap needs resamples >= 1, seed >= 0 and 0 < confidence < 1, got {values}.")
    parts = np.stack([_fractions(first), _fractions(second)], axis=1)  # (sentences, system, part, score)
    observed = _scores(parts.sum(0))
    chunks = [_scores(sums) for sums in _resampled_sums(parts, resamples, np.random.default_rng(seed))]
    scattered = np.diff(np.concatenate(chunks), axis=1)[:, 0]  # (resamples, score)
    names = [*STATISTICS] if first[:, Count.WITH_LABEL].any() else ["uas"]
    return {name: _compare(observed[:, index], scattered[:, index], confidence) for index, name in enumerate(names)}


def _fractions(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return ``(sentences, 2, scores)``: each sentence's part of every score's numerator and denominator."""
    columns = [[counts[:, list(part)].sum(1) for part in parts] for parts in STATISTICS.values()]
    return np.stack([np.stack(parts, axis=1) for parts in columns], axis=2)


def _scores(sums: NDArray[np.number]) -> NDArray[np.float64]:
    """Divide numerators and denominators ``(..., 2, scores) -> (..., scores)``; 0 if there is nothing to count."""
    numerator, denominator = sums[..., 0, :], sums[..., 1, :]
    return np.divide(numerator, denominator, out=np.zeros(numerator.shape), where=denominator > 0)


def _resampled_sums(
    parts: NDArray[np.int64], resamples: int, rng: np.random.Generator
) -> Iterator[NDArray[np.float64]]:
    """Yield the parts summed over sentences drawn with replacement, ``(chunk, 2, 2, scores)`` at a time.

    Drawing once means one weight a sentence for both systems, and one matrix product for all sums, exact in float64.
    """
    count = len(parts)
    values = parts.reshape(count, -1).astype(np.float64)
    rows = max(1, CHUNK // count)
    for start in range(0, resamples, rows):
        size = min(rows, resamples - start)
        drawn = rng.integers(count, size=(size, count)) + count * np.arange(size)[:, None]
        weights = np.bincount(drawn.ravel(), minlength=size * count).reshape(size, count)
        yield (weights.astype(np.float64) @ values).reshape(size, *parts.shape[1:])


def _compare(observed: NDArray[np.float64], scattered: NDArray[np.float64], confidence: float) -> Comparison:
    first, second = observed.tolist()
    difference = second - first
    tail = (1 - confidence) / 2
    low, high = np.quantile(scattered, [tail, 1 - tail]).tolist()
    shifted = scattered - difference
    beyond = np.abs(shifted) >= abs(difference) - ROUNDING
    better = np.copysign(1.0, difference) * shifted >= abs(difference) - ROUNDING
    return Comparison(
        first=first,
        second=second,
        difference=difference,
        low=low,
        high=high,
        confidence=confidence,
        p_value=float((1 + beyond.sum()) / (1 + len(shifted))),
        p_value_one_sided=float((1 + better.sum()) / (1 + len(shifted))),
        resamples=len(shifted),
    )
