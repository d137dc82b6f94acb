"""Sets of labels, rules, and violations: the words that break a rule, and the arcs of which one must change."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property

from treeparse.errors import TreeparseError, did_you_mean
from treeparse.sentence import EMPTY

# fmt: off
UD_RELATIONS = (
    "acl", "advcl", "advmod", "amod", "appos", "aux", "case", "cc", "ccomp", "clf", "compound", "conj", "cop", "csubj",
    "dep", "det", "discourse", "dislocated", "expl", "fixed", "flat", "goeswith", "iobj", "list", "mark", "nmod",
    "nsubj", "nummod", "obj", "obl", "orphan", "parataxis", "punct", "reparandum", "root", "vocative", "xcomp",
)
# fmt: on


@dataclass(frozen=True)
class LabelSet:
    """A set of labels: a name matches the label and its subtypes, ``nsubj`` matches ``nsubj:pass`` too.

    A name with a subtype matches itself alone.

    Attributes:
        names: one or more names.
        excepted: labels that names match but that are not in the set.
    """

    names: tuple[str, ...]
    excepted: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.names:
            raise TreeparseError("a set of labels must have one or more names, got none")
        for name in self.excepted:
            if name not in LabelSet(self.names):
                raise TreeparseError(f"an excepted label must be one of {', '.join(self.names)}, got {name}")

    def __contains__(self, label: object) -> bool:
        if not isinstance(label, str) or label in self.excepted:
            return False
        return label in self.names or label.partition(":")[0] in self.names

    @cached_property
    def contains(self) -> Callable[[str], bool]:
        """Whether a label is in the set; results are cached, because trees have many words."""
        return cache(self.__contains__)

    def __str__(self) -> str:
        but = f" (but not {', '.join(self.excepted)})" if self.excepted else ""
        return ", ".join(self.names) + but

    def check(self, known: Collection[str]) -> None:
        """Raise if neither ``known``, a model's labels, nor Universal Dependencies has a label."""
        bases = {label.partition(":")[0] for label in known} | set(UD_RELATIONS)
        for name in (*self.names, *self.excepted):
            if name.partition(":")[0] not in bases:
                likely = did_you_mean(name, sorted({*known, *bases})) or "."
                raise TreeparseError(
                    f"the label {name!r} is neither one of the model's nor one of Universal Dependencies" + likely
                )


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


@dataclass(frozen=True)
class Rule(ABC):
    """One rule; ``line`` is its line in its file."""

    line: int | None = field(default=None, compare=False, kw_only=True)

    @property
    def label_sets(self) -> tuple[LabelSet, ...]:
        """The sets of labels in the rule."""
        return tuple(value for value in vars(self).values() if isinstance(value, LabelSet))

    @abstractmethod
    def violations(self, tree: CheckedTree) -> Iterator[Violation]:
        """Yield the violations of the rule by a tree, in the order of words."""


@dataclass(frozen=True)
class AtMostOne(Rule):
    """At most one word with one of these labels hangs from a head."""

    labels: LabelSet

    def violations(self, tree: CheckedTree) -> Iterator[Violation]:
        members = [word for word, label in enumerate(tree.labels, 1) if self.labels.contains(label)]
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
class ForbiddenPair(Rule):
    """No word of one of the labels ``dependent`` hangs from a word of one of the labels ``head``."""

    head: LabelSet
    dependent: LabelSet

    def violations(self, tree: CheckedTree) -> Iterator[Violation]:
        below = [word for word, label in enumerate(tree.labels, 1) if self.dependent.contains(label)]
        for word in below:
            head, label = tree.heads[word - 1], tree.labels[word - 1]
            if head > 0 and self.head.contains(tree.labels[head - 1]):
                problem = (
                    f"{tree.named(word)} hangs as {label} from {tree.named(head)}, which is {tree.labels[head - 1]}, "
                    f"but none of {self.dependent} hangs from {self.head}"
                )
                yield Violation(
                    word, problem, (ArcPattern(word, head, self.dependent), ArcPattern(head, None, self.head))
                )


@dataclass(frozen=True)
class RootTags(Rule):
    """Only words of these UPOS, or of unknown UPOS, hang from the root, in a sentence that has such a word."""

    upos: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.upos:
            raise TreeparseError("root tags must have one UPOS or more, got none: no word could hang from the root")

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
