"""The bound of a search for trees that satisfy rules, and counts of its outcomes."""

import threading
from dataclasses import dataclass, field

from treeparse.errors import TreeparseError
from treeparse.rules.rules import Rules

OPENED = 1000  # trees a sentence


@dataclass
class RuleTally:
    """Counts of sentences, and of drawn trees, by outcome; several threads may add to it.

    Attributes:
        sentences: all sentences.
        broken: sentences whose best tree, or a listed or drawn tree, broke a rule.
        mended: broken sentences for which the search found all trees within the bound.
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
        """Sentences for which the search found too few trees within the bound."""
        return self.broken - self.mended

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
