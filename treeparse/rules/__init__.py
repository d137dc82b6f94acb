"""Rules that a parse must satisfy, read from YAML, and the best trees that satisfy them, exactly.

``help("treeparse.rules.reading")`` describes the file. In a program::

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

from .reading import parse_rules as parse_rules
from .reading import read_rules as read_rules
from .rules import Rules as Rules
from .rules import RuleSearch as RuleSearch
from .rules import RuleTally as RuleTally
from .rules import as_search as as_search
from .search import NamedWords as NamedWords
from .search import Satisfying as Satisfying
from .search import SatisfyingTree as SatisfyingTree
from .search import satisfying_trees as satisfying_trees
from .violations import ArcPattern as ArcPattern
from .violations import AtMostOne as AtMostOne
from .violations import CheckedTree as CheckedTree
from .violations import ForbiddenPair as ForbiddenPair
from .violations import LabelSet as LabelSet
from .violations import RootTags as RootTags
from .violations import Rule as Rule
from .violations import Violation as Violation
