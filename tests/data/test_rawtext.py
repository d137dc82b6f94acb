"""Raw text is noticed, also a single sentence; treebanks' own tokens, abbreviations and numbers are left in peace."""

import os
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

import pytest

from treeparse.data.conllu import ConlluSentence, read_conllu
from treeparse.data.features.vocabulary import Vocabulary
from treeparse.data.features.words import LexicalFeatures
from treeparse.data.raw_text import RawTextCheck, attached_mark

DEMO = Path(__file__).parents[2] / "data"
TREEBANKS = ["UD_English-EWT/en_ewt", "UD_Latin-Perseus/la_perseus", "UD_Turkish-IMST/tr_imst"]
WORDS = Vocabulary.build([*".,?!", "they", "saw", "mr."] * 5)


def raw(sentence: ConlluSentence) -> list[str]:
    """The words between the spaces of the text."""
    [text] = [line for line in sentence.text.splitlines() if line.startswith("# text = ")]
    return text.removeprefix("# text = ").split()


def sentences_and_words(train: Path, test: Path) -> tuple[list[ConlluSentence], Vocabulary]:
    words = LexicalFeatures.build([sentence.words for sentence in read_conllu(train)]).words
    return list(read_conllu(test)), words


def look(words: Vocabulary, sentences: Sequence[Sequence[str]]) -> str:
    return RawTextCheck(words).check(sentences) or ""


def looked_at(*lines: str) -> str:
    return look(WORDS, [line.split() for line in lines])


def assert_told_apart(sentences: Sequence[ConlluSentence], words: Vocabulary) -> None:
    tokens, texts = [list(s.words.forms) for s in sentences], [raw(sentence) for sentence in sentences]
    assert look(words, tokens) == ""
    assert "raw text" in look(words, texts)
    assert not [forms for forms in tokens if "raw text" in look(words, [forms])]
    starts = range(0, len(tokens) - 10, 10)
    assert not any(look(words, tokens[start : start + 10]) for start in starts)
    for found, kind in ((tokens, "paragraphs"), (texts, "raw text")):
        assert kind in look(words, [list(chain.from_iterable(found[start : start + 10])) for start in starts])


def test_the_demo_treebank() -> None:
    sentences, words = sentences_and_words(DEMO / "demo-train.conllu", DEMO / "demo-test.conllu")
    assert_told_apart(sentences, words)
    assert all("raw text" in look(words, [raw(sentence)]) for sentence in sentences)


@pytest.mark.treebank
@pytest.mark.skipif("TREEPARSE_TREEBANKS" not in os.environ, reason="TREEPARSE_TREEBANKS is unset")
@pytest.mark.parametrize("name", TREEBANKS)
def test_treebanks(name: str) -> None:
    root = Path(os.environ["TREEPARSE_TREEBANKS"])
    assert_told_apart(*sentences_and_words(root / f"{name}-ud-train.conllu", root / f"{name}-ud-test.conllu"))


NOTICED = ["They saw her duck.", '"They saw her duck."', "They saw her duck...", "Well, they saw her"]
# One attached and two alone, abbreviations, numbers, addresses, what the model knows ("Mr.") and lacks (a colon).
UNNOTICED = ["They, as ducks , saw ,", "They saw her duck .", "They saw Mr. Duck", "They saw Mr.", "They saw Dr. Duck"]
UNNOTICED += ["They saw J.", "They saw the U.S.", "They saw page 3.", "They saw www.duck.com/a.", "They saw at 10:30,"]
UNNOTICED += ["They saw this:", "They saw it ...", "They saw her duck"]


@pytest.mark.parametrize("line", [*NOTICED, *UNNOTICED])
def test_single_sentences(line: str) -> None:
    assert (looked_at(line) != "") is (line in NOTICED)


WRAPPED = ["The old man sat by the", "river and watched the ducks,", "which swam . Then", "he went home ."]
WHOLE = ["The old man sat by the river .", "Then", "he went home ."]  # one may be a title


@pytest.mark.parametrize("lines", [WRAPPED, WHOLE, [line.lower() for line in WRAPPED]])
def test_lines_that_end_in_mid_sentence(lines: list[str]) -> None:
    sentences = [line.split() for line in lines]
    doubt = RawTextCheck(WORDS, has_lines=True).check(sentences) or ""
    assert ("lines end in mid-sentence: in the first 4 sentences, 3 go on" in doubt) is (lines is WRAPPED)
    assert RawTextCheck(WORDS).check(sentences) is None


def test_the_sentence_says_what_was_seen_and_what_to_do() -> None:
    problem = looked_at("They saw her duck.")
    assert "in the first sentence, the token 'duck.' ends in punctuation" in problem
    assert "Tokenise the text first" in problem and "('duck .')" in problem and "UDPipe, Stanza or spaCy" in problem
    assert "in the first 2 sentences, 3 tokens, 'ducks.' the first, end in" in looked_at("They saw ducks.", "Oh, Hi.")
    problem = looked_at("They saw . They left . They ran .")
    assert "looks like paragraphs: in the first sentence, 2 ends of sentences are before the last word" in problem
    assert "one a line" in problem
    assert looked_at("They saw . They left .", "They ran .") == ""


def test_scripts_without_capitals_or_spaces() -> None:
    chinese = Vocabulary.build(["。", "我", "看见"] * 3)
    assert "'我看见鸭子。'" in look(chinese, [["我看见鸭子。"]])
    assert look(chinese, [["我", "看见", "鸭子", "。"]]) == ""
    assert "paragraphs" in look(chinese, [["我", "。", "我", "。", "我", "。"]])
    assert attached_mark("है।") == "।" and attached_mark("؟") is None


def test_what_training_looks_like_is_no_sign() -> None:
    without = Vocabulary.build(["they", "saw"])
    attached = Vocabulary.build(["they", "duck.", "pond.", "saw.", "."])
    for words in (without, attached):
        assert look(words, [["They", "saw", "her", "fox."]] * 9) == ""


def test_it_is_said_once_and_of_the_first_sentences_only() -> None:
    text, tokens = ["They", "left."], ["They", "left", "."]
    check = RawTextCheck(WORDS)
    assert check.check([tokens]) is None
    assert check.check([text]) is None  # as many alone as attached
    assert check.check([text]) is not None
    assert check.check([text]) is None
    check = RawTextCheck(WORDS)
    assert check.check([["they"]] * 100) is None
    assert check.check([text] * 9) is None
    assert RawTextCheck(WORDS).check([[]]) is None
