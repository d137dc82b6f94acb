"""Configurations and features of trees, against an extraction of their own, node by node from heads and labels."""

import random
from collections import Counter

import pytest
from helpers.nbest_lists import LABELS, nbest_list, random_heads, random_list

from treeparse.errors import TreeparseError
from treeparse.rerank.learning import LogLinear, LogLinearConfig
from treeparse.rerank.tree_features import NodeNames, configurations, differing, features, shape, size_class
from treeparse.sentence import Sentence


def below(heads: tuple[int, ...], node: int) -> set[int]:
    """A node and all words whose way up passes it."""

    def passes(word: int) -> bool:
        while word not in (0, node):
            word = heads[word - 1]
        return word == node

    return {word for word in range(1, len(heads) + 1) if passes(word)} | {node}


@pytest.mark.parametrize("seed", range(8))
def test_configurations_say_what_the_tree_is(seed: int) -> None:
    stream = random.Random(seed)
    heads = random_heads(7, stream)
    labels = tuple(stream.choice(LABELS) for _ in heads)
    found = configurations(heads, labels)
    assert [part.node for part in found] == list(range(8))
    for part in found:
        node, words = part.node, below(heads, part.node)
        own = [word for word in range(1, 8) if heads[word - 1] == node]
        assert part.left == tuple((w, labels[w - 1]) for w in sorted(own, reverse=True) if w < node)
        assert part.right == tuple((w, labels[w - 1]) for w in own if w > node)
        assert (part.first, part.last, part.size) == (min(words), max(words), len(words))
        assert (part.head, part.label) == ((-1, "") if node == 0 else (heads[node - 1], labels[node - 1]))


def test_what_all_trees_have_is_left_out() -> None:
    parts, members = differing([("a", "b", "c"), ("b", "a", "d"), ("a", "e", "c")])
    assert parts == ["b", "c", "d", "e"]
    assert members == [(0, 0), (0, 1), (1, 0), (1, 2), (2, 3), (2, 1)]
    assert differing([("a", "b")]) == ([], [])


def naive(heads: tuple[int, ...], labels: tuple[str, ...], forms: tuple[str, ...]) -> Counter[str]:
    """Some of the features of a whole tree, from the definitions: each word's class is its own last two letters."""
    found: Counter[str] = Counter()
    names = ["<root>", *(f"{shape(form)}{form.lower()[-2:]}" for form in forms)]
    tags, count = ["", *labels], len(heads)
    for head in range(count + 1):
        left = [w for w in range(head - 1, 0, -1) if heads[w - 1] == head]
        right = [w for w in range(head + 1, count + 1) if heads[w - 1] == head]
        found[f"valency {tags[head]} {len(left)} {len(right)}"] += 1
        rows = " ".join(tags[w] for w in left), " ".join(tags[w] for w in right)
        found[f"sequence {tags[head]} {rows[0]} * {rows[1]}"] += 1
        for side, row in (("L", left), ("R", right)):
            chain = ["<edge>", *(tags[w] for w in row), "<edge>"]
            for place in range(len(chain) - 1):
                found[f"siblings {tags[head]} {side} {chain[place]} {chain[place + 1]}"] += 1
        if head:
            found[f"size {tags[head]} {'LR'[head > heads[head - 1]]} {size_class(len(below(heads, head)))}"] += 1
    for word in range(1, count + 1):
        head = heads[word - 1]
        if head:
            above = heads[head - 1]
            sides = "LR"[head > above] + "LR"[word > head]
            chain = f"chain {sides} {tags[head]} {tags[word]}"
            found[chain] += 1
            found[f"{chain} {names[above]} {names[head]} {names[word]}"] += 1
    return found


@pytest.mark.parametrize("seed", range(8))
def test_features_are_those_of_the_definitions(seed: int) -> None:
    stream = random.Random(seed)
    heads, forms = random_heads(7, stream), tuple(stream.choice(("Noun", "verb", "x", "9", "!")) for _ in range(7))
    labels = tuple(stream.choice(LABELS) for _ in heads)
    names = NodeNames.of(Sentence(forms), {}, upos=False)
    found = Counter(each for part in configurations(heads, labels) for each in features(part, names))
    expected = naive(heads, labels, forms)
    assert {name: found[name] for name in expected} == expected


def test_names_of_words() -> None:
    sentence = Sentence(("The", "Cats", "sat", "1999", "...", "x"), upos=("DET", "NOUN", "VERB", "NUM", "PUNCT", "X"))
    counts = {"the": 1000, "sat": 5}
    names = NodeNames.of(sentence, counts, upos=False)
    assert names.words == ("<root>", "the", "Aats", "sat", "9999", "....", "ax")
    assert names.classes == ("<root>", "the", "Ats", "aat", "999", "...", "ax")
    assert NodeNames.of(sentence, counts, upos=True).classes == ("<root>", "DET", "NOUN", "VERB", "NUM", "PUNCT", "X")
    with pytest.raises(TreeparseError, match="reads UPOS, but the list has none"):
        NodeNames.of(Sentence(("a",)), {}, upos=True)
    with pytest.raises(TreeparseError, match="has none"):
        NodeNames.of(Sentence(("a",), upos=("_",)), {}, upos=True)


def test_size_classes() -> None:
    assert [size_class(size) for size in (1, 2, 5, 6, 7, 24, 25, 400)] == [1, 2, 5, 5, 6, 8, 9, 9]


@pytest.mark.parametrize("seed", range(4))
def test_scores_are_sums_of_weights_but_for_a_constant(seed: int) -> None:
    """Features that all trees share are left out, which moves all scores alike."""
    stream = random.Random(seed)
    nbest = random_list(6, 7, stream)
    model = LogLinear.build(LogLinearConfig(bits=12, min_count=1), [nbest.sentence.words])
    model.weights.data.normal_()
    names = NodeNames.of(nbest.sentence.words, model.counts, upos=False)
    expected = []
    for parse in nbest.parses:
        parts = configurations(parse.heads, parse.labels)
        ids = model.ids(name for part in parts for name in features(part, names))
        expected.append(float(model.weights.detach()[ids].sum()))
    found = model([model.prepare(nbest)]).tolist()
    assert [score - found[0] for score in found] == pytest.approx([s - expected[0] for s in expected], abs=1e-4)


def test_lists_are_scored_alike_together_and_alone() -> None:
    lists = [random_list(words, parses, random.Random(words)) for words, parses in ((3, 4), (1, 1), (6, 5), (2, 3))]
    model = LogLinear.build(LogLinearConfig(bits=10), [nbest.sentence.words for nbest in lists])
    model.weights.data.normal_()
    items = [model.prepare(nbest) for nbest in lists]
    together = model(items).tolist()
    assert together == pytest.approx([score for item in items for score in model([item]).tolist()], abs=1e-5)
    same = nbest_list("ab", [((0, 1), ("root", "obj"), -1.0)])
    assert model([model.prepare(same)]).tolist() == [0.0]
