"""Sets of rules, the violations of a tree, and the bound and the counts of a search for trees that satisfy rules."""

import operator
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Literal

from treeparse.data.parses import Parse
from treeparse.errors import DataError, TreeparseError, did_you_mean
from treeparse.sentence import EMPTY, Sentence, nonprojective_words

# fmt: off
UD_RELATIONS = (
    "acl", "advcl", "advmod", "amod", "appos", "aux", "case", "cc", "ccomp", "clf", "compound", "conj", "cop", "csubj",
    "dep", "det", "discourse", "dislocated", "expl", "fixed", "flat", "goeswith", "iobj", "list", "mark", "nmod",
    "nsubj", "nummod", "obj", "obl", "orphan", "parataxis", "punct", "reparandum", "root", "vocative", "xcomp",
)
# fmt: on
OPENED = 1000  # trees of a sentence that a search opens by default
ORDINARY = 100  # words: longer sentences cost a search more time for each tree, 10 times as much at 1,000 words


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
                yield Violation(
                    word, problem, tuple(ArcPattern(dependent, head, self.labels) for dependent in (first, word))
                )


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


@dataclass(frozen=True)
class Rules:
    """A set of rules.

    Attributes:
        each: the rules.
        trees: "projective" forbids crossing arcs; None allows them.
        source: the name of their file in errors.
    """

    each: tuple[Rule, ...] = ()
    trees: Literal["projective"] | None = None
    source: str | None = field(default=None, compare=False)

    def violations(self, parse: Parse | Sentence, upos: Sequence[str] | None = None) -> list[Violation]:
        """Return the violations of the rules by a parse, or by the tree of a sentence, rule by rule.

        Args:
            parse: the tree.
            upos: the words' tags; by default the tags of the parse or the sentence, if any.

        Raises:
            TreeparseError: if the sentence has no tree.
        """
        forms = parse.tokens if isinstance(parse, Parse) else parse.forms
        if parse.heads is None or parse.labels is None or min(parse.heads, default=0) < 0:
            raise TreeparseError(f"The sentence {' '.join(forms)[:50]!r} has no tree to check rules on.")
        tree = CheckedTree(forms, parse.heads, parse.labels, parse.upos if upos is None else upos)
        # Crossing arcs have no parts, because projective distributions avoid them.
        crossing = [
            Violation(word, f"the arc into {tree.named(word)} crosses another one, but trees are projective", ())
            for word in nonprojective_words(tree.heads)
        ]
        return [*self.broken(tree), *(crossing if self.trees == "projective" else [])]

    def broken(self, tree: CheckedTree) -> Iterator[Violation]:
        """Yield violations lazily, without those by crossing arcs."""
        return (violation for rule in self.each for violation in rule.violations(tree))

    def check_labels(self, known: Collection[str]) -> None:
        """Raise a ``DataError`` with the rule's line if neither ``known``, a model's labels, nor UD has a label."""
        for rule in self.each:
            for labels in rule.label_sets:
                try:
                    labels.check(known)
                except TreeparseError as error:
                    raise DataError(str(error), source=self.source, line=rule.line) from error


@dataclass
class RuleTally:
    """Counts of sentences, and of drawn trees, by outcome; several threads may add to it.

    Attributes:
        sentences: all sentences.
        broken: sentences whose best tree, or a listed or drawn tree, broke a rule.
        mended: broken sentences for which the search gave all requested trees within the bound.
        drawn: trees drawn at random.
        accepted: drawn trees that satisfy the rules.
        unfinished: broken sentences whose search the bound ended.
    """

    sentences: int = 0
    broken: int = 0
    mended: int = 0
    drawn: int = 0
    accepted: int = 0
    unfinished: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False, compare=False)

    @property
    def left(self) -> int:
        """The number of broken sentences that were not mended: unfinished ones, and those that no tree satisfies."""
        return self.broken - self.mended

    def _counts(self) -> tuple[int, ...]:
        return self.sentences, self.broken, self.mended, self.drawn, self.accepted, self.unfinished

    def __reduce__(self) -> tuple[object, ...]:
        return RuleTally, self._counts()

    def taken(self) -> "RuleTally":
        """Return the counts, and begin anew."""
        with self._lock:
            counts = RuleTally(*self._counts())
            self.sentences = self.broken = self.mended = self.drawn = self.accepted = self.unfinished = 0
        return counts

    def add(self, other: "RuleTally") -> None:
        """Add the counts of another tally."""
        with self._lock:
            sums = map(operator.add, self._counts(), other._counts())
            self.sentences, self.broken, self.mended, self.drawn, self.accepted, self.unfinished = sums


def cost_of_broken(words: int) -> int:
    """Return as how many trees of a search's bound a tree counts that breaks a rule, in a sentence of so many words.

    The cost grows with the square of the length, because the best tree of a space takes that much time.
    """
    return max(1, words**2 // ORDINARY**2)


@dataclass(frozen=True)
class RuleSearch:
    """Rules, how many trees the search for them opens, and counts of outcomes.

    Attributes:
        rules: the rules.
        opened: how many trees of a sentence to open, besides the requested number, until enough satisfy the rules. In
            long sentences a tree that breaks a rule counts as several, see `cost_of_broken`.
        tally: counts of outcomes, to which every use adds.
    """

    rules: Rules
    opened: int = OPENED
    tally: RuleTally = field(default_factory=RuleTally, compare=False)

    def __post_init__(self) -> None:
        if self.opened < 1:
            raise TreeparseError(f"The number of trees opened for rules must be 1 or more, got {self.opened}.")


def as_search(rules: Rules | RuleSearch | None) -> RuleSearch | None:
    """Return a search for rules with the default bound; return a search as it is."""
    return RuleSearch(rules) if isinstance(rules, Rules) else rules
