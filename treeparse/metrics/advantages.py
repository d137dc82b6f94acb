"""Words that one of two systems has right and the other has wrong."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from treeparse.metrics.counts import universal_label
from treeparse.sentence import Sentence


@dataclass(frozen=True, slots=True)
class Advantage:
    """A word that one system has right (head and universal label) and another has wrong."""

    sentence: int  # from 0
    word: int  # from 1
    label: str  # universal
    other: str  # the other system's universal label

    @property
    def mistake(self) -> str:
        """What the other system has wrong: the label, or only the head."""
        return f"{self.label} at another head" if self.other == self.label else f"{self.label} taken for {self.other}"


def advantages(gold: Sequence[Sentence], system: Sequence[Sentence], other: Sequence[Sentence]) -> list[Advantage]:
    """Return the words that one system has right and another has wrong, in order; the words must agree."""
    found = []
    for place, (ours, right, wrong) in enumerate(zip(gold, system, other, strict=True)):
        for word, (own, one, two) in enumerate(zip(*map(_arcs, (ours, right, wrong)), strict=True), 1):
            if own == one != two:
                found.append(Advantage(place, word, own[1], two[1]))
    return found


def _arcs(sentence: Sentence) -> list[tuple[int, str]]:
    """Return the head and universal label of each word."""
    return list(zip(sentence.heads or (), map(universal_label, sentence.labels or ()), strict=True))


@dataclass(frozen=True, slots=True)
class Direction:
    """Words that system A has right and B has wrong, or the reverse.

    ``balance`` has each sentence's number of such words less the other system's number.
    """

    right: str
    wrong: str
    words: list[Advantage]
    balance: Counter[int]

    @property
    def title(self) -> str:
        """The name of the system that is right."""
        return f"{self.right} right, {self.wrong} wrong"

    @property
    def sentences(self) -> list[int]:
        """The sentences with such words; the greatest advantages of this system come first."""
        return sorted({word.sentence for word in self.words}, key=lambda place: (-self.balance[place], place))

    @property
    def ahead(self) -> list[int]:
        """The sentences in which this system has more words right, the greatest advantage first."""
        return [place for place in self.sentences if self.balance[place] > 0]


def directions(gold: Sequence[Sentence], first: Sequence[Sentence], second: Sequence[Sentence]) -> list[Direction]:
    """Return both directions of systems A and B."""
    ours, theirs = advantages(gold, first, second), advantages(gold, second, first)
    balance = Counter(word.sentence for word in ours)
    balance.subtract(word.sentence for word in theirs)
    opposite = Counter({place: -count for place, count in balance.items()})
    return [Direction("A", "B", ours, balance), Direction("B", "A", theirs, opposite)]
