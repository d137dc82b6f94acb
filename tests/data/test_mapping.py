"""Sentences in all the forms in which users have them."""

from typing import Any

import conllu
import pytest

from treeparse.data.conllu import read_conllu
from treeparse.data.mapping import as_sentence, as_sentences
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
    assert as_sentences([["They", "saw"], words, read, ("a",)]) == [
        Sentence(("They", "saw")),
        words,
        read.words,
        Sentence(("a",)),
    ]
    assert as_sentences(iter([["a"]])) == [Sentence(("a",))]
    assert as_sentences([]) == []


def test_token_lists_of_the_conllu_library(tmp_path) -> None:
    (tmp_path / "a.conllu").write_text(TEXT, encoding="utf-8")
    [read] = read_conllu(tmp_path / "a.conllu")
    [tokens] = conllu.parse(TEXT)
    found = as_sentence(tokens)
    assert (found.forms, found.upos, found.xpos, found.feats) == (
        read.words.forms,
        read.words.upos,
        read.words.xpos,
        read.words.feats,
    )
    assert found.heads is None and found.labels is None
    assert as_sentence([{"id": 1, "form": "a"}]) == Sentence(("a",))


@pytest.mark.parametrize(
    ("sentences", "problem"),
    [
        (
            ["They", "saw"],
            r"Sentence 0 \(counted from 0\) is a string, 'They': give a list of words for every sentence",
        ),
        ([["a"], "saw it"], r"Sentence 1 \(counted from 0\) is a string, 'saw it'"),
        ("They saw", "This is one sentence, but a list of sentences is wanted"),
        (Sentence(("They", "saw")), "This is one sentence, but a list of sentences is wanted"),
        ([[]], r"Sentence 0 \(counted from 0\) has no words"),
        ([["a"], [1, 2]], r"Sentence 1 \(counted from 0\) holds 1, which is no word"),
        ([["a", None]], r"holds None, which is no word"),
        ([["a"], None], r"Sentence 1 \(counted from 0\) is no list of words, but None"),
        ([3], r"Sentence 0 \(counted from 0\) is no list of words, but 3"),
    ],
)
def test_what_is_no_sentence(sentences: Any, problem: str) -> None:
    with pytest.raises(TreeparseError, match=problem):
        as_sentences(sentences)
