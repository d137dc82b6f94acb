import gzip
import os
import random
import sys
import unicodedata
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import conllu
import pytest

from treeparse.data.conllu import ConlluSentence, read_conllu, write_conllu
from treeparse.data.files import MAX_LINE
from treeparse.data.tokenised import read_text
from treeparse.errors import DataError

TRICKY = (
    "# newdoc id = d-1\n"
    "# global.columns = ID FORM LEMMA UPOS XPOS FEATS HEAD DEPREL DEPS MISC\n"
    "#sent_id=tricky/1 = a \n"
    "# text = Dámelo  ya, 10 000 # veces\n"
    "# text = a comment key twice\n"
    "#\n"
    "0.1\tPro\t_\tPRON\t_\t_\t_\t_\t1:nsubj\tCopyOf=-1\n"
    "1-3\tDa\u0301melo\t_\t_\t_\tTypo=Yes\t_\t_\t_\tSpaceAfter=No|Translit=a=b=c\n"
    "1\tda\tdar\tVERB\tV\tMood=Imp|Number=Sing\t0\troot\t0:root\t_\n"
    "2\tme\tyo\tPRON\t_\t_\t1\tiobj\t1:iobj|5:nsubj\t_\n"
    "3\tlo\tél\tPRON\t_\t_\t1\tobj\t1:obj\t_\n"
    "4\t#\t#\tSYM\t_\t_\t1\tpunct\t1:punct\t_\n"
    "5-5\t10  000\t_\t_\t_\t_\t_\t_\t_\t_\n"
    "5\t10  000\t10\u00a0000\tNUM\t_\t_\t1\tnummod:x\t1:nummod\t\u2028\x85\x0b\n"
    "5.1\tda\tdar\tVERB\t_\t_\t_\t_\t1:conj>7\t_\n"
    "5.2\tno\t_\tADV\t_\t_\t_\t_\t5.1:advmod\t\ufffd\n"
    "\n"
)
TRICKY_FORMS = ("da", "me", "lo", "#", "10  000")


def read_bytes(folder: Path, data: bytes, **options) -> list[ConlluSentence]:
    path = folder / "file.conllu"
    path.write_bytes(data)
    return list(read_conllu(path, **options))


def variants(text: str) -> dict[str, bytes]:
    """The same sentences under the line ends, marks and blank lines that files come with."""
    return {
        "plain": text.encode(),
        "crlf": text.replace("\n", "\r\n").encode(),
        "mixed": text.replace("\n", "\r\n", 5).encode(),
        "byte order mark": ("\ufeff" + text).encode(),
        "byte order mark and blank line": ("\ufeff\r\n" + text + "\r").encode(),
        "no last blank line": text.removesuffix("\n").encode(),
        "no last line end": text.rstrip("\n").encode(),
        "blank lines around": ("\n\r\n" + text + "\n\n" + text + "\r\n\n").encode(),
    }


@pytest.mark.parametrize("name", variants(""))
def test_tricky_sentence_comes_back_byte_for_byte(tmp_path, name):
    data = variants(TRICKY)[name]
    sentences = read_bytes(tmp_path, data, require_trees=True)
    assert "".join(sentence.text for sentence in sentences).encode() == data
    for sentence in sentences:
        assert sentence.sent_id == "tricky/1 = a"
        assert sentence.words.forms == TRICKY_FORMS
        assert sentence.words.upos == ("VERB", "PRON", "PRON", "SYM", "NUM")
        assert sentence.words.xpos == ("V", "_", "_", "_", "_")
        assert sentence.words.feats == ("Mood=Imp|Number=Sing", "_", "_", "_", "_")
        assert sentence.words.heads == (0, 1, 1, 1, 1)
        assert sentence.words.labels == ("root", "iobj", "obj", "punct", "nummod:x")


@pytest.mark.parametrize("drop_empty", [False, True])
@pytest.mark.parametrize("name", variants(""))
def test_parse_changes_head_deprel_and_deps_of_words_alone(tmp_path, name, drop_empty):
    parsed = (
        TRICKY.replace("\t0\troot\t0:root\t", "\t2\tdep\t_\t")
        .replace("\t1\tiobj\t1:iobj|5:nsubj\t", "\t0\troot\t_\t")
        .replace("\t1\tobj\t1:obj\t", "\t2\tx:y\t_\t")
        .replace("\t1\tpunct\t1:punct\t", "\t5\tpunct\t_\t")
        .replace("\t1\tnummod:x\t1:nummod\t", "\t2\tdep\t_\t")
    )
    if drop_empty:
        parsed = "".join(line for line in parsed.splitlines(keepends=True) if not line.startswith(("0.", "5.1", "5.2")))
        parsed = "".join(line + "\n" for line in parsed.removesuffix("\n").split("\n"))
    heads, labels = (2, 0, 2, 5, 2), ("dep", "root", "x:y", "punct", "dep")
    sentences = read_bytes(tmp_path, variants(TRICKY)[name])
    changed = [sentence.with_parse(heads, labels, drop_empty=drop_empty) for sentence in sentences]
    assert "".join(sentence.text for sentence in changed).encode() == variants(parsed)[name]
    assert all((sentence.words.heads, sentence.words.labels) == (heads, labels) for sentence in changed)
    assert [sentence.words.heads for sentence in sentences] == [(0, 1, 1, 1, 1)] * len(sentences)


def test_dropping_the_empty_node_that_ends_a_file_without_line_end(tmp_path):
    data = b"1\tx\t_\t_\t_\t_\t_\t_\t_\t_\n1.1\ty\t_\t_\t_\t_\t_\t_\t_\t_"
    (sentence,) = read_bytes(tmp_path, data)
    assert sentence.with_parse([0], ["root"], drop_empty=True).text == "1\tx\t_\t_\t_\t_\t0\troot\t_\t_"


def test_parse_of_another_length_is_refused(tmp_path):
    (sentence,) = read_bytes(tmp_path, TRICKY.encode())
    with pytest.raises(ValueError, match="got 2 heads and 5 labels for 5 words"):
        sentence.with_parse([0, 1], ["root"] * 5)


def test_rows_are_all_lines_but_comments(tmp_path):
    (sentence,) = read_bytes(tmp_path, variants(TRICKY)["crlf"])
    expected = [line.split("\t") for line in TRICKY.split("\n") if line and not line.startswith("#")]
    assert sentence.rows() == expected
    assert all(len(columns) == 10 for columns in expected)


def test_unknown_heads_are_read_for_prediction(tmp_path):
    heads = ["_", "0", "3", "4", "-1", "x", "\u0661", "01"]
    data = "".join(f"{word}\tx\t_\t_\t_\t_\t{head}\t_\t_\t_\n" for word, head in enumerate(heads, 1)) + "\n"
    (sentence,) = read_bytes(tmp_path, data.encode())
    assert sentence.words.heads == (-1, 0, 3, 4, -1, -1, -1, -1)
    assert sentence.words.labels == ("_",) * 8
    assert sentence.text == data


def test_no_normalisation_and_every_line_has_its_number(tmp_path):
    form = unicodedata.normalize("NFD", "é")
    first = f"# c\n1\t{form}\t_\t_\t_\t_\t_\t_\t_\t_\n\n"
    sentences = read_bytes(tmp_path, f"\n{first}\n{first}".encode())
    assert [sentence.words.forms for sentence in sentences] == [(form,)] * 2
    assert [sentence.line for sentence in sentences] == [2, 6]
    assert [sentence.sent_id for sentence in sentences] == [None, None]
    assert {sentence.source for sentence in sentences} == {str(tmp_path / "file.conllu")}


def test_standard_input_is_read_no_further_than_needed(monkeypatch):
    taken = []

    def stream():
        for number, line in enumerate(TRICKY.encode().splitlines(keepends=True) * 3):
            taken.append(number)
            yield line

    lines = stream()
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=SimpleNamespace(readline=lambda _: next(lines))))
    sentences = read_conllu("-")
    assert next(sentences).source == "<stdin>"
    assert len(taken) == TRICKY.count("\n") + 1


@pytest.mark.parametrize("name", ["out.conllu", "out.conllu.gz"])
def test_written_sentences_are_read_again(tmp_path, name):
    data = variants(TRICKY)["crlf"] * 2
    write_conllu(tmp_path / name, read_bytes(tmp_path, data))
    written = (tmp_path / name).read_bytes()
    assert (gzip.decompress(written) if name.endswith(".gz") else written) == data
    assert "".join(sentence.text for sentence in read_conllu(tmp_path / name)).encode() == data


def test_sentences_of_several_files_stay_apart(tmp_path):
    word = b"1\tx\t_\t_\t_\t_\t_\t_\t_\t_"
    sentences = [read_bytes(tmp_path, word + end)[0] for end in (b"", b"\n", b"\n\n", b"\r\n", b"\r\n\r\n", b"")]
    write_conllu(tmp_path / "out", sentences)
    expected = word + b"\n\n" + word + b"\n\n" + word + b"\n\n" + word + b"\r\n\n" + word + b"\r\n\r\n" + word
    assert (tmp_path / "out").read_bytes() == expected
    assert len(list(read_conllu(tmp_path / "out"))) == 6


def test_sentence_from_forms():
    sentence = ConlluSentence.from_forms(["New York", "#1"], sent_id="s1")
    assert sentence.text == (
        "# sent_id = s1\n# text = New York #1\n1\tNew York\t_\t_\t_\t_\t_\t_\t_\t_\n2\t#1\t_\t_\t_\t_\t_\t_\t_\t_\n\n"
    )
    assert sentence.words.heads == (-1, -1)
    parsed = sentence.with_parse([0, 1], ["root", "flat"])
    assert parsed.text.endswith("\n1\tNew York\t_\t_\t_\t_\t0\troot\t_\t_\n2\t#1\t_\t_\t_\t_\t1\tflat\t_\t_\n\n")


@pytest.mark.parametrize("forms", [[], ["a", ""], ["a\tb"], ["a\nb"], ["a\rb"]])
def test_forms_that_cannot_be_written_are_refused(forms):
    with pytest.raises(DataError, match=r"<forms>:1: a form must have a character, and no tab"):
        ConlluSentence.from_forms(forms)


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
def test_comments_with_line_breaks_are_refused(end):
    value = f"x{end}1\tb\t_\t_\t_\t_\t0\troot\t_\t_"
    with pytest.raises(DataError, match=r"<forms>:1: the text must have no line break"):
        ConlluSentence.from_forms(["a"], text=value)
    with pytest.raises(DataError, match=r"<forms>:1: the sent_id must have no line break"):
        ConlluSentence.from_forms(["a"], sent_id=value)


@pytest.mark.parametrize("value", ["", "a\tb", "a\nb", "a\rb"])
def test_labels_and_tags_that_cannot_be_written_are_refused(value):
    sentence = ConlluSentence.from_forms(["a", "b"])
    for name, labels, tags in (("label", ["root", value], {}), ("xpos", ["root", "x"], {"xpos": [value, "X"]})):
        with pytest.raises(ValueError, match=f"A {name} must have a character, and no tab or line break"):
            sentence.with_parse([0, 1], labels, tags=tags)


ONE_WORD = "1\tx\t_\t_\t_\t_\t0\troot\t_\t_\n\n"


@pytest.mark.parametrize("start", ["\ufeff", "\ufeff# c\n", "# c\n\ufeff", "\ufeff\n"])
def test_byte_order_mark_of_a_second_file_is_a_fault(tmp_path, start):
    """Two files joined: the mark was taken for a part of a column, or was lost in writing."""
    joined = "\ufeff" + ONE_WORD + start + ONE_WORD
    line = 1 + joined[: joined.rindex("\ufeff")].count("\n")
    found = []
    kept = read_bytes(tmp_path, joined.encode(), on_invalid=found.append)
    assert [fault.line for fault in found] == [line]
    assert found[0].problem.startswith("the line begins with a byte order mark, which only a file may begin with")
    assert all("\ufeff" not in sentence.text[1:] for sentence in kept)


def test_byte_order_mark_within_a_column_stays(tmp_path):
    """There it is a space of no width, as old texts have them."""
    data = ONE_WORD.replace("x", "a\ufeffb").replace("\troot", "\t\ufeffroot")
    (sentence,) = read_bytes(tmp_path, data.encode())
    assert sentence.words.forms == ("a\ufeffb",)
    assert sentence.text == data


@pytest.mark.parametrize(("read", "start"), [(read_conllu, ONE_WORD), (read_text, "x\n\n")])
def test_line_that_never_ends_is_named(tmp_path, read, start):
    path = tmp_path / "zeros"
    path.write_bytes(start.encode() + bytes(MAX_LINE + 1))
    with pytest.raises(DataError, match=r"zeros:3: a line must be at most 8 MiB long; is this a text file\?"):
        list(read(path))


@pytest.mark.parametrize("line", [b"1\tx\n", b"\n", b"# c\n"])
def test_sentence_that_never_ends_is_named(monkeypatch, line):
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=SimpleNamespace(readline=lambda _: line * 10_000)))
    with pytest.raises(DataError, match=r"<stdin>:1: the sentence has more than 16 MiB; is the empty line after it"):
        list(read_conllu("-"))


def test_sentence_below_the_limits_is_read(tmp_path):
    comment = "#" + "x" * (MAX_LINE - 2) + "\n"
    (sentence,) = read_bytes(tmp_path, (comment + ONE_WORD).encode())
    assert sentence.text == comment + ONE_WORD


@dataclass
class RandomSentence:
    """A random sentence with the lines that it must have under any heads and labels."""

    random: random.Random
    alphabet: str = "aé\u0301ßжπ漢😀#-.,=|/\\'\""
    spaces: str = " \u00a0\u2028\x85\x0b\x1c"
    lines: list[str] = field(default_factory=list)
    heads: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.count = self.random.randint(1, 12)
        self.heads = self._tree()
        self.labels = [self.random.choice(["nsubj", "obj", "acl:relcl"]) if head else "root" for head in self.heads]
        self.forms = [self._string() for _ in self.heads]
        self.comments = [f"#{self._string()}" for _ in range(self.random.randint(0, 3))]
        self.layout = self._layout()

    def _string(self) -> str:
        inner = "".join(self.random.choices(self.alphabet + self.spaces, k=self.random.randint(0, 5)))
        return self.random.choice(self.alphabet) + inner + self.random.choice(self.alphabet)

    def _tree(self) -> list[int]:
        order = self.random.sample(range(1, self.count + 1), self.count)
        heads = [0] * self.count
        for place, word in enumerate(order[1:], 1):
            heads[word - 1] = self.random.choice(order[:place])
        return heads

    def _layout(self) -> list[list[str]]:
        """The columns of all lines, HEAD, DEPREL and DEPS of words left open."""
        rows, covered = [], 0
        for word in range(self.count + 1):
            if word > covered and self.random.random() < 0.2:
                covered = self.random.randint(word, self.count)
                rows.append([f"{word}-{covered}", *[self._string() for _ in range(9)]])
            if word:
                rows.append([str(word), self.forms[word - 1], *[self._string() for _ in range(4)], "", "", "", "x"])
            for position in range(self.random.choice([0, 0, 0, 1, 2])):
                rows.append([f"{word}.{position + 1}", *[self._string() for _ in range(9)]])
        return rows

    def render(self, heads, labels, deps="_", end="\n", drop_empty=False) -> str:
        lines = list(self.comments)
        for columns in self.layout:
            if columns[0].isdecimal():
                word = int(columns[0])
                columns = [*columns[:6], str(heads[word - 1]), labels[word - 1], deps, columns[9]]
            if not (drop_empty and "." in columns[0]):
                lines.append("\t".join(columns))
        return end.join([*lines, "", ""])


@pytest.mark.parametrize("seed", range(10))
def test_random_sentences_come_back(tmp_path, seed):
    generator = random.Random(seed)
    expected = [RandomSentence(generator) for _ in range(30)]
    ends = [generator.choice(["\n", "\r\n"]) for _ in expected]
    texts = [each.render(each.heads, each.labels, "x:y", end) for each, end in zip(expected, ends, strict=True)]
    sentences = read_bytes(tmp_path, "".join(texts).encode(), require_trees=True)
    assert [sentence.text for sentence in sentences] == texts
    for sentence, each, end in zip(sentences, expected, ends, strict=True):
        assert list(sentence.words.forms) == each.forms
        assert list(sentence.words.heads or ()) == each.heads
        assert list(sentence.words.labels or ()) == each.labels
        heads, labels = each._tree(), [each._string() for _ in each.heads]
        for drop_empty in (False, True):
            changed = sentence.with_parse(heads, labels, drop_empty=drop_empty)
            assert changed.text == each.render(heads, labels, end=end, drop_empty=drop_empty)


def test_the_conllu_library_reads_the_same(tmp_path):
    generator = random.Random(0)
    alphabet = "aé\u0301ßжπ漢😀"  # the library splits forms at double spaces and reads structure into other columns
    expected = [RandomSentence(generator, alphabet=alphabet, spaces="b") for _ in range(200)]
    data = "".join(each.render(each.heads, each.labels) for each in expected)
    sentences = read_bytes(tmp_path, data.encode())
    fields = ["id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc"]
    as_text = {name: lambda line, i: line[i] for name in fields[5:]}
    for sentence, other in zip(sentences, conllu.parse(data, fields=fields, field_parsers=as_text), strict=True):
        words = [token for token in other if isinstance(token["id"], int)]
        assert sentence.words.forms == tuple(token["form"] for token in words)
        assert sentence.words.upos == tuple(token["upos"] for token in words)
        assert sentence.words.heads == tuple(int(token["head"]) for token in words)
        assert sentence.words.labels == tuple(token["deprel"] for token in words)
        assert len(sentence.rows()) == len(other)


def treebank_files() -> list[Path]:
    folder = os.environ.get("TREEPARSE_TREEBANKS")
    return sorted(Path(folder).glob("*/*.conllu")) if folder else []


@pytest.mark.treebank
@pytest.mark.skipif(not treebank_files(), reason="TREEPARSE_TREEBANKS names no treebanks")
def test_treebanks_come_back_byte_for_byte(tmp_path):
    for path in treebank_files():
        out = tmp_path / "out.conllu"
        write_conllu(out, read_conllu(path, require_trees=True))
        assert out.read_bytes() == path.read_bytes()
