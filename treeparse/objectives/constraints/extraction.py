"""Constraints from trees: what shares a small treebank has, and which of them are worth saying."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from treeparse.errors import TreeparseError
from treeparse.sentence import EMPTY, Sentence

from .constraint import ROOT, Constraint, Direction, Target, Words

LEVELS = (0.1, 0.25, 0.5, 0.75, 1.0)
"""The targets that shares are rounded to; 0 is not among them, as what was seen is possible."""

Arc = tuple[str, str | None, Direction | None]
"""Tags of a word and its head, and the word's side; neither of the root."""


@dataclass(frozen=True)
class Extracted:
    """A constraint and what it comes from: ``matches`` of the ``words`` that it is about."""

    constraint: Constraint
    matches: int
    words: int


def extract_constraints(sentences: Iterable[Sentence], count: int = 20, *, exact: bool = False) -> list[Extracted]:
    """Constraints from sentences with trees and UPOS, after Druck et al. (2009), who take theirs from treebanks, too.

    Of all combinations of a word's UPOS, its head's UPOS and the side of the head on which it stands (or a word's UPOS
    and the root) the ``count`` most frequent are chosen, equally frequent ones in the order of their names. A target is
    the share of the words of that UPOS which have such a head on this side, rounded to the nearest of 0.1, 0.25, 0.5,
    0.75 and 1: a treebank of a few sentences knows no more digits. With ``exact`` it has four digits instead. Words
    whose head is unknown are left out.

    Raises:
        TreeparseError: for less than one constraint, words without UPOS, and no known head at all.
    """
    if count < 1:
        raise TreeparseError(f"At least one constraint must be extracted, not {count}.")
    arcs = Counter(arc for sentence in sentences for arc in _arcs(sentence))
    if not arcs:
        raise TreeparseError("No word has a head, so there is nothing to extract: constraints come from trees.")
    words = Counter[str]()
    for (tag, _, _), number in arcs.items():
        words[tag] += number
    chosen = sorted(arcs.items(), key=lambda item: (-item[1], *(part or "" for part in item[0])))[:count]
    return [Extracted(_constraint(arc, number / words[arc[0]], exact), number, words[arc[0]]) for arc, number in chosen]


def _arcs(sentence: Sentence) -> Iterator[Arc]:
    if sentence.upos is None or EMPTY in sentence.upos:
        start = " ".join(sentence.forms[:5])
        raise TreeparseError(f"The sentence that starts with '{start}' has words without UPOS: tag the treebank first.")
    for word, (tag, head) in enumerate(zip(sentence.upos, sentence.heads or (), strict=False), 1):
        if head == 0:
            yield tag, None, None
        elif head > 0:
            yield tag, sentence.upos[head - 1], "left" if word < head else "right"


def _constraint(arc: Arc, share: float, exact: bool) -> Constraint:
    tag, head, direction = arc
    value = round(share, 4) if exact else min(LEVELS, key=lambda level: abs(level - share))
    return Constraint(Target(value, value), Words((tag,)), ROOT if head is None else Words((head,)), direction)


def shares_of_trees(constraints: Sequence[Constraint], sentences: Iterable[Sentence]) -> list[tuple[int, int]]:
    """For each constraint the words of known head that match it, and all those that it is about, by the trees.

    A constraint on labels is about words of known label.
    """
    matches, words = [0] * len(constraints), [0] * len(constraints)
    for sentence in sentences:
        labels = sentence.labels or (EMPTY,) * len(sentence)
        for word, (head, label) in enumerate(zip(sentence.heads or (), labels, strict=False)):
            for place, constraint in enumerate(constraints):
                if head >= 0 and (label != EMPTY or not constraint.label) and constraint.concerns(sentence, word):
                    words[place] += 1
                    matches[place] += constraint.holds(sentence, word, head, label)
    return list(zip(matches, words, strict=True))
