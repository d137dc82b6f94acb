"""Raw text is noticed; text has a sentence a line; whatever tokenisers give becomes valid CoNLL-U with all of it."""

import os
import random
import sys
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from helpers.parsed_files import incidents, written

from treeparse.data.conllu import ConlluSentence, read_conllu, write_conllu
from treeparse.data.features.vocabulary import Vocabulary
from treeparse.data.features.words import LexicalFeatures
from treeparse.data.raw_text import (
    RawTextCheck,
    Token,
    Tokenizer,
    attached_mark,
    multiword_tokens,
    tokenised,
    tokenizer_named,
)
from treeparse.data.tokenised import read_text
from treeparse.errors import DataError, TreeparseError

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


def split(tmp_path: Path, text: str, tokenizer: Tokenizer) -> list[ConlluSentence]:
    lines = read_text(written(tmp_path / "in.txt", text))
    return [sentence for line in lines for sentence in tokenised(line, tokenizer)]


def at_random(seed: int) -> Tokenizer:
    """Tokens and sentences that end anywhere, at white space or not, some of it alone, some tokens of two words."""
    stream = random.Random(seed)

    def tokenize(text: str) -> list[list[Token]]:
        ends = sorted({*stream.sample(range(1, len(text) + 1), len(text) // 3), len(text)})
        sentences: list[list[Token]] = [[]]
        for start, end in zip([0, *ends[:-1]], ends, strict=True):
            form = text[start:end]
            halves = (form[: len(form) // 2], form[len(form) // 2 :])
            words = halves if len(form) > 3 and stream.random() < 0.3 else (form,)
            sentences[-1].append(Token(words, start, end))
            if stream.random() < 0.2:
                sentences.append([])
        return sentences

    return tokenize


ALPHABET = "abcé.#-_" + " " * 4 + "\u00a0\u2028\u3000"


@pytest.mark.parametrize("seed", range(12))
def test_whatever_tokenisers_give_is_valid_and_whole(tmp_path: Path, seed: int) -> None:
    stream = random.Random(seed)
    text = "".join(stream.choice(ALPHABET) for _ in range(150)) + "\nx\n"
    found = split(tmp_path, text, at_random(seed))
    path = tmp_path / "out.conllu"
    write_conllu(path, [s.with_parse(*tree_of(s), tags={"upos": ["X"] * len(s.words)}) for s in found])
    assert [str(incident) for incident in incidents(path)] == []
    surfaces = "".join(surface(sentence) for sentence in read_conllu(path))
    assert "".join(surfaces.split()) == "".join(text.split())
    assert [s.words.forms for s in read_conllu(path)] == [s.words.forms for s in found]


def tree_of(sentence: ConlluSentence) -> tuple[list[int], list[str]]:
    others = len(sentence.words) - 1
    return [0, *[1] * others], ["root", *["dep"] * others]


def surface(sentence: ConlluSentence) -> str:
    [text] = [line for line in sentence.text.split("\n") if line.startswith("# text = ")]
    return text.removeprefix("# text = ")


def words(*pieces: str) -> Tokenizer:
    """One sentence of these pieces of a text."""

    def tokenize(text: str) -> list[list[Token]]:
        places, start = [], 0
        for piece in pieces:
            start = text.index(piece, start)
            places.append(Token((piece,), start, start + len(piece)))
        return [places]

    return tokenize


def test_spaces_text_and_names(tmp_path: Path) -> None:
    found = split(tmp_path, "\n ab\tcd,  New York \n\ncd e\u0301\n", words("cd"))
    assert [s.sent_id for s in found] == ["1-1", "2-1"] and [s.line for s in found] == [2, 4]
    [sentence] = split(tmp_path, " ab\tcd,  New York \n", words("ab", " ", "cd", ",", " ", "New York"))
    assert sentence.text.startswith("# newpar\n# sent_id = 1-1\n# text = ab cd, New York\n1\tab\t")
    rows = [["1", "ab", "_"], ["2", "cd", "SpaceAfter=No"], ["3", ",", "_"], ["4", "New", "_"], ["5", "York", "_"]]
    assert [[row[0], row[1], row[9]] for row in sentence.rows()] == rows
    [composed] = split(tmp_path, "e\u0301\n", words("\u00e9"))
    assert composed.words.forms == ("\u00e9",)
    assert split(tmp_path, "\u00a0\n", words("\u00a0")) == []
    with pytest.raises(DataError, match=r"in.txt:1: sentence 1: the tokenizer fails on the text \(ValueError: sub"):
        split(tmp_path, "ab\n", words("x"))


def test_names_of_tokenisers(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("spacy", "spacy:", "udpipe:en", ""):
        with pytest.raises(TreeparseError, match=f"A tokenizer must be spacy:LANGUAGE, .*, got '{name}'"):
            tokenizer_named(name)
    for library, extra in (("spacy", r"pip install treeparse\[spacy\]"), ("stanza", "pip install stanza")):
        monkeypatch.setitem(sys.modules, library, None)
        with pytest.raises(TreeparseError, match=f"The tokenizer {library}:en needs .*: {extra}"):
            tokenizer_named(f"{library}:en")


class Stanza:
    """Its interface, as far as it is used, for one Spanish text."""

    def __init__(self, language: str, **options: Any) -> None:
        assert options == {"processors": "tokenize,mwt", "download_method": None, "verbose": False}
        if language != "es":
            raise FileNotFoundError("resources.json")

    def __call__(self, text: str) -> Any:
        assert text == "Dámelo ya. Sí"
        tokens = [(("Da", "me", "lo"), 0, 6), (("ya",), 7, 9), ((".",), 9, 10)]
        return SimpleNamespace(sentences=[self.sentence(tokens), self.sentence([(("Sí",), 11, 13)])])

    @staticmethod
    def sentence(tokens: list[tuple[tuple[str, ...], int, int]]) -> Any:
        return SimpleNamespace(
            tokens=[
                SimpleNamespace(words=[SimpleNamespace(text=word) for word in own], start_char=start, end_char=end)
                for own, start, end in tokens
            ]
        )


def test_stanza_with_multiword_tokens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "stanza", SimpleNamespace(Pipeline=Stanza))
    first, second = split(tmp_path, "Dámelo  ya. Sí\n", tokenizer_named("stanza:es"))
    rows = [[row[0], row[1], row[9]] for row in first.rows()]
    words = [["1", "Da", "_"], ["2", "me", "_"], ["3", "lo", "_"], ["4", "ya", "SpaceAfter=No"], ["5", ".", "_"]]
    assert rows == [["1-3", "Dámelo", "_"], *words]
    assert surface(first) == "Dámelo ya." and second.words.forms == ("Sí",)
    with pytest.raises(TreeparseError, match=r"Stanza cannot load its tokenizer of 'xx' \(FileNotFoundError:"):
        tokenizer_named("stanza:xx")


def test_spacy_by_language_and_by_pipeline(tmp_path: Path) -> None:
    spacy = pytest.importorskip("spacy")
    text = "They didn't  see it. She did!\nYes.\n"
    found = split(tmp_path, text, tokenizer_named("spacy:en"))
    assert [" ".join(s.words.forms) for s in found] == ["They did n't see it .", "She did !", "Yes ."]
    assert [surface(s) for s in found] == ["They didn't see it.", "She did!", "Yes."]
    assert [row[9] for row in found[0].rows()] == ["_", "SpaceAfter=No", "_", "_", "SpaceAfter=No", "_"]
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer", config={"punct_chars": ["!"]})
    nlp.to_disk(tmp_path / "pipeline")
    by_pipeline = split(tmp_path, text, tokenizer_named(f"spacy:{tmp_path}/pipeline"))
    assert [len(s.words) for s in by_pipeline] == [9, 2]
    with pytest.raises(TreeparseError, match="spaCy has no pipeline or language 'xx_nope'"):
        tokenizer_named("spacy:xx_nope")
