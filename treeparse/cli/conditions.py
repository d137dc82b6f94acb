"""What trees must agree with: arguments of the commands that parse, and what the closing line says of rules."""

import argparse
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypedDict

from treeparse.cli.common import counted, positive
from treeparse.errors import TreeparseError

if TYPE_CHECKING:
    from treeparse.rules import RuleSearch

OPENED = 1000  # trees of a sentence, as help shows it

CONDITIONS = """\
--keep-heads keeps each HEAD and DEPREL of the input that is not _, and fills in the others; --within gives a word one
of the heads that its MISC names (Heads=2,5). Both are exact: probabilities are those given what is known. A sentence
that no tree fits is an error, or is left out by --skip-invalid.

--rules FILE wants trees that satisfy declared rules: at most one subject of a head, no arguments of function words, a
root of some UPOS, no arcs that cross. --rules ud is a shipped file, which treeparse config rules/ud prints;
help("treeparse.rules.reading") has all rules. What is found is exact, up to --opened trees a sentence. A sentence
without such a tree among these gets its best one, and the closing line counts how many broke a rule and how many were
mended. Probabilities are as without rules."""


class TreeConditions(TypedDict):
    """What ``parse``, ``kbest`` and ``sample`` of a model take."""

    keep_heads: bool
    within: bool
    rules: "RuleSearch | None"


@dataclass(frozen=True)
class Conditions:
    """The conditions of a command."""

    keep_heads: bool
    within: bool
    search: "RuleSearch | None"

    @property
    def arguments(self) -> TreeConditions:
        """The same for a model."""
        return {"keep_heads": self.keep_heads, "within": self.within, "rules": self.search}

    def remark(self) -> str:
        """What came of the rules, for the closing line."""
        if self.search is None:
            return ""
        tally = self.search.tally
        remark = f"{counted(tally.broken, 'sentence')} broke a rule, {tally.mended:,} mended"
        if tally.left:
            remark += f", {tally.left:,} not within {counted(self.search.opened, 'tree')}"
        if tally.drawn:
            remark += f", {tally.accepted / tally.drawn:.1%} of {counted(tally.drawn, 'tree')} drawn accepted"
        return remark


def add_condition_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "--keep-heads", action="store_true", help="keep HEAD and DEPREL where they are not _, see below"
    )
    parser.add_argument("--within", action="store_true", help="of the heads that MISC names (Heads=2,5) choose one")
    parser.add_argument(
        "--rules", metavar="FILE", help="rules that trees must satisfy: YAML, or a shipped name, see below"
    )
    parser.add_argument(
        "--opened",
        type=positive,
        metavar="N",
        help=f"trees of a sentence looked at for the sake of rules, at most (default: {OPENED:,})",
    )


def read_conditions(args: argparse.Namespace) -> Conditions:
    """The conditions of the arguments; raises for a faulty file of rules, and for what does not go together."""
    if args.format == "text" and (args.keep_heads or args.within):
        raise TreeparseError("Text has no heads that --keep-heads and --within could keep: they are for CoNLL-U.")
    if args.rules is None:
        if args.opened is not None:
            raise TreeparseError("--opened bounds the search for trees that satisfy rules: give --rules, too.")
        return Conditions(args.keep_heads, args.within, None)
    from treeparse.rules import RuleSearch, read_rules

    search = RuleSearch(read_rules(args.rules), args.opened or OPENED)
    return Conditions(args.keep_heads, args.within, search)
