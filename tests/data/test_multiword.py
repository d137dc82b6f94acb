"""Multiword tokens that a model remembers: the frequent ones that are no words of their own."""

from pathlib import Path

import pytest

from treeparse.data.conllu import read_conllu
from treeparse.data.raw_text import RawTextCheck, multiword_tokens

KNOWN = {"du": "de le", "au": "\u00e0 le"}


def block(*tokens: tuple[str, ...]) -> str:
    """A sentence of tokens, each of one word or of its form and its words."""
    rows, word = [], 0
    for form, *words in tokens:
        if words:
            rows.append(f"{word + 1}-{word + len(words)}\t{form}" + "\t_" * 8)
        for each in words or [form]:
            rows.append(f"{(word := word + 1)}\t{each}" + "\t_" * 4 + f"\t{word - 1}\tdep\t_\t_")
    return "\n".join(rows) + "\n\n"


def test_frequent_ones_with_their_usual_words(tmp_path: Path) -> None:
    """But for those that are often words: "des" is an article as well as "de les"."""
    path = tmp_path / "in.conllu"
    usual = block(("Du", "De", "le"), ("des", "de", "les"), ("des",), ("x",)) * 2
    odd = block(("du", "d'", "le"), ("du", "de", "le"))
    path.write_text(usual + odd + block(("a",), ("au", "\u00e0", "le")), encoding="utf-8")
    assert list(multiword_tokens(read_conllu(path)).items()) == list(KNOWN.items())


def test_only_what_may_be_a_mistake_of_annotation_is_passed_over() -> None:
    for others, expected in ((0, True), (19, True), (20, False)):
        sentences = [["le", "chat"]] * others + [["le", "chat", "Du", "roi"]]
        doubt = RawTextCheck(None, KNOWN).check(sentences)
        assert (doubt is not None) == expected
        assert doubt is None or "'Du', which is 'de' 'le' there" in doubt


def test_of_raw_text_a_single_one_is_told() -> None:
    doubt = RawTextCheck(None, KNOWN, is_raw=True).check([["le", "chat"]] * 50 + [["le", "chat", "du", "roi"]])
    assert doubt is not None and "'du', which is 'de' 'le' there" in doubt


@pytest.mark.parametrize("known", [{}, KNOWN])
def test_words_that_are_split_say_nothing(known: dict[str, str]) -> None:
    assert RawTextCheck(None, known).check([["le", "chat", "de", "le", "roi"]]) is None
