"""Sentences in all the forms in which users have them, and work on batches of them in threads."""

import threading
from collections import UserDict
from collections.abc import Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import conllu
import numpy as np
import pytest
import torch

from treeparse.data.conllu import read_conllu
from treeparse.data.mapping import as_sentence, as_sentences, map_batches
from treeparse.data.parses import Parse
from treeparse.errors import TreeparseError
from treeparse.sentence import Sentence

TEXT = """\
# sent_id = one
1-2\tdel\t_\t_\t_\t_\t_\t_\t_\t_
1\tde\tde\tADP\tIN\t_\t3\tcase\t_\t_
2\tel\tel\tDET\t_\tGender=Masc|Number=Sing\t3\tdet\t_\t_
3\tvino\tvino\tNOUN\t_\tNumber=Sing\t0\troot\t_\t_
3.1\tes\tser\tVERB\t_\t_\t_\t_\t_\t_

"""


def test_lists_of_words_sentences_and_conllu_sentences(tmp_path) -> None:
    (tmp_path / "a.conllu").write_text(TEXT, encoding="utf-8")
    [read] = read_conllu(tmp_path / "a.conllu")
    words = Sentence(("They", "saw"), heads=(2, 0), labels=("nsubj", "root"))
    expected = [Sentence(("They", "saw")), words, read.words, Sentence(("a",))]
    assert as_sentences([["They", "saw"], words, read, ("a",)]) == expected
    assert as_sentences(iter([["a"]])) == [Sentence(("a",))]
    assert as_sentences([]) == []


def test_token_lists_of_the_conllu_library(tmp_path) -> None:
    (tmp_path / "a.conllu").write_text(TEXT, encoding="utf-8")
    [read] = read_conllu(tmp_path / "a.conllu")
    [tokens] = conllu.parse(TEXT)
    found = as_sentence(tokens)
    assert found == replace(read.words, heads=None, labels=None)
    assert as_sentence([{"id": 1, "form": "a"}]) == Sentence(("a",))


ROW = {
    "idx": "1",
    "text": "They saw",
    "tokens": ["They", "saw"],
    "upos": ["PRON", None],
    "xpos": ["", "VBD"],
    "feats": ["_", "Tense=Past"],
    "head": ["2", "0"],
}


@pytest.mark.parametrize("kind", [dict, UserDict, MappingProxyType])
def test_rows_of_data_sets(kind: Any) -> None:
    """A row was read as its keys, the words "idx", "text", "tokens"."""
    expected = Sentence(("They", "saw"), ("PRON", "_"), ("_", "VBD"), ("_", "Tense=Past"))
    assert as_sentences([kind(ROW), ["a"]]) == [expected, Sentence(("a",))]
    assert as_sentence(kind({"form": ("a", "b")})) == Sentence(("a", "b"))
    assert as_sentence(kind({"tokens": np.array(["a", "b"]), "form": "a b"})).forms == ("a", "b")


def test_columns_of_rows_that_are_no_tags() -> None:
    """Ids of classes, and mappings as strings, as data sets have them."""
    row = {"tokens": ["a", "b"], "upos": [1, 2], "xpos": "NN", "feats": ["{'Case': 'Nom'}", "None"]}
    assert as_sentence(row) == Sentence(("a", "b"))
    with pytest.raises(TreeparseError, match="2 words came with 3 upos"):
        as_sentence({"tokens": ["a", "b"], "upos": ["X", "X", "X"]})


@pytest.mark.parametrize(
    ("sentences", "problem"),
    [
        (["They", "saw"], r"Sentence 0 .* must be a list of words, got a string, 'They': give a list of lists"),
        ("They saw", "Sentences must be a list of sentences, got one sentence"),
        (Sentence(("They", "saw")), "Sentences must be a list of sentences, got one sentence"),
        ([[]], r"Sentence 0 \(counted from 0\) has no words"),
        ([["a"], [1, 2]], r"The words of sentence 1 \(counted from 0\) must be strings, got 1"),
        ([["a"], None], r"Sentence 1 \(counted from 0\) must be a list of words, got None"),
        ([{"text": "They saw", "id": 1}], r"Sentence 0 .* a mapping with the keys 'text', 'id': .* 'tokens' or 'form'"),
        ([["a"], {"id": 1, "form": "They"}], r"Sentence 1 .* 'id', 'form': .* put the tokens of a sentence into a"),
        ([{"tokens": None}], r"Sentence 0 .* is a mapping"),
        ([["a"], {"They", "saw"}], r"Sentence 1 \(counted from 0\) must be a list .*, got a set, which has no order"),
        ({("They", "saw"), ("a",)}, "got a set, which has no order"),
        ({"tokens": [["a"], ["b"]], "head": []}, r"a mapping with the keys 'tokens', 'head': .* rows\['tokens'\]"),
        ([[{"id": 1, "form": "a"}, {"id": 2, "text": "b"}]], "tokens of sentence 0 .* keys 'id' and 'form', got one"),
        ([[{"id": "1", "form": "a"}]], r"Sentence 0 .* has no words: the 'id' of a word must be an integer"),
    ],
)
def test_what_is_no_sentence(sentences: Any, problem: str) -> None:
    with pytest.raises(TreeparseError, match=problem):
        as_sentences(sentences)


def test_a_parse_as_a_tokenlist() -> None:
    """It is what the library reads from the same rows, and its words and tags come back."""
    tags = ("DET", "_"), ("Definite=Def|PronType=Art", "_")
    parse = Parse(("the", "cat"), (2, 0), ("det", "root"), 0.0, 0.0, upos=tags[0], feats=tags[1])
    rows = "1\tthe\t_\tDET\t_\tDefinite=Def|PronType=Art\t2\tdet\t_\t_\n2\tcat\t_\t_\t_\t_\t0\troot\t_\t_\n\n"
    [expected] = conllu.parse(rows)
    found = parse.to_tokenlist()
    assert found.serialize() == rows and [*map(dict, found)] == [*map(dict, expected)]
    assert as_sentence(found) == Sentence(parse.tokens, tags[0], ("_", "_"), tags[1], misc=("_", "_"))


FIFTY = [Sentence(tuple(f"word{number}" for _ in range(1 + number % 7))) for number in range(50)]


@pytest.mark.parametrize("threads", [1, 2, 3, 100])
def test_results_are_in_the_order_of_the_sentences(threads: int) -> None:
    batches: list[list[int]] = []

    def forms(places: list[int], chosen: list[Sentence]) -> list[tuple[str, ...]]:
        assert chosen == [FIFTY[place] for place in places]
        batches.append(places)
        return [sentence.forms for sentence in chosen]

    assert map_batches(forms, FIFTY, max_words=20, threads=threads) == [s.forms for s in FIFTY]
    alone: list[list[int]] = []
    map_batches(lambda places, _: [alone.append(places), *places][1:], FIFTY, max_words=20)
    assert sorted(batches) == sorted(alone) and len(alone) > 3


def test_batches_are_done_at_once_and_torch_takes_no_other_threads() -> None:
    before = torch.get_num_threads()
    both = threading.Barrier(2, timeout=20)

    def work(places: list[int], chosen: list[Sentence]) -> list[int]:
        both.wait()  # raises unless two are here at the same time
        return [torch.get_num_threads()] * len(places)

    try:
        torch.set_num_threads(3)
        assert set(map_batches(work, FIFTY[:2], max_words=1, threads=2)) == {1}
        assert torch.get_num_threads() == 3
        later: list[int] = []
        thread = threading.Thread(target=lambda: later.append(torch.get_num_threads()))
        thread.start()
        thread.join()
        assert later == [3]
    finally:
        torch.set_num_threads(before)


def test_a_fault_in_a_thread_is_raised() -> None:
    def work(places: list[int], chosen: list[Sentence]) -> list[int]:
        if 3 in places:
            raise ValueError("the fourth")
        return places

    with pytest.raises(ValueError, match="the fourth"):
        map_batches(work, FIFTY, max_words=1, threads=2)


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_batches_in_other_threads_learn_of_the_end(error: type[BaseException]) -> None:
    ended, learnt = threading.Event(), list[bool]()

    def work(places: list[int], chosen: list[Sentence]) -> list[int]:
        if 0 not in places:
            learnt.append(ended.wait(20))
        return places

    def stop(places: Sequence[int]) -> None:
        raise error

    with pytest.raises(error):
        map_batches(work, FIFTY[:3], max_words=1, threads=3, progress=stop, ended=ended)
    assert learnt == [True] * len(learnt)
