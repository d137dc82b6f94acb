"""Rules, and their violations: the words that break a rule, and the arcs of which one must change."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from treeparse.errors import TreeparseError
from treeparse.rules.labels import LabelSet
from treeparse.sentence import EMPTY


@dataclass(frozen=True, slots=True)
class CheckedTree:
    """A labelled tree that rules check: one entry a word, heads as in CoNLL-U. The tag ``_`` is unknown."""

    forms: Sequence[str]
    heads: Sequence[int]
    labels: Sequence[str]
    upos: Sequence[str] | None = None

    def named(self, word: int) -> str:
        """Return the name of a word, counted from 1, in messages."""
        return f"word {word} ({self.forms[word - 1]})"


@dataclass(frozen=True, slots=True)
class ArcPattern:
    """The arcs into a word from ``head``, or any head if None, with one of ``labels``, or any label if None."""

    word: int
    head: int | None
    labels: LabelSet | None


@dataclass(frozen=True, slots=True)
class Violation:
    """A rule that a tree breaks.

    Attributes:
        word: the first word, counted from 1, that the rule forbids.
        problem: the violation as a sentence.
        parts: the tree has arcs of all these patterns, and no tree with all of them satisfies the rule.
    """

    word: int
    problem: str
    parts: tuple[ArcPattern, ...]

    def __str__(self) -> str:
        return self.problem


class Rule(Protocol):
    """One rule; ``line`` is its line in its file."""

    @property
    def line(self) -> int | None: ...

    @property
    def label_sets(self) -> tuple[LabelSet, ...]:
        """The sets of labels in the rule."""
        ...

    def violations(self, tree: CheckedTree) -> Iterator[Violation]:
        """Yield the violations of the rule by a tree, in the order of words."""
        ...


@dataclass(frozen=True)
class AtMostOne:
    """At most one word with one of these labels hangs from a head."""

    labels: LabelSet
    line: int | None = field(default=None, compare=False)

    @property
    def label_sets(self) -> tuple[LabelSet, ...]:
        return (self.labels,)

    def violations(self, tree: CheckedTree) -> Iterator[Violation]:
        is_member = self.labels.answers
        members = [word for word, label in enumerate(tree.labels, 1) if is_member[label]]
        first_of: dict[int, int] = {}
        for word in members:
            head = tree.heads[word - 1]
            first = first_of.setdefault(head, word)
            if first != word:
                where = "the root" if head == 0 else tree.named(head)
                problem = (
                    f"{tree.named(first)} and {tree.named(word)} hang from {where} as {tree.labels[first - 1]} and "
                    f"{tree.labels[word - 1]}, but a head has at most one of {self.labels}"
                )
                yield Violation(word, problem, tuple(ArcPattern(each, head, self.labels) for each in (first, word)))


@dataclass(frozen=True)
class ForbiddenPair:
    """No word of one of the labels ``dependent`` hangs from a word of one of the labels ``head``."""

    head: LabelSet
    dependent: LabelSet
    line: int | None = field(default=None, compare=False)

    @property
    def label_sets(self) -> tuple[LabelSet, ...]:
        return (self.head, self.dependent)

    def violations(self, tree: CheckedTree) -> Iterator[Violation]:
        is_above, is_below = self.head.answers, self.dependent.answers
        below = [word for word, label in enumerate(tree.labels, 1) if is_below[label]]
        for word in below:
            head, label = tree.heads[word - 1], tree.labels[word - 1]
            if head > 0 and is_above[tree.labels[head - 1]]:
                problem = (
                    f"{tree.named(word)} hangs as {label} from {tree.named(head)}, which is {tree.labels[head - 1]}, "
                    f"but none of {self.dependent} hangs from {self.head}"
                )
                yield Violation(
                    word, problem, (ArcPattern(word, head, self.dependent), ArcPattern(head, None, self.head))
                )


@dataclass(frozen=True)
class RootTags:
    """Only words of these UPOS, or of unknown UPOS, hang from the root, in a sentence that has such a word."""

    upos: tuple[str, ...]
    line: int | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if not self.upos:
            raise TreeparseError("no word could hang from the root: name one UPOS or more")

    @property
    def label_sets(self) -> tuple[LabelSet, ...]:
        return ()

    def violations(self, tree: CheckedTree) -> Iterator[Violation]:
        if tree.upos is None:
            return
        tops = [word for word, head in enumerate(tree.heads, 1) if head == 0]
        for word in tops:
            tag = tree.upos[word - 1]
            if not self._may(tag) and any(map(self._may, tree.upos)):
                problem = f"{tree.named(word)} hangs from the root and is {tag}, but only {', '.join(self.upos)} may"
                yield Violation(word, problem, (ArcPattern(word, 0, None),))

    def _may(self, tag: str) -> bool:
        return tag == EMPTY or tag in self.upos
