"""Accuracy of tags, as the official scorer of the CoNLL 2018 shared task counts it for equal tokens."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from treeparse.metrics.counts import check_comparable, ratio
from treeparse.sentence import EMPTY, Sentence

# The features that the official scorer compares: the universal ones of that year.
# fmt: off
UNIVERSAL_FEATURES = frozenset((
    "PronType", "NumType", "Poss", "Reflex", "Foreign", "Abbr", "Gender", "Animacy", "Number", "Case", "Definite",
    "Degree", "VerbForm", "Mood", "Tense", "Aspect", "Voice", "Evident", "Polarity", "Person", "Polite",
))
# fmt: on
TAG_SCORES = {"upos": "UPOS", "xpos": "XPOS", "ufeats": "UFeats", "all_tags": "AllTags"}  # as the scorer calls them
COLUMNS = {"upos": "upos", "xpos": "xpos", "ufeats": "feats"}  # of scores
TAG_COUNTS_SHAPE = (len(COLUMNS) + 1, 4)


def tag_scores(gold: Sequence[Sentence], system: Sequence[Sentence]) -> dict[str, float]:
    """Return shares of words in [0, 1] with right tags: ``upos``, ``xpos``, ``ufeats`` and, of all three, ``all_tags``.

    There is a score for each column that gold and the system both have in some word, and ``all_tags`` if they have the
    same columns. FEATS compare by universal features, in any order.

    Raises:
        TreeparseError: if the words differ; it names the sentence.
    """
    return tag_scores_of(tag_counts(gold, system))


def tag_counts(gold: Sequence[Sentence], system: Sequence[Sentence]) -> NDArray[np.int64]:
    """Count words for each column, and for all columns together; counts of several lists of sentences add up.

    The result is ``(4, 4)``: each row counts the words that are right, those with a value in gold, those with one in
    the system, and all words; in the last row, of all columns together, both in the middle are 0. Raises as
    `tag_scores`.
    """
    check_comparable(gold, system, trees=False)
    counts, all_right = np.zeros(TAG_COUNTS_SHAPE, np.int64), np.ones(sum(map(len, gold)), np.bool_)
    for row, (name, column) in enumerate(COLUMNS.items()):
        values, others = (_values(side, column) for side in (gold, system))
        right = np.array([equal_tags(name, *pair) for pair in zip(values, others, strict=True)], np.bool_)
        known = [sum(value != EMPTY for value in side) for side in (values, others)]
        counts[row] = right.sum(), *known, len(right)
        all_right &= right
    counts[-1] = all_right.sum(), 0, 0, len(all_right)
    return counts


def tag_scores_of(counts: NDArray[np.int64]) -> dict[str, float]:
    """Return the scores of `tag_scores` from the counts of `tag_counts`."""
    known = [{name for name, known in zip(COLUMNS, counts[:-1, side], strict=True) if known} for side in (1, 2)]
    scores = {
        name: ratio(int(row[0]), int(row[3]))
        for name, row in zip(COLUMNS, counts[:-1], strict=True)
        if name in known[0] & known[1]
    }
    if known[0] and known[0] == known[1]:
        scores["all_tags"] = ratio(int(counts[-1, 0]), int(counts[-1, 3]))
    return scores


def _values(sentences: Sequence[Sentence], column: str) -> list[str]:
    columns = ((getattr(sentence, column), len(sentence)) for sentence in sentences)
    return [value for values, count in columns for value in values or [EMPTY] * count]


def equal_tags(name: str, gold: str, system: str) -> bool:
    """Whether two values of a column are equal, features in any order and only universal ones."""
    if name != "ufeats":
        return gold == system
    one, other = (
        sorted(feature for feature in feats.split("|") if feature.split("=", 1)[0] in UNIVERSAL_FEATURES)
        for feats in (gold, system)
    )
    return one == other
