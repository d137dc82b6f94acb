"""Raw text by other libraries' tokenisers: whatever they give becomes valid CoNLL-U that holds the whole text."""

import random
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from helpers.parsed_files import incidents, written

from treeparse.data.conllu import ConlluSentence, read_conllu, write_conllu
from treeparse.data.raw_text import Token, Tokenizer, tokenised, tokenizer_named
from treeparse.data.tokenised import read_text
from treeparse.errors import DataError, TreeparseError


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
