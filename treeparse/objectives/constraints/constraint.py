"""A constraint: of all words of some kind, what share is expected to have such a head, such a label, such an arc."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, cast, get_args

from torch import Tensor

from treeparse.errors import TreeparseError, did_you_mean
from treeparse.sentence import Sentence

Root = Literal["root"]
Direction = Literal["left", "right"]
ROOT: Root = "root"


@dataclass(frozen=True)
class Words:
    """Which words: those that have one of the tags and are one of the words, as far as these are given.

    Attributes:
        upos: universal parts of speech, as they stand in the text; none for any.
        word: forms, lower-cased; none for any.
    """

    upos: tuple[str, ...] = ()
    word: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.upos and not self.word:
            raise TreeparseError("nothing is said of the words: give upos, word or both")
        if ROOT in (tag.lower() for tag in self.upos):
            raise TreeparseError("the root has no UPOS: for words that hang from it, write 'head: root'")
        object.__setattr__(self, "upos", _distinct(self.upos))
        object.__setattr__(self, "word", _distinct(word.lower() for word in self.word))

    def include(self, sentence: Sentence, word: int) -> bool:
        """Whether these are among them: the words of a sentence count from 0."""
        has_tag = not self.upos or (sentence.upos is not None and sentence.upos[word] in self.upos)
        return has_tag and (not self.word or sentence.forms[word].lower() in self.word)

    def __str__(self) -> str:
        return " ".join(filter(None, ("/".join(self.word), "/".join(self.upos))))


@dataclass(frozen=True)
class Distance:
    """How many words a word is from its head, ``nearest`` to ``farthest``; neighbours are 1 apart."""

    nearest: int
    farthest: int

    def __post_init__(self) -> None:
        if not 1 <= self.nearest <= self.farthest:
            raise TreeparseError(
                f"a distance is 1 or more, or goes from one such number to a greater one, not {self.nearest} to "
                f"{self.farthest}"
            )

    def __str__(self) -> str:
        if self.nearest == self.farthest:
            return f"{self.nearest} word{'s' * (self.nearest > 1)} apart"
        return f"{self.nearest} to {self.farthest} words apart"


@dataclass(frozen=True)
class Target:
    """The shares that are as they should be, from ``least`` to ``most``, which are equal where one share alone is."""

    least: float
    most: float

    def __post_init__(self) -> None:
        if not 0 <= self.least <= 1 or not 0 <= self.most <= 1:
            odd = self.most if 0 <= self.least <= 1 else self.least
            raise TreeparseError(f"a probability lies between 0 and 1, which {odd:g} does not")
        if self.least > self.most:
            raise TreeparseError(f"the lower end of an interval comes first: [{self.most:g}, {self.least:g}]")
        if self.least == 0 and self.most == 1:
            raise TreeparseError("every share lies between 0 and 1: this constrains nothing")

    @property
    def is_exact(self) -> bool:
        """Whether one share alone is as it should be."""
        return self.least == self.most

    def nearest(self, share: Tensor) -> Tensor:
        """The target that is nearest to a share."""
        return share.clamp(self.least, self.most)

    def __str__(self) -> str:
        if self.is_exact:
            return f"{self.least:g}"
        if self.most == 1:
            return f"at least {self.least:g}"
        return f"at most {self.most:g}" if self.least == 0 else f"{self.least:g} to {self.most:g}"


@dataclass(frozen=True)
class Constraint:
    """Of all words that are ``dependent``, a share within ``target`` is expected to have what the rest says.

    Attributes:
        target: the share.
        dependent: the words that the share is of; None for all.
        head: the words from which they hang, or the root; None for any.
        direction: the side of its head on which the word stands, which therefore is not the root; None for either.
        label: of which one is on the arc, subtypes being labels of their own; none for any.
        distance: between the word and its head, which therefore is not the root; None for any.
    """

    target: Target
    dependent: Words | None = None
    head: Words | Root | None = None
    direction: Direction | None = None
    label: tuple[str, ...] = ()
    distance: Distance | None = None

    def __post_init__(self) -> None:
        if not self.head and not self.direction and not self.label and not self.distance:
            raise TreeparseError("nothing is said of head, direction, label or distance: say what the share is to have")
        if self.head == ROOT and (self.direction or self.distance):
            raise TreeparseError("the root stands nowhere in a sentence: leave out direction and distance, or the root")
        if self.direction is not None:
            direction_named(self.direction)
        object.__setattr__(self, "label", _distinct(self.label))

    @property
    def needs_upos(self) -> bool:
        """Whether tags are looked at."""
        return any(isinstance(words, Words) and words.upos for words in (self.dependent, self.head))

    @property
    def event(self) -> tuple[object, ...]:
        """What is constrained, equal for constraints that differ in their targets or in the order of lists alone."""
        ends = (
            tuple(frozenset(part) for part in (words.upos, words.word)) if isinstance(words, Words) else words
            for words in (self.dependent, self.head)
        )
        return *ends, self.direction, frozenset(self.label), self.distance

    def concerns(self, sentence: Sentence, word: int) -> bool:
        """Whether the share is of this word, of those of a sentence from 0."""
        return self.dependent is None or self.dependent.include(sentence, word)

    def holds(self, sentence: Sentence, word: int, head: int, label: str) -> bool:
        """Whether a word from 0 has what is said if it hangs from ``head``, 0 for the root, by a label."""
        if self.label and label not in self.label:
            return False
        if head == 0:
            return self.head in (None, ROOT) and not self.direction and not self.distance
        if self.head is not None and (self.head == ROOT or not self.head.include(sentence, head - 1)):
            return False
        apart = head - 1 - word
        is_there = self.direction is None or (apart > 0) == (self.direction == "left")
        distance = self.distance
        return is_there and (distance is None or distance.nearest <= abs(apart) <= distance.farthest)

    def __str__(self) -> str:
        """What is constrained in words, without the target."""
        head = "any head" if self.head is None else "the root" if self.head == ROOT else str(self.head)
        parts = [
            f"{'any word' if self.dependent is None else self.dependent} hangs from {head}",
            f"to its {self.direction}" if self.direction else "",
            str(self.distance or ""),
            f"as {' or '.join(self.label)}" if self.label else "",
        ]
        return ", ".join(filter(None, parts))


def direction_named(name: str) -> Direction:
    """The direction of that name, or an error that says which there are."""
    if name not in get_args(Direction):
        close = did_you_mean(name, get_args(Direction))
        raise TreeparseError(f"the direction is {name!r}, but should be left or right{close}")
    return cast(Direction, name)


def _distinct(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(values))
