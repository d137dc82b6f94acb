"""Errors of systems: confusions of labels, scores by arc length, and words that only one of two systems has right."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from treeparse.metrics.counts import PrecisionRecall, is_right, universal_arcs
from treeparse.sentence import EMPTY, Sentence

ARC_LIMITS = (1, 2, 3, 6, 10)
ARC_BUCKETS = ("1", "2", "3", "4-6", "7-10", "11+")
ROOT_ARCS = "root"
DEPTHS = ("1", "2", "3", "4", "5", "6+")  # arcs from the root to a word


@dataclass(frozen=True, slots=True)
class Confusion:
    """Words with the universal label ``gold`` that the system labels ``system``; ``heads`` have the right head."""

    gold: str
    system: str
    words: int
    heads: int


def label_confusions(gold: Sequence[Sentence], system: Sequence[Sentence]) -> list[Confusion]:
    """Return the confused pairs of universal labels, the most frequent first; the words must agree.

    Words without a gold label do not count.
    """
    words: Counter[tuple[str, str]] = Counter()
    heads: Counter[tuple[str, str]] = Counter()
    for ours, theirs in zip(gold, system, strict=True):
        for (head, label), (other, other_label) in zip(universal_arcs(ours), universal_arcs(theirs), strict=True):
            if label not in (EMPTY, other_label):
                words[label, other_label] += 1
                heads[label, other_label] += head == other
    return [Confusion(*pair, words[pair], heads[pair]) for pair in sorted(words, key=lambda pair: (-words[pair], pair))]


def arc_length_scores(gold: Sequence[Sentence], system: Sequence[Sentence]) -> dict[str, PrecisionRecall]:
    """Return scores of unlabelled arcs by length (McDonald and Nivre 2007): root, 1, 2, ...; the words must agree."""
    counts = {bucket: [0, 0, 0] for bucket in (ROOT_ARCS, *ARC_BUCKETS)}
    for ours, theirs in zip(gold, system, strict=True):
        for word, (head, other) in enumerate(zip(ours.heads or (), theirs.heads or (), strict=True), 1):
            counts[_bucket(word, head)][0] += 1
            if other >= 0:
                counts[_bucket(word, other)][1] += 1
            counts[_bucket(word, head)][2] += head == other
    return {
        bucket: PrecisionRecall.from_counts(ours, theirs, both)
        for bucket, (ours, theirs, both) in counts.items()
        if ours or theirs
    }


def _bucket(word: int, head: int) -> str:
    return ARC_BUCKETS[bisect_left(ARC_LIMITS, abs(word - head))] if head else ROOT_ARCS


@dataclass(frozen=True, slots=True)
class DepthScore:
    """The words at one depth of the gold trees, and how many of them have the right head."""

    words: int
    right: int


def depth_scores(gold: Sequence[Sentence], system: Sequence[Sentence]) -> dict[str, DepthScore]:
    """Return scores of heads by the depth of the word in its gold tree: 1, 2, ...; the words must agree."""
    words: Counter[str] = Counter()
    right: Counter[str] = Counter()
    for ours, theirs in zip(gold, system, strict=True):
        heads = ours.heads or ()
        for word, (head, other) in enumerate(zip(heads, theirs.heads or (), strict=True), 1):
            depth = _depth(word, heads)
            if depth > 0:
                name = DEPTHS[min(depth, len(DEPTHS)) - 1]
                words[name] += 1
                right[name] += head == other
    return {name: DepthScore(words[name], right[name]) for name in DEPTHS if words[name]}


def _depth(word: int, heads: Sequence[int]) -> int:
    """Return the number of arcs from the root to a word, 0 if they do not lead there."""
    for depth in range(1, len(heads) + 1):
        word = heads[word - 1]
        if word <= 0:
            return depth if word == 0 else 0
    return 0


def wrong_words(gold: Sentence, system: Sentence) -> int:
    """Count words with another head or another universal label; any label is right if gold has none."""
    return sum(not is_right(*arcs) for arcs in zip(universal_arcs(gold), universal_arcs(system), strict=True))


@dataclass(frozen=True, slots=True)
class Advantage:
    """A word that one system has right (head and universal label) and another has wrong."""

    sentence: int  # from 0
    word: int  # from 1
    label: str  # universal; `_` if gold has none
    other: str  # the other system's universal label

    @property
    def mistake(self) -> str:
        """What the other system has wrong: the label, or only the head."""
        only_head = self.label in (EMPTY, self.other)
        return f"{self.label} at another head" if only_head else f"{self.label} taken for {self.other}"


def advantages(gold: Sequence[Sentence], system: Sequence[Sentence], other: Sequence[Sentence]) -> list[Advantage]:
    """Return the words that one system has right and another has wrong, in order; the words must agree."""
    return [
        Advantage(sentence, word, known[1], wrong[1])
        for sentence, trees in enumerate(zip(gold, system, other, strict=True))
        for word, (known, parsed, wrong) in enumerate(zip(*map(universal_arcs, trees), strict=True), 1)
        if is_right(known, parsed) and not is_right(known, wrong)
    ]


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
        return sorted({word.sentence for word in self.words}, key=lambda index: (-self.balance[index], index))

    @property
    def ahead(self) -> list[int]:
        """The sentences in which this system has more words right, the greatest advantage first."""
        return [index for index in self.sentences if self.balance[index] > 0]


def directions(gold: Sequence[Sentence], first: Sequence[Sentence], second: Sequence[Sentence]) -> list[Direction]:
    """Return both directions of systems A and B."""
    ours, theirs = advantages(gold, first, second), advantages(gold, second, first)
    balance = Counter(word.sentence for word in ours)
    balance.subtract(word.sentence for word in theirs)
    opposite = Counter({index: -count for index, count in balance.items()})
    return [Direction("A", "B", ours, balance), Direction("B", "A", theirs, opposite)]
