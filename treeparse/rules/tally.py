"""A search for trees that satisfy rules: how far it goes, and what came of it."""

import threading
from dataclasses import dataclass, field

from treeparse.errors import TreeparseError
from treeparse.rules.rules import Rules

OPENED = 1000  # trees a sentence


@dataclass
class RuleTally:
    """What came of sentences, and of trees that were drawn; several threads may add to it.

    Attributes:
        sentences: all.
        broken: those whose best tree, or some listed or drawn one, broke a rule.
        mended: of these, those for which all trees were found within the bound.
        drawn: trees drawn at random.
        accepted: of these, those that satisfy the rules.
    """

    sentences: int = 0
    broken: int = 0
    mended: int = 0
    drawn: int = 0
    accepted: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False, compare=False)

    @property
    def left(self) -> int:
        """Sentences for which too few trees were found within the bound."""
        return self.broken - self.mended

    def add(self, other: "RuleTally") -> None:
        """Add the counts of another one."""
        with self._lock:
            self.sentences += other.sentences
            self.broken += other.broken
            self.mended += other.mended
            self.drawn += other.drawn
            self.accepted += other.accepted


@dataclass(frozen=True)
class RuleSearch:
    """Rules, how many trees are looked at for the sake of them, and the counts of what came of it.

    Attributes:
        rules: the rules.
        opened: trees of a sentence that are looked at, beyond those asked for, until enough satisfy the rules.
        tally: is added to by every use.
    """

    rules: Rules
    opened: int = OPENED
    tally: RuleTally = field(default_factory=RuleTally, compare=False)

    def __post_init__(self) -> None:
        if self.opened < 1:
            raise TreeparseError(f"The number of trees opened for rules is 1 or more, not {self.opened}.")


def as_search(rules: Rules | RuleSearch | None) -> RuleSearch | None:
    """Rules as a search for them, by default to its usual bound."""
    return RuleSearch(rules) if isinstance(rules, Rules) else rules
