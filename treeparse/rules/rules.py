"""Sets of rules, and their violations by a tree."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from treeparse.data.parses import Parse
from treeparse.errors import DataError, TreeparseError
from treeparse.rules.violations import CheckedTree, Rule, Violation
from treeparse.sentence import Sentence, nonprojective_words


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
        tree = _tree(parse, upos)
        return [*self.broken(tree), *(_crossing(tree) if self.trees == "projective" else [])]

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


def _tree(parse: Parse | Sentence, upos: Sequence[str] | None) -> CheckedTree:
    forms = parse.tokens if isinstance(parse, Parse) else parse.forms
    if parse.heads is None or parse.labels is None or min(parse.heads, default=0) < 0:
        raise TreeparseError(f"The sentence {' '.join(forms)[:50]!r} has no tree to check rules on.")
    return CheckedTree(forms, parse.heads, parse.labels, parse.upos if upos is None else upos)


def _crossing(tree: CheckedTree) -> list[Violation]:
    """Return violations by crossing arcs. They have no parts, because projective distributions avoid them."""
    return [
        Violation(word, f"the arc into {tree.named(word)} crosses another one, but trees are projective", ())
        for word in nonprojective_words(tree.heads)
    ]
