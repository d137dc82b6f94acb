"""Sets of rules, the violations of a tree, and the bound and the counts of a search for trees that satisfy rules."""

import threading
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from treeparse.data.parses import Parse
from treeparse.errors import DataError, TreeparseError
from treeparse.rules.violations import CheckedTree, Rule, Violation
from treeparse.sentence import Sentence, nonprojective_words

OPENED = 1000  # trees of a sentence that a search opens by default


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
    """

    sentences: int = 0
    broken: int = 0
    mended: int = 0
    drawn: int = 0
    accepted: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False, compare=False)

    @property
    def left(self) -> int:
        """The number of sentences for which the search gave too few trees within the bound."""
        return self.broken - self.mended

    def _counts(self) -> tuple[int, ...]:
        return self.sentences, self.broken, self.mended, self.drawn, self.accepted

    def __reduce__(self) -> tuple[object, ...]:
        return RuleTally, self._counts()

    def taken(self) -> "RuleTally":
        """Return the counts, and begin anew."""
        with self._lock:
            counts = RuleTally(*self._counts())
            self.sentences = self.broken = self.mended = self.drawn = self.accepted = 0
        return counts

    def add(self, other: "RuleTally") -> None:
        """Add the counts of another tally."""
        with self._lock:
            self.sentences += other.sentences
            self.broken += other.broken
            self.mended += other.mended
            self.drawn += other.drawn
            self.accepted += other.accepted


@dataclass(frozen=True)
class RuleSearch:
    """Rules, how many trees the search for them opens, and counts of outcomes.

    Attributes:
        rules: the rules.
        opened: how many trees of a sentence to open, besides the requested number, until enough satisfy the rules.
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
