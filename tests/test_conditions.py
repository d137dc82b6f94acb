"""Known heads and rules in parsing, lists and samples: what is found is what enumeration finds among such trees."""

import math
import random
from concurrent.futures import CancelledError
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from helpers.chi_square import LIMIT, chi_square_z
from helpers.drawn_orders import assert_sequence_law
from helpers.parsers import TRAINING, random_parser
from helpers.sentences import learnable_sentences

from treeparse.errors import TreeparseError
from treeparse.model import Ensemble, Parse, Parser
from treeparse.model.inference.tree_request import TreeMethod, TreeRequest, UnfitSentenceError
from treeparse.rules import AtMostOne, ForbiddenPair, LabelSet, RootTags, Rules, RuleSearch
from treeparse.sentence import Sentence, nonprojective_words
from treeparse.trees import LabeledCRF

WORDS = sorted({form for sentence in TRAINING for form in sentence.forms})
UPOS = ("NOUN", "VERB", "ADJ", "NOUN")
SENTENCES = [
    Sentence(tuple(random.Random(number).choices(WORDS, k=length)), upos=UPOS[:length])
    for number, length in enumerate([3, 1, 4, 2, 4])
]
KNOWN = [  # heads, labels, possible heads
    ((-1, 0, 1), ("nsubj", "_", "_"), None),
    ((-1,), ("root",), None),
    ((-1, 3, -1, -1), ("_", "amod", "_", "nsubj"), ((2, 3), (), (0, 4), ())),
    ((2, -1), ("_", "_"), None),
    ((-1, -1, -1, -1), ("_", "_", "_", "_"), ((), (1, 4), (1,), (0,))),
]
PARTLY = [
    replace(sentence, heads=heads, labels=labels, allowed=allowed)
    for sentence, (heads, labels, allowed) in zip(SENTENCES, KNOWN, strict=True)
]
SUBJECT, ADJECTIVE = LabelSet(("nsubj",)), LabelSet(("amod",))
RULES = (
    Rules((AtMostOne(SUBJECT), AtMostOne(ADJECTIVE))),
    Rules((ForbiddenPair(SUBJECT, ADJECTIVE), RootTags(("VERB", "ADJ"))), trees="projective"),
    Rules((AtMostOne(SUBJECT), ForbiddenPair(ADJECTIVE, SUBJECT), RootTags(("NOUN",)))),
)
Scored = tuple[tuple[int, ...], tuple[str, ...], float]


@pytest.fixture(scope="module")
def parser() -> Parser:
    return random_parser()


@torch.no_grad()
def all_trees(model: Parser | Ensemble, sentence: Sentence) -> list[Scored]:
    """Every tree with its score, best first."""
    p = model.distribution(model.collate([Sentence(sentence.forms, upos=sentence.upos)]))  # pyright: ignore
    assert isinstance(p, LabeledCRF)
    heads, labels = p.enumerate_support()
    rows = zip(heads[:, 0, 1:].tolist(), labels[:, 0, 1:].tolist(), p.score(heads, labels)[:, 0].tolist(), strict=True)
    found = [(tuple(row), tuple(model.label_names[label] for label in ids), score) for row, ids, score in rows]
    return sorted(found, key=lambda tree: -tree[2])


def agrees(tree: Scored, sentence: Sentence, *, keep_heads: bool, within: bool) -> bool:
    heads, labels, _ = tree
    pairs = zip(heads, labels, sentence.heads or (), sentence.labels or (), strict=True)
    if keep_heads and any(known not in (-1, head) or name not in ("_", label) for head, label, known, name in pairs):
        return False
    allowed = sentence.allowed or ((),) * len(heads)
    return not within or all(head in some or not some for head, some in zip(heads, allowed, strict=True))


def satisfies(tree: Scored, sentence: Sentence, rules: Rules) -> bool:
    heads, labels, _ = tree
    if rules.trees == "projective" and nonprojective_words(heads):
        return False
    return not rules.violations(sentence.with_tree(heads, labels))


def plain(parses: list[Parse]) -> list[tuple[tuple[int, ...], tuple[str, ...]]]:
    return [(parse.heads, parse.labels) for parse in parses]


def log_partition(trees: list[Scored]) -> float:
    return float(np.logaddexp.reduce([score for *_, score in trees]))


@pytest.mark.parametrize(("keep_heads", "within"), [(True, False), (False, True), (True, True)])
def test_known_heads_and_labels_are_kept(parser: Parser, keep_heads: bool, within: bool) -> None:
    lists = parser.kbest(PARTLY, 6, keep_heads=keep_heads, within=within)
    parses = parser.parse(PARTLY, keep_heads=keep_heads, within=within)
    for sentence, parse, listed in zip(PARTLY, parses, lists, strict=True):
        every = all_trees(parser, sentence)
        trees = [tree for tree in every if agrees(tree, sentence, keep_heads=keep_heads, within=within)]
        assert plain(listed) == [tree[:2] for tree in trees[:6]]
        assert plain([parse]) == plain(listed[:1])
        assert [each.log_prob for each in listed] == pytest.approx(
            [tree[2] - log_partition(trees) for tree in trees[:6]]
        )


def test_samples_are_of_the_conditioned_distribution(parser: Parser) -> None:
    sentence = PARTLY[2]
    trees = [tree for tree in all_trees(parser, sentence) if agrees(tree, sentence, keep_heads=True, within=True)]
    [drawn] = parser.sample([sentence], 3000, keep_heads=True, within=True, seed=1)
    law = np.exp([tree[2] - log_partition(trees) for tree in trees])
    places = {tree[:2]: place for place, tree in enumerate(trees)}
    counts = np.bincount([places[tree] for tree in plain(drawn)], minlength=len(trees))
    assert abs(chi_square_z(counts, law)) < LIMIT


@pytest.mark.parametrize("rules", RULES, ids=range(3))
def test_parses_and_lists_are_the_best_trees_that_satisfy_rules(parser: Parser, rules: Rules) -> None:
    search = RuleSearch(rules)
    lists, parses = parser.kbest(SENTENCES, 5, rules=rules), parser.parse(SENTENCES, rules=search)
    broken = 0
    for sentence, parse, listed in zip(SENTENCES, parses, lists, strict=True):
        every = all_trees(parser, sentence)
        trees = [tree for tree in every if satisfies(tree, sentence, rules)]
        assert plain(listed) == [tree[:2] for tree in trees[:5]]
        assert plain([parse]) == plain(listed[:1])
        assert parse.log_prob == pytest.approx(trees[0][2] - log_partition(every)), "among all trees"
        best = next(tree for tree in every if rules.trees is None or not nonprojective_words(tree[0]))
        broken += not satisfies(best, sentence, rules)
    assert (search.tally.sentences, search.tally.broken, search.tally.mended) == (len(SENTENCES), broken, broken)


@pytest.mark.parametrize("replacement", [True, False])
def test_first_samples_have_the_law_of_trees_that_satisfy_rules(parser: Parser, replacement: bool) -> None:
    sentence, rules, search = SENTENCES[4], RULES[0], RuleSearch(RULES[0])
    lists = parser.sample([sentence] * 1500, 2, rules=search, replacement=replacement, seed=3)
    every = all_trees(parser, sentence)
    trees = [tree for tree in every if satisfies(tree, sentence, rules)]
    log_probs = np.array([tree[2] - log_partition(trees) for tree in trees])
    places = {tree[:2]: place for place, tree in enumerate(trees)}
    found = np.array([[places[tree] for tree in plain(drawn)] for drawn in lists])
    if not replacement:
        assert_sequence_law(found, log_probs)
    else:
        for drawn in found.T:
            assert abs(chi_square_z(np.bincount(drawn, minlength=len(trees)), np.exp(log_probs))) < LIMIT
        accepted = np.exp(log_partition(trees) - log_partition(every))
        spread = np.sqrt(accepted * (1 - accepted) / search.tally.drawn)
        assert search.tally.accepted == 3000
        assert abs(search.tally.accepted / search.tally.drawn - accepted) < LIMIT * spread


@pytest.mark.parametrize("replacement", [True, False])
def test_shorter_lists_of_samples_are_the_start_of_longer_ones(parser: Parser, replacement: bool) -> None:
    short, long = (
        parser.sample(SENTENCES, k, rules=RULES[2], replacement=replacement, seed=5, batch_words=batch_words)
        for k, batch_words in ((3, 5000), (40, 4))
    )
    assert [plain(drawn) for drawn in short] == [plain(drawn)[:3] for drawn in long]
    if not replacement:
        for sentence, drawn in zip(SENTENCES, long, strict=True):
            trees = [tree for tree in all_trees(parser, sentence) if satisfies(tree, sentence, RULES[2])]
            assert len(set(plain(drawn))) == len(drawn) == min(40, len(trees))


def test_rules_and_known_heads_together(parser: Parser) -> None:
    parses = parser.parse(PARTLY, rules=RULES[0], keep_heads=True, within=True)
    for sentence, parse in zip(PARTLY, parses, strict=True):
        trees = [tree for tree in all_trees(parser, sentence) if agrees(tree, sentence, keep_heads=True, within=True)]
        fine = [tree for tree in trees if satisfies(tree, sentence, RULES[0])]
        assert plain([parse]) == [(fine or trees)[0][:2]]


def test_the_best_tree_is_kept_where_none_is_within_the_bound(parser: Parser) -> None:
    anything = LabelSet(parser.label_names)
    search = RuleSearch(Rules((ForbiddenPair(anything, anything),)), opened=5)
    sentences = [SENTENCES[0], SENTENCES[1]]  # of one word: no pair
    assert plain(parser.parse(sentences, rules=search)) == plain(parser.parse(sentences))
    assert (search.tally.broken, search.tally.mended, search.tally.left) == (1, 0, 1)
    search = RuleSearch(search.rules, opened=5)
    drawn = parser.sample(sentences, 4, rules=search, seed=1)
    assert [len(trees) for trees in drawn] == [1, 4]
    assert plain(drawn[0]) == plain(parser.sample(sentences, 1, seed=1)[0])
    assert (search.tally.drawn, search.tally.accepted, search.tally.left) == (5 + 4, 4, 1)


def test_fewer_trees_of_long_sentences_are_drawn(parser: Parser) -> None:
    anything = LabelSet(parser.label_names)
    search = RuleSearch(Rules((ForbiddenPair(anything, anything),)), opened=45)
    parser.sample([["a"] * 300, ["a"] * 2], 2, rules=search, seed=1)
    assert search.tally.drawn == 45 // 3**2 + 45
    assert (search.tally.broken, search.tally.mended, search.tally.unfinished) == (2, 0, 2)


@pytest.mark.parametrize("method", ["parse", "kbest", "sample"])
def test_a_search_ends_where_its_check_raises(parser: Parser, method: TreeMethod) -> None:
    anything, calls = LabelSet(parser.label_names), 0

    def check() -> None:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise CancelledError

    request = TreeRequest(method, rules=RuleSearch(Rules((ForbiddenPair(anything, anything),)), opened=10**6))
    with pytest.raises(CancelledError):
        parser.find_trees([["a", "b", "c", "d", "e", "f"]], request, check=check)


def test_ensembles_keep_known_heads_and_rules(parser: Parser) -> None:
    for combine in ("scores", "log_probs"):
        ensemble = Ensemble([parser, parser], combine)
        for sentence in (PARTLY[2], PARTLY[0]):
            every = all_trees(ensemble, sentence)
            known = [tree for tree in every if agrees(tree, sentence, keep_heads=True, within=True)]
            assert plain(ensemble.parse([sentence], keep_heads=True, within=True)) == [known[0][:2]]
            fine = [tree for tree in every if satisfies(tree, sentence, RULES[0])]
            assert plain(ensemble.parse([sentence], rules=RULES[0])) == [fine[0][:2]]


def test_a_mixture_keeps_known_heads_but_no_rules(parser: Parser) -> None:
    ensemble, sentence = Ensemble([parser, parser], "marginals"), PARTLY[2]
    trees = [tree for tree in all_trees(parser, sentence) if agrees(tree, sentence, keep_heads=True, within=True)]
    [parse] = ensemble.parse([sentence], keep_heads=True, within=True)
    found = [tree for tree in trees if tree[:2] == (parse.heads, parse.labels)]
    assert parse.log_prob == pytest.approx(found[0][2] - log_partition(trees))
    with pytest.raises(TreeparseError, match=r"Rules need .* models combined by marginals: combine them by scores"):
        ensemble.parse(SENTENCES, rules=RULES[0])


@pytest.mark.parametrize(
    ("sentence", "problem"),
    [
        (Sentence(("a", "b"), heads=(-1, 3)), "word 2 cannot have the head 3 that is given"),
        (Sentence(("a", "b"), heads=(1, -1)), "word 1 cannot have the head 1 that is given"),
        (Sentence(("a", "b"), labels=("_", "x:y")), "word 2 has the label 'x:y', which the model does not know: write"),
        (Sentence(("a", "b"), heads=(0, 1), labels=("_", "root")), "word 2 has the head 1 and the label 'root', but"),
        (Sentence(("a", "b"), heads=(0, -1), labels=("_", "root")), "no tree of the model has the heads, labels and"),
        (Sentence(("a", "b"), heads=(2, 1)), "no tree of the model has the heads, labels and possible heads given"),
        (Sentence(("a", "b"), heads=(2, -1), allowed=((), (1,))), "no tree of the model has the heads, labels and"),
    ],
)
def test_a_sentence_that_no_tree_fits_is_named(parser: Parser, sentence: Sentence, problem: str) -> None:
    sentences = [SENTENCES[0], sentence, SENTENCES[3]]
    for call in (parser.parse, partial(parser.kbest, k=3), partial(parser.sample, k=3)):
        with pytest.raises(UnfitSentenceError) as raised:
            call(sentences, keep_heads=True, within=True)
        assert raised.value.index == 1
        assert str(raised.value).startswith(f"Sentence 1 (counted from 0): {problem}")
    assert parser.parse([sentence]), "what is not to be kept is not looked at"


def test_rules_that_cannot_be_kept_are_refused(parser: Parser) -> None:
    with pytest.raises(TreeparseError, match=r"Rules choose the best tree .* choose best"):
        parser.parse(SENTENCES, rules=RULES[0], decoder="minimum_risk")
    with pytest.raises(TreeparseError, match="the label 'subj' is neither one of the model's"):
        parser.parse(SENTENCES, rules=Rules((AtMostOne(LabelSet(("subj",))),)))
    with pytest.raises(TreeparseError, match="The number of trees opened for rules must be 1 or more, got 0"):
        RuleSearch(RULES[0], opened=0)


def test_a_label_root_that_is_not_reserved_is_a_label_like_others() -> None:
    """One word that hangs from another has it, and all roots have another label."""
    sentences = learnable_sentences(12, seed=3)
    free = [s.with_tree(s.heads or (), ["sent" if n == "root" else n for n in s.labels or ()]) for s in sentences]
    free[0] = free[0].with_tree(free[0].heads or (), ["root" if head else "sent" for head in free[0].heads or ()])
    parser = Parser.build(random_parser().config, free).double().eval()
    assert parser.root_label == -1 and "root" in parser.label_names
    known = Sentence(("a", "b"), heads=(0, 1), labels=("sent", "root"))
    for model in (parser, Ensemble([parser, parser]), Ensemble([parser, parser], "marginals")):
        (parse,) = model.parse([known], keep_heads=True)
        assert (parse.heads, parse.labels) == (known.heads, known.labels)
    assert Ensemble([parser, random_parser()], "marginals").root_label == -1, "the first model's trees are possible"
    assert parser.score_trees([known])[0].log_prob > -math.inf
    other = random_parser()
    assert Ensemble([other, other]).root_label == other.root_label >= 0
    both = Ensemble([other, parser])
    assert both.label_names[both.root_label] == "root", "impossible elsewhere under one of the models"
