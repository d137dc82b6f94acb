"""Counts by kind of sentence and by label."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from treeparse.metrics.counts import Count, ratio, universal_label
from treeparse.sentence import Sentence, nonprojective_words

LENGTH_LIMITS = (10, 20, 30, 40, 50)
LENGTH_BUCKETS = ("1-10", "11-20", "21-30", "31-40", "41-50", "51+")
PROJECTIVITY = ("projective", "non-projective")
GROUPS_SHAPE = (len(LENGTH_BUCKETS), len(PROJECTIVITY), 2, len(Count))


@dataclass(frozen=True, slots=True)
class LabelScore:
    """Precision and recall of one universal label: ``correct`` words have it and the right head in both trees.

    ``gold`` and ``system`` are the numbers of words with the label; scores are 0 where there is nothing to count.
    """

    gold: int
    system: int
    correct: int
    precision: float
    recall: float
    f1: float

    @classmethod
    def from_counts(cls, gold: int, system: int, correct: int) -> Self:
        """Return the scores of a label from its counts."""
        precision, recall, f1 = ratio(correct, system), ratio(correct, gold), ratio(2 * correct, gold + system)
        return cls(gold, system, correct, precision, recall, f1)


def label_scores(gold: Sequence[Sentence], system: Sequence[Sentence]) -> dict[str, LabelScore]:
    """Return precision, recall and F1 of every universal label, in alphabetical order; the words must agree."""
    counts = label_counts(gold, system)
    return {label: LabelScore.from_counts(*counts[label]) for label in sorted(counts)}


def label_counts(gold: Sequence[Sentence], system: Sequence[Sentence]) -> dict[str, tuple[int, int, int]]:
    """Count words by universal label: in gold, in the system's parse, and in both with the right head."""
    in_gold: Counter[str] = Counter()
    in_system: Counter[str] = Counter()
    correct: Counter[str] = Counter()
    for ours, theirs in zip(gold, system, strict=True):
        our_labels = list(map(universal_label, ours.labels or ()))
        their_labels = list(map(universal_label, theirs.labels or ()))
        in_gold.update(our_labels)
        in_system.update(their_labels)
        arcs = zip(our_labels, their_labels, ours.heads or (), theirs.heads or (), strict=True)
        correct.update(our_label for our_label, label, our_head, head in arcs if (our_label, our_head) == (label, head))
    return {label: (in_gold[label], in_system[label], correct[label]) for label in in_gold | in_system}


def grouped_counts(gold: Sequence[Sentence], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Sum counts of sentences ``(sentences, 2, len(Count))`` by length and projectivity, to ``GROUPS_SHAPE``."""
    groups = np.zeros(GROUPS_SHAPE, dtype=np.int64)
    length = [bisect_left(LENGTH_LIMITS, len(sentence)) for sentence in gold]
    crossing = [bool(nonprojective_words(sentence.heads or ())) for sentence in gold]
    np.add.at(groups, (np.array(length, dtype=np.intp), np.array(crossing, dtype=np.intp)), counts)
    return groups
