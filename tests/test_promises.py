"""The certainty of words against enumeration, and thresholds that models keep."""

import math
from dataclasses import replace

import pytest
from helpers.parsers import CONFIG, ENCODER, random_parser
from helpers.sentences import learnable_sentences

from treeparse.errors import TreeparseError
from treeparse.metrics import conformal_threshold, conformal_trees
from treeparse.model import Ensemble, Parse, Parser
from treeparse.model.promises import SHARES, HeldOut, fit_promises, kept_threshold
from treeparse.names import Decoder
from treeparse.sentence import Sentence

SENTENCES = [Sentence(("Noun1", "Adj2", "Verb1")), Sentence(("Verb3",)), Sentence(("Adj1", "Verb3", "Noun5"))]
HELD_OUT = learnable_sentences(120, seed=5)


def enumerated(parse: Parse, trees: list[Parse]) -> list[float]:
    """The probability of each word's labelled arc and all more probable ones, by those of all trees."""
    own = [*zip(parse.heads, parse.labels, strict=True)]

    def prob(words: list[int]) -> float:
        pairs = ((tree, [*zip(tree.heads, tree.labels, strict=True)]) for tree in trees)
        return sum(math.exp(tree.log_prob) for tree, arcs in pairs if all(arcs[word] == own[word] for word in words))

    order = sorted(range(len(own)), key=lambda word: -prob([word]))
    certainties = {word: prob(order[:place]) for place, word in enumerate(order, 1)}
    return [certainties[word] for word in range(len(own))]


def ensemble() -> Ensemble:
    return Ensemble([random_parser(), random_parser(replace(CONFIG, arc_size=9))], "marginals")


@pytest.mark.parametrize("trees", ["nonprojective", "projective", "siblings", "ensemble"])
@pytest.mark.parametrize("decoder", ["best", "minimum_risk"])
def test_certainties_equal_enumeration(trees: str, decoder: Decoder) -> None:
    model = ensemble() if trees == "ensemble" else random_parser(replace(CONFIG, trees=trees, part_size=3))
    lists = model.networks[0].kbest(SENTENCES, 10**4)
    if isinstance(model, Ensemble):  # the trees of one, with the probabilities of both
        pairs = zip(SENTENCES, lists, strict=True)
        lists = [model.score_trees([sentence.with_tree(t.heads, t.labels) for t in trees]) for sentence, trees in pairs]
    for parse, all_trees in zip(model.parse(SENTENCES, decoder=decoder, certain=0.5), lists, strict=True):
        assert math.fsum(math.exp(tree.log_prob) for tree in all_trees) == pytest.approx(1)
        assert parse.certainties == pytest.approx(enumerated(parse, all_trees), abs=1e-9)


def test_what_is_given_is_certain() -> None:
    parser = random_parser()
    known = [replace(sentence, heads=(0, *[-1] * (len(sentence) - 1))) for sentence in SENTENCES]
    known = [replace(sentence, labels=("root", *["_"] * (len(sentence) - 1))) for sentence in known]
    for parse in parser.parse(known, keep_heads=True, certain=0.0):
        assert parse.certainties is not None and parse.certainties[0] == pytest.approx(1)


def test_chunks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    parser = random_parser()
    whole = parser.parse(HELD_OUT[:20], certain=0.0)
    monkeypatch.setattr("treeparse.model.inference.lists.ARCS", 1)
    for parse, again in zip(whole, parser.parse(HELD_OUT[:20], certain=0.0), strict=True):
        assert again.certainties == pytest.approx(parse.certainties, abs=1e-12)


def test_the_tree_of_the_certain_words() -> None:
    parse = Parse(("a", "b", "c"), (2, 0, 2), ("x", "root", "y"), -1.0, 0.0, certainties=(0.5, 0.9, 0.2))
    assert parse.certain_tree(0.5) == ((2, 0, -1), ("x", "root", "_"))
    assert parse.certain_tree(math.inf) == ((-1,) * 3, ("_",) * 3)
    assert parse.certain_tree(None) == replace(parse, certainties=None).certain_tree(0.5) == (parse.heads, parse.labels)


def test_a_model_keeps_thresholds_of_some_shares(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Those of the metrics, rounded to the safe side; other shares have the next lower one."""
    parser = random_parser().float()
    fit_promises(parser, HELD_OUT)
    folder = tmp_path_factory.mktemp("kept") / "model"
    parser.save_pretrained(folder)
    parser = Parser.from_pretrained(folder)
    bare, scored = [s.without_tree() for s in HELD_OUT], parser.score_trees(HELD_OUT)
    parses = parser.parse(bare, certain=0.0)
    probs = [prob for parse in scored for prob in parse.arc_probs or ()]
    certainties = [parse.certainties or () for parse in parses]
    pairs = zip(parses, HELD_OUT, strict=True)
    right = [
        [*map(lambda *word: word[:2] == word[2:], p.heads, p.labels, gold.heads or (), gold.labels or ())]
        for p, gold in pairs
    ]
    assert 0 < sum(map(sum, right)) < sum(map(len, right))
    for alpha, share in ((0.05, 0.05), (0.06, 0.05), (0.5, 0.2)):
        exact = conformal_threshold(probs, share)
        assert 0.999 * exact <= kept_threshold(parser, "heads", alpha) <= exact
        for of in ("sentences", "words"):
            exact = conformal_trees(certainties, right, share, of=of)
            assert exact <= kept_threshold(parser, of, alpha) <= 1.001 * exact
    assert HeldOut(parser, HELD_OUT).threshold("words", 0.3, 0.1) == conformal_trees(
        certainties, right, 0.3, of="words", delta=0.1
    )


def test_promises_that_a_model_cannot_keep() -> None:
    parser = random_parser()
    with pytest.raises(TreeparseError, match=r"a share of 0.05 with the model, which has none: name by --held-out"):
        kept_threshold(parser, "sentences", 0.05)
    fit_promises(parser, HELD_OUT[:30])  # too few for 1 and 2%
    assert [*parser.config.promises["sentences"]] == [f"{share:g}" for share in SHARES if share > 1 / 31]
    with pytest.raises(TreeparseError, match=r"a share of 0.02 with the model, which has those of 0.05, 0.1, 0.2"):
        kept_threshold(parser, "words", 0.02)
    with pytest.raises(TreeparseError, match="which has none"):
        kept_threshold(Ensemble([parser, parser]), "words", 0.1)
    fit_promises(other := random_parser(replace(CONFIG, trees="nonprojective_siblings", encoder=ENCODER)), HELD_OUT)
    assert not other.config.promises
