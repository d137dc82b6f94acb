"""Raw text is noticed, also a single sentence; treebanks' own tokens, abbreviations and numbers are left in peace."""

import os
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

import pytest

from treeparse.data.conllu import ConlluSentence, read_conllu
from treeparse.data.features.vocabulary import Vocabulary
from treeparse.data.features.words import LexicalFeatures
from treeparse.data.raw_text import RawTextCheck, attached_mark, multiword_tokens
from treeparse.data.tokenised import read_text
from treeparse.errors import DataError

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


def test_text_has_a_tokenised_sentence_a_line(tmp_path):
    path = tmp_path / "text"
    path.write_bytes("\ufeff\n  The  cat\tsat .\r\n \t\n# 1\u00a0000 \u2028\n\nlast".encode())
    sentences = list(read_text(path))
    forms = [("The", "cat", "sat", "."), ("#", "1\u00a0000", "\u2028"), ("last",)]
    assert [sentence.words.forms for sentence in sentences] == forms
    assert [(sentence.sent_id, sentence.line) for sentence in sentences] == [("1", 2), ("2", 4), ("3", 6)]
    assert sentences[0].text.startswith("# sent_id = 1\n# text = The cat sat .\n1\tThe\t")


def test_faulty_text_is_named(tmp_path):
    path = tmp_path / "text"
    path.write_bytes(b"good\nbad \xe9\n")
    with pytest.raises(DataError, match=r"text:2: byte 5 of the line \(0xe9\) is not valid UTF-8"):
        list(read_text(path))
    path.write_text("\ufeffone\n\ufefftwo\n", encoding="utf-8")
    with pytest.raises(DataError, match="text:2: the line begins with a byte order mark"):
        list(read_text(path))
    path.write_bytes(b" \n\n")
    with pytest.raises(DataError, match="text: the file holds no sentence"):
        list(read_text(path))
