"""Sentences without end: the parses of ``parse``, in order, as the sentences come."""

import itertools
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import conllu
import pytest
import torch
from helpers.parsed_files import assert_same
from helpers.parsers import TRAINING, random_parser

from treeparse.data.conllu import ConlluSentence, read_conllu
from treeparse.errors import TreeparseError
from treeparse.model import Ensemble
from treeparse.model.inference.tree_request import ParseOptions, UnfitSentenceError
from treeparse.rules import Rules, RuleSearch
from treeparse.sentence import Sentence


@pytest.mark.parametrize("ahead", [1, 3, 1000])
def test_a_stream_has_the_parses_of_a_list(ahead: int) -> None:
    parser = random_parser()
    forms = [list(sentence.forms) for sentence in TRAINING[:10]]
    expected = parser.parse(forms)
    streams = (
        parser.stream(iter(forms), ahead=ahead),
        Ensemble([parser]).stream(forms, ahead=ahead),
        parser.stream(TRAINING[:10], ahead=ahead, batch_words=10),
    )
    for stream in streams:
        for parse, other in zip(stream, expected, strict=True):
            assert (parse.tokens, parse.heads, parse.labels) == (other.tokens, other.heads, other.labels)
            assert (parse.log_prob, parse.score) == pytest.approx((other.log_prob, other.score), abs=1e-9)
    [projective] = parser.stream(forms[:1], decoder="projective")
    assert projective == parser.parse(forms[:1], decoder="projective")[0]
    assert not list(parser.stream([]))


def known(sentence: Sentence) -> Sentence:
    """With the head and label of the last word, and two possible heads of the first where there are so many."""
    assert sentence.heads
    last, gold = len(sentence) - 1, sentence.heads
    heads = tuple(head if place == last else -1 for place, head in enumerate(gold))
    labels = tuple(label if place == last else "_" for place, label in enumerate(sentence.labels or ()))
    allowed = (tuple({gold[0], *([2] if last else [])}), *[()] * last)
    return replace(sentence, heads=heads, labels=labels, allowed=allowed)


OPTIONS: list[ParseOptions] = [
    {"keep_heads": True},
    {"within": True, "probabilities": True},
    {"rules": Rules(trees="projective"), "batch_words": 9},
    {"decoder": "minimum_risk"},
    {"head_threshold": 0.05, "decoder": "projective"},
]


@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: " ".join(options))
def test_streams_take_what_parse_takes(options: ParseOptions) -> None:
    parser = random_parser()
    sentences = [known(sentence) for sentence in TRAINING[:8]]
    expected = parser.parse(sentences, **options)
    assert [parse.heads for parse in expected] != [parse.heads for parse in parser.parse(sentences)]
    for model in (parser, Ensemble([parser])):
        for parse, other in zip(model.stream(sentences, ahead=3, **options), expected, strict=True):
            assert (parse.heads, parse.labels, parse.head_sets) == (other.heads, other.labels, other.head_sets)
            for some, others in ((parse.arc_probs, other.arc_probs), (parse.label_probs, other.label_probs)):
                assert (some or ()) == pytest.approx(others or (), abs=1e-9)
        annotated = list(model.annotate(sentences, ahead=3, **options))
        assert annotated == [s.with_tree(p.heads, p.labels) for s, p in zip(sentences, expected, strict=True)]


def test_rules_are_counted_once_a_sentence() -> None:
    parser, search = random_parser(), RuleSearch(Rules(trees="projective"))
    assert len(list(parser.stream(TRAINING[:8], ahead=3, rules=search))) == search.tally.sentences == 8


def test_sentences_are_read_as_they_are_wanted() -> None:
    parser, read = random_parser(), 0

    def sentences() -> Iterator[list[str]]:
        nonlocal read
        for sentence in itertools.cycle(TRAINING):
            read += 1
            yield list(sentence.forms)

    stream = parser.stream(sentences(), ahead=5)
    assert read == 0
    for _ in range(12):  # of the third five, while the fourth waits and the fifth is in work
        next(stream)
    assert 15 <= read <= 25


def test_faults_come_behind_the_parses_before_them() -> None:
    parser = random_parser()
    stream = parser.stream([["a"], ["b"], ["c"], []], ahead=2)
    assert [next(stream).tokens, next(stream).tokens] == [("a",), ("b",)]
    with pytest.raises(TreeparseError, match=r"Sentence 3 \(counted from 0\) has no words"):
        next(stream)
    unfit = Sentence(("a", "b"), heads=(2, 1), labels=("_", "_"))
    stream = parser.stream([["a"], ["b"], ["c"], unfit], ahead=2, keep_heads=True)
    assert [next(stream).tokens, next(stream).tokens] == [("a",), ("b",)]
    with pytest.raises(UnfitSentenceError, match=r"Sentence 3 \(counted from 0\)"):
        next(stream)
    with pytest.raises(TypeError, match="ruls"):
        parser.stream([["a"]], ruls=None)  # pyright: ignore[reportCallIssue]
    with pytest.raises(TreeparseError, match="Unknown decoder 'finest'"):
        parser.stream([["a"]], decoder="finest")  # pyright: ignore[reportArgumentType]
    with pytest.raises(TreeparseError, match="got one sentence"):
        parser.stream("They saw her")
    with pytest.raises(TreeparseError, match="ahead must be 1 or more, not 0"):
        parser.stream([["a"]], ahead=0)


def test_autocast_holds_for_streams() -> None:
    parser = random_parser().float()
    with torch.autocast("cpu", torch.bfloat16):
        expected = parser.parse(TRAINING)
        assert [parse.score for parse in parser.stream(TRAINING)] == [parse.score for parse in expected]
    assert [parse.score for parse in parser.parse(TRAINING)] != [parse.score for parse in expected]


TEXT = """# text = They saw it
1\tThey\tthey\tPRON\t_\t_\t9\told\t9:old\tA=1
2-3\tsawit\t_\t_\t_\t_\t_\t_\t_\t_
2\tsaw\tsee\tVERB\t_\tTense=Past\t_\t_\t_\t_
3\tit\tit\tPRON\t_\t_\t_\t_\t_\t_
3.1\tnow\tnow\tADV\t_\t_\t_\t_\t_\tB=2

"""


def test_what_people_hold_is_given_back_under_its_parse(tmp_path: Path) -> None:
    parser = random_parser()
    (path := tmp_path / "a.conllu").write_text(TEXT.replace("\t9\told\t9:old", "\t_\t_\t_"), encoding="utf-8")
    [tokens], [read], words = (
        conllu.parse(TEXT),
        read_conllu(path),
        Sentence(("They", "saw", "it"), upos=("A", "B", "C")),
    )
    [expected] = parser.parse([["They", "saw", "it"]])
    for model in (parser, Ensemble([parser])):
        held = [tokens, read, words, ["They", "saw", "it"]]
        for lists in (model.kbest(held, 3), [[parse] for parse in model.stream(held)]):
            assert_same(lists, [lists[3]] * 4)
        first = model.sample([tokens], 3, seed=1)
        assert_same([model.sample([each], 3, seed=1)[0] for each in held], first * 4)
        filled, line_by_line, sentence = model.annotate([tokens, read, words], ahead=2)
        assert isinstance(filled, conllu.TokenList) and isinstance(line_by_line, ConlluSentence)
        assert conllu.parse(TEXT)[0] == tokens  # which is as it was
        given = [token for token in filled if isinstance(token["id"], int)]
        assert [(token["head"], token["deprel"], token["deps"]) for token in given] == [
            (head, label, None) for head, label in zip(expected.heads, expected.labels, strict=True)
        ]
        assert filled.serialize() == line_by_line.text.rstrip() + "\n\n"
        assert sentence == words.with_tree(expected.heads, expected.labels)
    with pytest.raises(TypeError, match="A tree needs a sentence that can hold it"):
        list(parser.annotate([["They", "saw", "it"]]))  # pyright: ignore[reportArgumentType]


def test_rows_of_data_sets_are_taken_everywhere() -> None:
    """A row was parsed as a sentence of its keys."""
    parser, words = random_parser(), ["They", "saw", "it"]
    row = {"idx": 7, "tokens": words, "head": ["2", "0", "2"], "deps": ["a", "b", "c"]}
    kept = {name: list(value) if isinstance(value, list) else value for name, value in row.items()}
    [expected] = parser.parse([words])
    assert torch.equal(parser.collate([row]).lengths, parser.collate([words]).lengths)
    for model in (parser, Ensemble([parser])):
        assert_same([model.parse([row]), [*model.stream(iter([row]))]], [[expected]] * 2)
        assert_same(model.kbest([row], 3), model.kbest([words], 3))
        assert_same(model.sample([row], 3, seed=1), model.sample([words], 3, seed=1))
        [filled] = model.annotate([row])
        tree = {"head": [*expected.heads], "deprel": [*expected.labels], "deps": [None] * 3}
        assert filled == {**row, **tree} and row == kept
        for call in (model.parse, model.annotate, model.stream, lambda held, model=model: model.kbest(held, 2)):
            with pytest.raises(TreeparseError, match=r"Sentence 0 \(counted from 0\) is a mapping"):
                list(call([{"text": "They saw it"}]))  # pyright: ignore[reportArgumentType, reportCallIssue]
