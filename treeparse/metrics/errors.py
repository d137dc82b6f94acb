"""Errors of a system: confusions of labels, and scores by the length of arcs."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from treeparse.metrics.counts import ratio, universal_label
from treeparse.sentence import Sentence

ARC_LIMITS = (1, 2, 3, 6, 10)
ARC_BUCKETS = ("1", "2", "3", "4-6", "7-10", "11+")
ROOT_ARCS = "root"


@dataclass(frozen=True, slots=True)
class Confusion:
    """Words with the universal label ``gold`` that the system labels ``system``; ``heads`` have the right head."""

    gold: str
    system: str
    words: int
    heads: int


@dataclass(frozen=True, slots=True)
class ArcLengthScore:
    """Precision and recall of arcs of some length, without labels: ``correct`` arcs are in both trees.

    ``gold`` and ``system`` are the numbers of arcs of that length in each; precision and recall are 0 if there is
    none (McDonald and Nivre 2007).
    """

    gold: int
    system: int
    correct: int
    precision: float
    recall: float


def label_confusions(gold: Sequence[Sentence], system: Sequence[Sentence]) -> list[Confusion]:
    """Return the confused pairs of universal labels, the most frequent first; the words must agree."""
    words: Counter[tuple[str, str]] = Counter()
    heads: Counter[tuple[str, str]] = Counter()
    for ours, theirs in zip(gold, system, strict=True):
        pairs = zip(map(universal_label, ours.labels or ()), map(universal_label, theirs.labels or ()), strict=True)
        for pair, head, other in zip(pairs, ours.heads or (), theirs.heads or (), strict=True):
            if pair[0] != pair[1]:
                words[pair] += 1
                heads[pair] += head == other
    return [Confusion(*pair, words[pair], heads[pair]) for pair in sorted(words, key=lambda pair: (-words[pair], pair))]


def arc_length_scores(gold: Sequence[Sentence], system: Sequence[Sentence]) -> dict[str, ArcLengthScore]:
    """Return scores by the distance of words and heads: root, 1, 2, ...; the words must agree."""
    counts = {bucket: [0, 0, 0] for bucket in (ROOT_ARCS, *ARC_BUCKETS)}
    for ours, theirs in zip(gold, system, strict=True):
        for word, (head, other) in enumerate(zip(ours.heads or (), theirs.heads or (), strict=True), 1):
            counts[_bucket(word, head)][0] += 1
            if other >= 0:
                counts[_bucket(word, other)][1] += 1
            counts[_bucket(word, head)][2] += head == other
    return {
        bucket: ArcLengthScore(ours, theirs, both, ratio(both, theirs), ratio(both, ours))
        for bucket, (ours, theirs, both) in counts.items()
        if ours or theirs
    }


def _bucket(word: int, head: int) -> str:
    return ARC_BUCKETS[bisect_left(ARC_LIMITS, abs(word - head))] if head else ROOT_ARCS


def wrong_words(gold: Sentence, system: Sentence) -> int:
    """Count words with another head or another universal label."""
    arcs = zip(gold.heads or (), system.heads or (), gold.labels or (), system.labels or (), strict=True)
    return sum(head != other or universal_label(a) != universal_label(b) for head, other, a, b in arcs)
