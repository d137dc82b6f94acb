"""Rules that a parse must satisfy, read from YAML, and the best trees that satisfy them, exactly.

``help("treeparse.rules.rule_files")`` describes the file. In a program::

    from treeparse import Parser
    from treeparse.rules import AtMostOne, LabelSet, Rules, RuleSearch

    rules = Rules((AtMostOne(LabelSet(("nsubj", "csubj"))), AtMostOne(LabelSet(("obj",)))))
    parser = Parser.from_pretrained("runs/mine")
    [parse] = parser.parse([["They", "saw", "her", "duck", "."]], rules=rules)
    assert not rules.violations(parse)
    search = RuleSearch(rules, opened=5000)
    parses = parser.parse(sentences, rules=search)
    print(search.tally)  # how many best trees broke a rule, and the outcomes
"""

from typing import TYPE_CHECKING

from treeparse.lazy import names_on_demand
from treeparse.rules.rules import ArcPattern, AtMostOne, CheckedTree, ForbiddenPair, LabelSet, RootTags, Rule, Violation

from .rules import Rules, RuleSearch, RuleTally, as_search, cost_of_broken
from .search import NamedWords, Satisfying, SatisfyingTree, satisfying_trees

if TYPE_CHECKING:
    from .rule_files import parse_rules, read_rules

__all__ = [
    "ArcPattern",
    "AtMostOne",
    "CheckedTree",
    "ForbiddenPair",
    "LabelSet",
    "NamedWords",
    "RootTags",
    "Rule",
    "RuleSearch",
    "RuleTally",
    "Rules",
    "Satisfying",
    "SatisfyingTree",
    "Violation",
    "as_search",
    "cost_of_broken",
    "parse_rules",
    "read_rules",
    "satisfying_trees",
]
# Parsers need no YAML.
__getattr__, __dir__ = names_on_demand(__name__, {"treeparse.rules.rule_files": "parse_rules read_rules"})
