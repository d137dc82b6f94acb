"""Constraints: shares of words that are expected to have some kind of head, label or arc; and those of a treebank."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, cast, get_args

from torch import Tensor

from treeparse.errors import TreeparseError, did_you_mean
from treeparse.sentence import EMPTY, Sentence

Root = Literal["root"]
Direction = Literal["left", "right"]
ROOT: Root = "root"
LEVELS = (0.1, 0.25, 0.5, 0.75, 1.0)
"""The targets that shares are rounded to, without 0, because all extracted combinations are possible."""

Arc = tuple[str, str | None, Direction | None]
"""Tags of a word and its head, and the word's side; neither of the root."""


@dataclass(frozen=True)
class WordSet:
    """A set of words: all words with one of the tags and one of the forms.

    Attributes:
        upos: universal parts of speech, as in the text; empty for any.
        word: forms, lower-cased; empty for any.
    """

    upos: tuple[str, ...] = ()
    word: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.upos and not self.word:
            raise TreeparseError("a set of words must have upos, word or both, got neither")
        if ROOT in (tag.lower() for tag in self.upos):
            raise TreeparseError(
                "upos must be tags of words, got the root: for words that hang from the root, write 'head: root'"
            )
        object.__setattr__(self, "upos", _distinct(self.upos))
        object.__setattr__(self, "word", _distinct(word.lower() for word in self.word))

    def include(self, sentence: Sentence, word: int) -> bool:
        """Whether a word of a sentence, counted from 0, is in the set."""
        has_tag = not self.upos or (sentence.upos is not None and sentence.upos[word] in self.upos)
        return has_tag and (not self.word or sentence.forms[word].lower() in self.word)

    def __str__(self) -> str:
        return " ".join(filter(None, ("/".join(self.word), "/".join(self.upos))))


@dataclass(frozen=True)
class Distance:
    """The distance of a word from its head, ``nearest`` to ``farthest``; neighbours have distance 1."""

    nearest: int
    farthest: int

    def __post_init__(self) -> None:
        if not 1 <= self.nearest <= self.farthest:
            raise TreeparseError(
                f"a distance must be a number from 1, or an interval of such numbers, got {self.nearest} to "
                f"{self.farthest}"
            )

    def __str__(self) -> str:
        if self.nearest == self.farthest:
            return f"{self.nearest} word{'s' * (self.nearest > 1)} apart"
        return f"{self.nearest} to {self.farthest} words apart"


@dataclass(frozen=True)
class Target:
    """The interval of shares that meet a constraint, ``least`` to ``most``; both are equal for an exact share."""

    least: float
    most: float

    def __post_init__(self) -> None:
        if not 0 <= self.least <= 1 or not 0 <= self.most <= 1:
            odd = self.most if 0 <= self.least <= 1 else self.least
            raise TreeparseError(f"a probability must be a number from 0 to 1, got {odd:g}")
        if self.least > self.most:
            raise TreeparseError(f"an interval must begin with its lower end: write [{self.most:g}, {self.least:g}]")
        if self.least == 0 and self.most == 1:
            raise TreeparseError("a target must exclude some share, got 0 to 1, which every share meets")

    @property
    def is_exact(self) -> bool:
        """Whether exactly one share meets the constraint."""
        return self.least == self.most

    def nearest(self, share: Tensor) -> Tensor:
        """Return the share of the interval that is nearest to a share."""
        return share.clamp(self.least, self.most)

    def __str__(self) -> str:
        if self.is_exact:
            return f"{self.least:g}"
        if self.most == 1:
            return f"at least {self.least:g}"
        return f"at most {self.most:g}" if self.least == 0 else f"{self.least:g} to {self.most:g}"


@dataclass(frozen=True)
class Constraint:
    """Among all words in ``dependent``, a share within ``target`` is expected to have such a head, side and label.

    Attributes:
        target: the share.
        dependent: the words that the share is of; None for all.
        head: the set of their heads, or the root; None for any.
        direction: the side of the head on which the word is, so that the root is no head; None for either.
        label: labels, one of which the arc has; a subtype is another label. Empty for any.
        distance: the distance between the word and its head, so that the root is no head; None for any.
    """

    target: Target
    dependent: WordSet | None = None
    head: WordSet | Root | None = None
    direction: Direction | None = None
    label: tuple[str, ...] = ()
    distance: Distance | None = None

    def __post_init__(self) -> None:
        if not self.head and not self.direction and not self.label and not self.distance:
            raise TreeparseError("a constraint must have at least one of head, direction, label and distance, got none")
        if self.head == ROOT and (self.direction or self.distance):
            raise TreeparseError("the head root has no position: leave out direction and distance, or the head")
        if self.direction is not None:
            direction_named(self.direction)
        object.__setattr__(self, "label", _distinct(self.label))

    @property
    def event(self) -> tuple[object, ...]:
        """The constraint without its target and the order of lists, to find two constraints on the same words."""
        ends = (
            tuple(frozenset(part) for part in (words.upos, words.word)) if isinstance(words, WordSet) else words
            for words in (self.dependent, self.head)
        )
        return *ends, self.direction, frozenset(self.label), self.distance

    def concerns(self, sentence: Sentence, word: int) -> bool:
        """Whether the share is of this word of a sentence, counted from 0."""
        return self.dependent is None or self.dependent.include(sentence, word)

    def holds(self, sentence: Sentence, word: int, head: int, label: str) -> bool:
        """Whether a word, counted from 0, matches with this head, 0 for the root, and this label."""
        if self.label and label not in self.label:
            return False
        if head == 0:
            return self.head in (None, ROOT) and not self.direction and not self.distance
        if self.head is not None and (self.head == ROOT or not self.head.include(sentence, head - 1)):
            return False
        apart = head - 1 - word
        on_side = self.direction is None or (apart > 0) == (self.direction == "left")
        distance = self.distance
        return on_side and (distance is None or distance.nearest <= abs(apart) <= distance.farthest)

    def __str__(self) -> str:
        """Describe the constraint in words, without the target."""
        head = "any head" if self.head is None else "the root" if self.head == ROOT else str(self.head)
        parts = [
            f"{'any word' if self.dependent is None else self.dependent} hangs from {head}",
            f"to its {self.direction}" if self.direction else "",
            str(self.distance or ""),
            f"as {' or '.join(self.label)}" if self.label else "",
        ]
        return ", ".join(filter(None, parts))


def direction_named(name: str) -> Direction:
    """Return the direction of a name, or raise."""
    if name not in get_args(Direction):
        close = did_you_mean(name, get_args(Direction))
        raise TreeparseError(f"direction must be left or right, got {name!r}{close}")
    return cast(Direction, name)


def _distinct(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(values))


def tags_of(sentence: Sentence, rule: str, remedy: str) -> Sequence[str]:
    """Return the UPOS of a sentence's words; if some have none, raise an error of this rule and remedy."""
    if sentence.upos is None or EMPTY in sentence.upos:
        start = " ".join(sentence.forms[:5])
        raise TreeparseError(f"{rule}, but the sentence that starts with '{start}' has words without {remedy}.")
    return sentence.upos


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
    tags = tags_of(sentence, "Words must have UPOS", "it: tag the treebank")
    for word, (tag, head) in enumerate(zip(tags, sentence.heads or (), strict=False), 1):
        if head == 0:
            yield tag, None, None
        elif head > 0:
            yield tag, tags[head - 1], "left" if word < head else "right"


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
