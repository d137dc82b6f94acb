"""The trees that satisfy rules: the first ones of all trees in order, by brute force."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pytest
import torch

from treeparse.rules import (
    ArcPattern,
    AtMostOne,
    CheckedTree,
    ForbiddenPair,
    LabelSet,
    NamedWords,
    RootTags,
    Rule,
    Rules,
    Violation,
    satisfying_trees,
)
from treeparse.sentence import EMPTY
from treeparse.trees import LabeledCRF, NonProjectiveCRF, ProjectiveCRF
from treeparse.trees.crf import TreeCRF

NAMES = ("subj", "subj:pass", "mark")
UPOS = ("VERB", "NOUN", EMPTY, "ADP")
SUBJECT, MARK = LabelSet(("subj",)), LabelSet(("mark",))
RULES = (
    Rules((AtMostOne(SUBJECT),)),
    Rules((AtMostOne(LabelSet(("subj:pass", "mark"))), AtMostOne(SUBJECT))),
    Rules((ForbiddenPair(SUBJECT, MARK),)),
    Rules((ForbiddenPair(LabelSet(("subj",), excepted=("subj:pass",)), SUBJECT), RootTags(("NOUN",)))),
    Rules((AtMostOne(SUBJECT), AtMostOne(MARK), ForbiddenPair(MARK, SUBJECT), RootTags(("VERB", "ADP")))),
)
FAMILIES = (NonProjectiveCRF, ProjectiveCRF)


def hold(rules: Rules, heads: Sequence[int], labels: Sequence[str], upos: Sequence[str]) -> bool:
    """Whether a tree satisfies the rules, word by word and pair by pair: written apart from what is tested."""

    def meant(label: str, names: LabelSet) -> bool:
        whole = [name for name in names.names if name == label or label.startswith(name + ":")]
        return bool(whole) and label not in names.excepted

    for rule in rules.each:
        words = range(len(heads))
        if isinstance(rule, AtMostOne):
            members = [word for word in words if meant(labels[word], rule.labels)]
            if any(heads[one] == heads[other] for one, other in itertools.combinations(members, 2)):
                return False
        elif isinstance(rule, ForbiddenPair):
            below = [word for word in words if heads[word] > 0 and meant(labels[word], rule.dependent)]
            if any(meant(labels[heads[word] - 1], rule.head) for word in below):
                return False
        elif isinstance(rule, RootTags):
            tops = [upos[word] for word in words if heads[word] == 0]
            has_some = any(tag == EMPTY or tag in rule.upos for tag in upos)
            if has_some and any(tag != EMPTY and tag not in rule.upos for tag in tops):
                return False
    return True


def distribution(family: type[TreeCRF], n: int, seed: int, *, scale: float = 3.0) -> LabeledCRF:
    stream = torch.Generator().manual_seed(seed)
    scores = torch.randn(1, n + 1, n + 1, generator=stream, dtype=torch.float64) * scale
    labels = torch.randn(1, n + 1, n + 1, len(NAMES), generator=stream, dtype=torch.float64) * scale
    return LabeledCRF(family(scores), labels)


def expected(p: LabeledCRF, rules: Rules, n: int) -> list[tuple[list[int], list[int], float]]:
    """All trees that satisfy the rules, best first."""
    heads, labels = p.enumerate_support()
    scores = p.score(heads, labels)[:, 0].tolist()
    trees = zip(heads[:, 0].tolist(), labels[:, 0].tolist(), scores, strict=True)
    fine = [tree for tree in trees if hold(rules, tree[0][1:], [NAMES[label] for label in tree[1][1:]], UPOS[:n])]
    return sorted(fine, key=lambda tree: -tree[2])


@pytest.mark.parametrize("rules", RULES, ids=range(len(RULES)))
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_trees_are_those_of_brute_force(family: type[TreeCRF], n: int, rules: Rules) -> None:
    """The best 8, or all where there are fewer."""
    for seed in range(2):
        p = distribution(family, n, seed)
        wanted = expected(p, rules, n)
        [(trees, complete)] = satisfying_trees(
            p, [0], [NamedWords("abcd"[:n], UPOS[:n], NAMES)], rules, 8, opened=10**6
        )
        assert complete
        assert len(trees) == min(8, len(wanted))
        assert [(list(tree.heads), list(tree.labels)) for tree in trees] == [tree[:2] for tree in wanted[:8]]
        assert [tree.score for tree in trees] == pytest.approx([tree[2] for tree in wanted[:8]])


def test_the_bound_is_on_the_trees_that_are_looked_at() -> None:
    p = distribution(NonProjectiveCRF, 4, seed=1)
    [(trees, complete)] = satisfying_trees(p, [0], [NamedWords("abcd", None, NAMES)], Rules(), 10, opened=7)
    assert len(trees) == 7 and not complete
    p, every = distribution(NonProjectiveCRF, 2, seed=1), LabelSet(NAMES)
    impossible = Rules((ForbiddenPair(every, every),))
    assert satisfying_trees(p, [0], [NamedWords("ab", None, NAMES)], impossible, 1, opened=100) == [([], True)]


def test_few_trees_are_opened_where_all_the_best_ones_break_a_rule() -> None:
    """Two subjects that the model is sure of, and hundreds of better trees that differ elsewhere."""
    scores = torch.randn(1, 13, 13, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    labels = torch.zeros(1, 13, 13, len(NAMES), dtype=torch.float64)
    scores[0, 0, 1] = scores[0, 1, 2] = scores[0, 1, 3] = 50.0
    labels[0, 1, 2:4] = torch.tensor([20.0, -20.0, 0.0])
    labels[0, :, 4:, :2] = -60.0
    p = LabeledCRF(NonProjectiveCRF(scores), labels)
    rules = Rules((AtMostOne(SUBJECT),))
    ordered = itertools.islice(p.best_first(), 300)
    assert not any(hold(rules, h[0, 1:].tolist(), [NAMES[x] for x in y[0, 1:]], UPOS * 3) for h, y, _ in ordered)
    [([first], _)] = satisfying_trees(p, [0], [NamedWords("abcdefghijkl", None, NAMES)], rules, 1, opened=3)
    assert hold(rules, first.heads[1:], [NAMES[label] for label in first.labels[1:]], UPOS * 3)


@dataclass(frozen=True)
class Never(Rule):
    """A rule that no tree satisfies."""

    checked: list[CheckedTree] = field(default_factory=list)

    def violations(self, tree: CheckedTree) -> Iterator[Violation]:
        self.checked.append(tree)
        yield Violation(1, "never", (ArcPattern(1, tree.heads[0], None), ArcPattern(2, tree.heads[1], None)))


@pytest.mark.parametrize(("n", "checked"), [(100, 40), (141, 40), (150, 20), (300, 5), (1000, 1)])
def test_fewer_trees_of_long_sentences_are_opened(n: int, checked: int) -> None:
    rule = Never()
    p = LabeledCRF(NonProjectiveCRF(torch.zeros(1, n + 1, n + 1)), torch.zeros(1, n + 1, n + 1, len(NAMES)))
    words = NamedWords(["a"] * n, None, NAMES)
    assert satisfying_trees(p, [0], [words], Rules((rule,)), 1, opened=40) == [([], False)]
    assert len(rule.checked) == checked
