"""Rules together: what a tree breaks of them."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from treeparse.data.parses import Parse
from treeparse.errors import DataError, TreeparseError
from treeparse.rules.violations import Rule, Tree, Violation
from treeparse.sentence import Sentence, nonprojective_words


@dataclass(frozen=True)
class Rules:
    """Rules that hold together.

    Attributes:
        each: the rules.
        trees: projective, where arcs may not cross; None where they may.
        source: what errors call the file they are from.
    """

    each: tuple[Rule, ...] = ()
    trees: Literal["projective"] | None = None
    source: str | None = field(default=None, compare=False)

    def violations(self, parse: Parse | Sentence, upos: Sequence[str] | None = None) -> list[Violation]:
        """Where a parse, or the tree of a sentence, breaks the rules, rule by rule.

        Args:
            parse: the tree.
            upos: the words' tags; by default those of the parse or the sentence, if it has some.

        Raises:
            TreeparseError: for a sentence that has no tree.
        """
        tree = _tree(parse, upos)
        return [*self.broken(tree), *(_crossing(tree) if self.trees == "projective" else [])]

    def broken(self, tree: Tree) -> Iterator[Violation]:
        """Where a tree breaks the rules, as they are asked for; arcs that cross do not count."""
        return (violation for rule in self.each for violation in rule.violations(tree))

    def check_labels(self, known: Collection[str]) -> None:
        """Raise a ``DataError``, with the rule's line, for a label that neither a model of these labels nor UD has."""
        for rule in self.each:
            for labels in rule.label_sets:
                try:
                    labels.check(known)
                except TreeparseError as error:
                    raise DataError(str(error), source=self.source, line=rule.line) from error


def _tree(parse: Parse | Sentence, upos: Sequence[str] | None) -> Tree:
    forms = parse.tokens if isinstance(parse, Parse) else parse.forms
    if parse.heads is None or parse.labels is None or min(parse.heads, default=0) < 0:
        raise TreeparseError(f"The sentence {' '.join(forms)[:50]!r} has no tree that rules could be held against.")
    return Tree(forms, parse.heads, parse.labels, parse.upos if upos is None else upos)


def _crossing(tree: Tree) -> list[Violation]:
    """Words whose arcs cross others. Such a rule is kept by searching among other trees, so no part is named."""
    return [
        Violation(word, f"the arc into {tree.named(word)} crosses another one, but trees are projective", ())
        for word in nonprojective_words(tree.heads)
    ]
