"""Constraints from trees: the most frequent combinations of a small treebank, with their shares."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from treeparse.errors import TreeparseError
from treeparse.sentence import EMPTY, Sentence

from .constraint import ROOT, Constraint, Direction, Target, WordSet

LEVELS = (0.1, 0.25, 0.5, 0.75, 1.0)
"""The targets that shares are rounded to, without 0, because all extracted combinations are possible."""

Arc = tuple[str, str | None, Direction | None]
"""Tags of a word and its head, and the word's side; neither of the root."""


@dataclass(frozen=True)
class Extracted:
    """A constraint and its counts: ``matches`` of the ``words`` that it concerns."""

    constraint: Constraint
    matches: int
    words: int


def extract_constraints(sentences: Iterable[Sentence], count: int = 20, *, exact: bool = False) -> list[Extracted]:
    """Extract constraints from sentences with trees and UPOS (Druck et al. 2009).

    The ``count`` most frequent combinations of a word's UPOS, its head's UPOS and the side of the head (or a word's
    UPOS and the root) are chosen; ties are in the order of names. A target is the share of the words of that UPOS that
    have such a head on this side, rounded to the nearest of 0.1, 0.25, 0.5, 0.75 and 1, because a few sentences
    determine no more digits. ``exact`` gives four digits instead. Words of unknown head are skipped.

    Raises:
        TreeparseError: for a count below 1, for words without UPOS, and if no head is known.
    """
    if count < 1:
        raise TreeparseError(f"The number of constraints to extract must be at least 1, got {count}.")
    arcs = Counter(arc for sentence in sentences for arc in _arcs(sentence))
    if not arcs:
        raise TreeparseError("Extraction needs words with heads, got none: use a treebank with trees.")
    words = Counter[str]()
    for (tag, _, _), number in arcs.items():
        words[tag] += number
    chosen = sorted(arcs.items(), key=lambda item: (-item[1], *(part or "" for part in item[0])))[:count]
    return [Extracted(_constraint(arc, number / words[arc[0]], exact), number, words[arc[0]]) for arc, number in chosen]


def _arcs(sentence: Sentence) -> Iterator[Arc]:
    if sentence.upos is None or EMPTY in sentence.upos:
        start = " ".join(sentence.forms[:5])
        raise TreeparseError(
            f"Words must have UPOS, but the sentence that starts with '{start}' has words without: tag the treebank."
        )
    for word, (tag, head) in enumerate(zip(sentence.upos, sentence.heads or (), strict=False), 1):
        if head == 0:
            yield tag, None, None
        elif head > 0:
            yield tag, sentence.upos[head - 1], "left" if word < head else "right"


def _constraint(arc: Arc, share: float, exact: bool) -> Constraint:
    tag, head, direction = arc
    value = round(share, 4) if exact else min(LEVELS, key=lambda level: abs(level - share))
    return Constraint(Target(value, value), WordSet((tag,)), ROOT if head is None else WordSet((head,)), direction)


def shares_of_trees(constraints: Sequence[Constraint], sentences: Iterable[Sentence]) -> list[tuple[int, int]]:
    """Count for each constraint the words of known head that match it, and all words that it concerns.

    A constraint on labels concerns words of known label only.
    """
    matches, words = [0] * len(constraints), [0] * len(constraints)
    for sentence in sentences:
        labels = sentence.labels or (EMPTY,) * len(sentence)
        for word, (head, label) in enumerate(zip(sentence.heads or (), labels, strict=False)):
            for index, constraint in enumerate(constraints):
                if head >= 0 and (label != EMPTY or not constraint.label) and constraint.concerns(sentence, word):
                    words[index] += 1
                    matches[index] += constraint.holds(sentence, word, head, label)
    return list(zip(matches, words, strict=True))
