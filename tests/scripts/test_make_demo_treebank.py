"""The demo treebank is what its script draws, and the grammar keeps what the script's figures claim."""

from collections import Counter, defaultdict
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest
from make_demo_treebank import SIZES, adjacent_baseline, ceiling, draw_splits, to_conllu
from support.demo_grammar import lexicon
from support.demo_grammar.morphology import Word
from support.demo_grammar.phrases import Draw
from support.demo_grammar.sentences import DemoSentence, sentence

from treeparse.data.conllu import load_treebank
from treeparse.sentence import nonprojective_words, tree_problem

DATA = Path(__file__).parents[2] / "data"
Tree = list[tuple[int, str]]

NOUN_CLASS = {noun: kind for kind, words in lexicon.NOUNS.items() for noun in " ".join(words).split()}
VERB_CLASS = {verb: kind for kind, words in lexicon.VERBS.items() for verb in " ".join(words).split()}
MANNER = set(" ".join(lexicon.MANNER_ADVERBS).split())
TIMES = {form for words in lexicon.TIMES.values() for form, _ in words}
# Dependents that say nothing about the shape of the rest.
DECORATION = {"amod", "det", "nummod", "nmod:poss", "compound"}


@pytest.fixture(scope="module")
def splits() -> dict[str, list[DemoSentence]]:
    return draw_splits()


@pytest.fixture(scope="module")
def many() -> list[DemoSentence]:
    draw = Draw(Random(5), unseen=True)
    return [sentence(draw) for _ in range(30_000)]


@pytest.mark.parametrize("split", SIZES)
def test_committed_files_are_what_the_script_draws(splits: dict[str, list[DemoSentence]], split: str) -> None:
    drawn = to_conllu(split, splits[split])
    assert (DATA / f"demo-{split}.conllu").read_bytes() == drawn.encode()
    assert len(splits[split]) == SIZES[split]


@pytest.mark.parametrize("split", SIZES)
def test_trees_are_valid_and_a_tenth_is_not_projective(split: str) -> None:
    trees = [item.words.heads for item in load_treebank([DATA / f"demo-{split}.conllu"])]
    crossing = sum(bool(nonprojective_words(heads)) for heads in trees if heads is not None)
    assert 0.05 <= crossing / len(trees) <= 0.15


def test_no_sentence_stands_twice(splits: dict[str, list[DemoSentence]]) -> None:
    texts = [item.text for sentences in splits.values() for item in sentences]
    assert len(set(texts)) == len(texts)


@pytest.mark.parametrize("split", ["dev", "test"])
def test_unseen_words_are_new_and_every_other_word_is_known(splits: dict[str, list[DemoSentence]], split: str) -> None:
    known = {word.lemma for item in splits["train"] for word in item.words}
    new = {word.lemma for item in splits[split] for word in item.words} - known
    tables = [*lexicon.NOUNS.values(), *lexicon.VERBS.values(), *lexicon.ADJECTIVES.values()]
    unseen = set(" ".join(words for _, words in [*tables, lexicon.MANNER_ADVERBS, lexicon.NAMES]).split())
    assert len(new) > 30
    assert new <= unseen
    assert not known & unseen


def test_baseline_by_hand() -> None:
    first, second, third = (Word(form, form, "X", "X") for form in "abc")
    first.head, third.head = second, second  # heads 2 0 2: one right neighbour, one left neighbour and the root
    assert adjacent_baseline([DemoSentence([first, second, third], 0.0)]) == pytest.approx(1 / 3)


def test_neighbours_make_a_poor_parser(splits: dict[str, list[DemoSentence]]) -> None:
    assert adjacent_baseline(splits["test"]) < 0.40


def test_grammar_draws_valid_trees(many: list[DemoSentence]) -> None:
    assert all(tree_problem(item.heads) is None for item in many)


def test_attachment_after_an_object_is_all_that_words_leave_open(many: list[DemoSentence]) -> None:
    trees_of = defaultdict[tuple[str, ...], list[Tree]](list)
    for item in many:
        skeleton, tree = _skeleton(item)
        trees_of[skeleton].append(tree)
    several = [trees for trees in trees_of.values() if len(trees) > 1]
    assert len(several) > 1000
    for trees in several:
        for outcomes in zip(*trees, strict=True):
            assert len(set(outcomes)) == 1 or {label for _, label in outcomes} == {"obl", "nmod"}


def test_ceiling_is_what_the_best_rule_reaches(many: list[DemoSentence]) -> None:
    """The best rule's errors counted on the trees themselves: the rarer attachment of every kind of phrase."""
    labels_of = defaultdict[tuple[str, str, str], Counter[str]](Counter)
    for item in many:
        for preposition, kind, verb_class, label in _phrases_after_objects(item):
            labels_of[preposition, kind, verb_class][label] += 1
    assert len(labels_of) == sum(map(len, lexicon.VERB_ATTACHMENT.values()))
    errors = sum(min(labels["obl"], labels["nmod"]) for labels in labels_of.values())
    words = sum(len(item.words) for item in many)
    assert 1 - errors / words == pytest.approx(ceiling(many), abs=2e-4)


def _skeleton(item: DemoSentence) -> tuple[tuple[str, ...], Tree]:
    """The classes of the words that shape the tree, and the tree over them."""
    kept = [word for word in item.words if not _is_decoration(word)]
    number = {id(word): place for place, word in enumerate(kept, 1)}
    tree = [(number[id(word.head)] if word.head else 0, word.deprel) for word in kept]
    return tuple(_word_class(word) for word in kept), tree


def _is_decoration(word: Word) -> bool:
    plain_adverb = word.upos == "ADV" and word.form.lower() not in MANNER | TIMES
    return word.deprel in DECORATION or plain_adverb or (word.head is not None and word.head.deprel == "nmod:poss")


def _word_class(word: Word) -> str:
    if word.form.lower() in TIMES:
        return f"time {word.upos}"
    if word.upos == "NOUN":
        return NOUN_CLASS[word.lemma]
    if word.upos == "VERB":
        return f"{VERB_CLASS[word.lemma]} {word.xpos}"
    if word.upos in ("ADV", "ADJ", "PROPN"):
        return word.upos
    if word.xpos == "PRP":
        return word.feats.partition("|")[0]
    return word.lemma if word.upos == "AUX" else word.form.lower()


def _phrases_after_objects(item: DemoSentence) -> list[tuple[str, str, str, str]]:
    """(preposition, noun class, verb class, label) of the phrases that follow a noun object."""
    found = []
    for before, case in pairwise(item.words):
        noun, verb = case.head, before.head
        if case.deprel != "case" or noun is None or verb is None or (before.upos, before.deprel) != ("NOUN", "obj"):
            continue
        kind = "person" if noun.upos == "PROPN" else NOUN_CLASS[noun.lemma]
        if (case.form, kind) in lexicon.VERB_ATTACHMENT:
            found.append((case.form, kind, VERB_CLASS[verb.lemma], noun.deprel))
    return found
