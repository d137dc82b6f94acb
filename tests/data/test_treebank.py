"""Treebanks of files and globs, their statistics, and every fault with its file, line and ``sent_id``."""

import gzip
import re
from pathlib import Path

import pytest

from treeparse.data.conllu import ConlluSentence, load_treebank, read_conllu, scan_conllu
from treeparse.data.statistics import TreebankStatistics
from treeparse.data.validation import TreeCheck, possible_head_faults, possible_heads
from treeparse.errors import DataError, TreeparseError


def sentence(sent_id: str, head: int | str = 0) -> bytes:
    return f"# sent_id = {sent_id}\n1\tx\t_\t_\t_\t_\t{head}\troot\t_\t_\n\n".encode()


@pytest.fixture
def folder(tmp_path) -> Path:
    (tmp_path / "b.conllu").write_bytes(sentence("b1") + sentence("b2"))
    (tmp_path / "a.conllu").write_bytes(sentence("a1"))
    (tmp_path / "c.conllu.gz").write_bytes(gzip.compress(sentence("c1") + sentence("c2", "_") + sentence("c3")))
    return tmp_path


def test_files_and_globs_make_one_treebank(folder, monkeypatch):
    monkeypatch.setenv("TREEBANK", str(folder))
    loaded = load_treebank([folder / "b.conllu", "$TREEBANK/*.gz", "$TREEBANK/a*"], require_trees=False)
    assert [each.sent_id for each in loaded] == ["b1", "b2", "c1", "c2", "c3", "a1"]
    assert {Path(each.source).name for each in loaded[2:5]} == {"c.conllu.gz"}


def test_trees_are_required_unless_said_otherwise(folder):
    with pytest.raises(DataError, match=r"c\.conllu\.gz:5: sentence c2: word 1 has no head"):
        load_treebank([folder / "*"])


def test_invalid_sentences_can_be_skipped(folder):
    told: list[DataError] = []
    loaded = load_treebank([folder / "*"], on_invalid=told.append)
    assert [each.sent_id for each in loaded] == ["a1", "b1", "b2", "c1", "c3"]
    assert [fault.sent_id for fault in told] == ["c2"]


def test_several_roots_only_where_allowed(folder):
    path = folder / "roots"
    path.write_bytes(b"1\tx\t_\t_\t_\t_\t0\troot\t_\t_\n2\tx\t_\t_\t_\t_\t0\troot\t_\t_\n")
    with pytest.raises(DataError, match="all hang from the root"):
        load_treebank([path])
    assert load_treebank([path], single_root=False)[0].words.heads == (0, 0)


def test_nothing_left_is_an_error(folder):
    path = folder / "bad"
    path.write_bytes(sentence("bad", "_"))
    with pytest.raises(TreeparseError, match=r"No sentence is valid in .*bad"):
        load_treebank([path], on_invalid=lambda fault: None)
    with pytest.raises(TreeparseError, match="A treebank needs at least one file"):
        load_treebank([])


@pytest.mark.parametrize("kind", [str, Path])
def test_one_path_is_one_path(folder, kind):
    assert [each.sent_id for each in load_treebank(kind(folder / "b.conllu"))] == ["b1", "b2"]
    with pytest.raises(TreeparseError, match=r"there is no file .*absent"):
        load_treebank(kind(folder / "absent"))
    with pytest.raises(TreeparseError, match="A treebank needs at least one file"):
        load_treebank("")


def rows_of(*heads, ranges=(), empty_nodes=()):
    lines = []
    for word, head in enumerate(heads, 1):
        lines += [f"{each}\tx" + "\t_" * 8 for each in ranges if each.startswith(f"{word}-")]
        lines.append(f"{word}\tx" + "\t_" * 4 + f"\t{head}\t{'dep' if head else 'root'}\t_\t_")
        lines += [f"{each}\tx" + "\t_" * 8 for each in empty_nodes if each.startswith(f"{word}.")]
    return "\n".join([*lines, "", ""])


@pytest.fixture
def count(tmp_path):
    def count(*sentences):
        path = tmp_path / "treebank.conllu"
        path.write_text("".join(sentences))
        return TreebankStatistics.of(read_conllu(path))

    return count


PROJECTIVE = rows_of(2, 0, 2, ranges=["1-2"], empty_nodes=["3.1", "3.2"])
CROSSING = rows_of(3, 0, 2, 3, 2)  # 3 -> 1 spans word 2, its head
TWO_ROOTS = rows_of(0, 0)
CYCLE = rows_of(2, 1, 0, 1)
NO_TREE = rows_of("_")


def test_counts_by_hand(count):
    counted = count(PROJECTIVE, CROSSING, TWO_ROOTS, CYCLE, NO_TREE)
    assert counted.sentences == 5
    assert counted.words == 3 + 5 + 2 + 4 + 1
    assert (counted.multiword_tokens, counted.empty_nodes) == (1, 2)
    assert (counted.trees, counted.arcs, counted.roots) == (3, 10, 4)
    assert (counted.nonprojective_sentences, counted.nonprojective_arcs) == (1, 1)
    assert counted.lengths == {1: 1, 2: 1, 3: 1, 4: 1, 5: 1}
    assert counted.labels == {"root": 5, "dep": 10}
    assert counted.length_summary == {"min": 1, "median": 3, "mean": 3, "max": 5}


def test_parts_add_up(count):
    parts = count(PROJECTIVE, TWO_ROOTS) + count(CROSSING, CYCLE, TWO_ROOTS)
    assert parts == count(PROJECTIVE, TWO_ROOTS, CROSSING, CYCLE, TWO_ROOTS)
    assert parts.length_summary["median"] == 3


def test_json_has_labels_by_frequency(count):
    values = count(PROJECTIVE, CROSSING).to_json()
    assert list(values["labels"].items()) == [("dep", 6), ("root", 2)]
    assert values["lengths"] == {"min": 3, "median": 4, "mean": 4, "max": 5}
    assert values["nonprojective_arcs"] == 1


def test_nothing_counts_nothing():
    assert TreebankStatistics.of([]) == TreebankStatistics()
    assert TreebankStatistics().to_json()["lengths"] == {}


GOOD = b"# sent_id = good\n1\tyes\t_\t_\t_\t_\t0\troot\t_\t_\n\n"  # three lines


def row(identifier: int | str, head: int | str = "_", label: str = "_", form: str = "x") -> str:
    return f"{identifier}\t{form}\t_\t_\t_\t_\t{head}\t{label}\t_\t_"


def lines(*rows: str) -> bytes:
    return "\n".join(["# sent_id = bad", *rows, "", ""]).encode()


def read_bytes(folder: Path, data: bytes, **options) -> list[ConlluSentence]:
    (folder / "file.conllu").write_bytes(data)
    return list(read_conllu(folder / "file.conllu", **options))


def word_lines(*heads: int | str) -> bytes:
    return lines(*(row(word, head, "dep") for word, head in enumerate(heads, 1)))


# The sentence, the line of the fault, and what the message says.
STRUCTURAL = {
    "missing column": (lines(row(1, 0), row(2, 1).removesuffix("\t_")), 6, "a line must have 10 columns, got 9: separ"),
    "spaces for tabs": (lines(row(1, 0).replace("\t", "  ")), 5, "a line must have 10 columns, got 1: separate them"),
    "text": (lines("They saw her."), 5, "single tabs; is this text? To parse it, give --format text, and to"),
    "column too many": (lines(row(1, 0) + "\tx"), 5, "a line must have 10 columns, got 11: separate them"),
    "empty column": (lines(row(1, 0, form="")), 5, "the column FORM must not be empty; write a missing value as _"),
    "repeated word": (lines(row(1, 0), row(1, 0)), 6, "the ID must be 2, the next word, got '1'"),
    "first word 2": (lines(row(2, 0)), 5, "the ID must be 1, the next word, got '2'"),
    "leading zero": (lines(row("01", 0)), 5, "the ID must be 1, the next word, got '01'"),
    "escape sequence": (lines(row("\x1b[2J", 0)), 5, r"the ID must be 1, the next word, got '\x1b[2J'"),
    "range behind its word": (lines(row(1, 0), row("1-2"), row(2, 1)), 6, "1-2 is out of place: the next word is 2"),
    "range too early": (lines(row("2-3"), *map(row, (1, 2, 3))), 5, "2-3 is out of place: the next word is 1"),
    "overlapping ranges": (
        lines(row("1-2"), row(1, 0), row("2-3"), row(2, 1), row(3, 1)),
        7,
        "the range 2-3 overlaps the range before it, which ends at word 2",
    ),
    "range backwards": (lines(row(1, 0), row("2-1"), row(2, 1)), 6, "the range 2-1 runs backwards"),
    "range beyond the end": (lines(row("1-3"), row(1, 0), row(2, 1)), 5, "ends at word 3, but the last word is 2"),
    "empty node too early": (lines(row("1.1"), row(1, 0)), 5, "1.1 is out of place: the next one here is 0.1"),
    "empty node skipped": (lines(row(1, 0), row("1.2")), 6, "1.2 is out of place: the next one here is 1.1"),
    "comment inside": (lines(row(1, 0), "# text = x"), 6, "before the first word; is the empty line between two"),
    "carriage return alone": (lines(row(1, 0), "\r\r", row(2, 1)), 6, "a line must have 10 columns, got 1"),
    "lists": (lines('{"sent_id": "a"}'), 5, "single tabs; is this JSON Lines? To read lists, give --format jsonl, or"),
    "comments only": (lines(), 4, "the sentence has no words; is this text?"),
    "invalid UTF-8": (lines(row(1, 0)).replace(b"x", b"caf\xe9"), 5, "byte 6 of the line (0xe9) is not valid UTF-8"),
}
OF_TREES = {
    "no head": (word_lines(0, "_", 1), 6, "word 2 has no head (HEAD is _)"),
    "head no number": (word_lines(0, "x"), 6, "the head of word 2 must be a number, got 'x'"),
    "head in Arabic digits": (word_lines(0, "\u0661"), 6, "the head of word 2 must be a number, got '\u0661'"),
    "head of too many digits": (word_lines(0, "9" * 5000), 6, f"of word 2 must be a number, got '{'9' * 39}…'"),
    "head too large": (word_lines(0, 1, 4), 7, "the head of word 3 must be from 0 to 3, got 4"),
    "head negative": (word_lines(0, -1), 6, "the head of word 2 must be from 0 to 2, got -1"),
    "no root": (word_lines(2, 1), 5, "no word hangs from the root (HEAD 0)"),
    "two roots": (word_lines(0, 1, 0), 7, "words 1, 3 all hang from the root, but a tree has one root"),
    "cycle": (word_lines(0, 3, 2, 3), 6, "the heads of words 2, 3, 4 lead into a cycle, never to the root"),
    "own head": (word_lines(0, 2), 6, "the heads of words 2 lead into a cycle, never to the root"),
}


@pytest.mark.parametrize("name", STRUCTURAL)
def test_structural_fault_is_named_with_and_without_trees(tmp_path, name):
    for require_trees in (False, True):
        check_fault(tmp_path, *STRUCTURAL[name], require_trees=require_trees)


@pytest.mark.parametrize("name", OF_TREES)
def test_fault_of_a_tree_is_named_where_trees_are_required(tmp_path, name):
    bad, line, problem = OF_TREES[name]
    check_fault(tmp_path, bad, line, problem, require_trees=True)
    (sentence,) = read_bytes(tmp_path, bad)
    assert sentence.text.encode() == bad


def check_fault(folder, bad, line, problem, *, require_trees):
    """The reader raises between the good sentences, or tells the fault and goes on."""
    told: list[DataError] = []
    kept = read_bytes(folder, GOOD + bad + GOOD, require_trees=require_trees, on_invalid=told.append)
    [fault] = told
    assert str(fault).startswith(f"{folder / 'file.conllu'}:{line}: sentence bad: ") and problem in str(fault)
    assert [sentence.line for sentence in kept] == [1, 4 + bad.count(b"\n")]

    sentences = read_conllu(folder / "file.conllu", require_trees=require_trees)
    assert next(sentences).sent_id == "good"
    with pytest.raises(DataError, match=f"^{re.escape(str(fault))}$"):
        next(sentences)


def test_several_roots_can_be_allowed(tmp_path):
    (sentence,) = read_bytes(tmp_path, word_lines(0, 1, 0), require_trees=True, single_root=False)
    assert sentence.words.heads == (0, 1, 0)


def test_cycle_beside_several_allowed_roots_is_found(tmp_path):
    with pytest.raises(DataError, match=r"conllu:4: .* the heads of words 3, 4 lead into a cycle"):
        read_bytes(tmp_path, word_lines(0, 0, 4, 3), require_trees=True, single_root=False)


@pytest.mark.parametrize("data", [b"", b"\r\n\n\r", b"\xef\xbb\xbf\n"])
def test_file_without_a_sentence(tmp_path, data):
    with pytest.raises(DataError, match=r"file\.conllu: the file holds no sentence$"):
        read_bytes(tmp_path, data)
    told: list[DataError] = []
    assert read_bytes(tmp_path, data, on_invalid=told.append) == []
    assert [fault.problem for fault in told] == ["the file holds no sentence"]


def test_sentence_without_id_is_found_by_its_line(tmp_path):
    with pytest.raises(DataError, match=r"file\.conllu:2: word 2 has no head"):
        read_bytes(tmp_path, word_lines(0, "_").removeprefix(b"# sent_id = bad\n"), require_trees=True)


def test_lines_are_counted_with_carriage_returns_and_blank_lines_before(tmp_path):
    with pytest.raises(DataError, match=r"conllu:5: sentence bad: word 2 has no head"):
        read_bytes(tmp_path, b"\r\n\n" + word_lines(0, "_").replace(b"\n", b"\r\n"), require_trees=True)


def test_scan_finds_all_the_faults_of_a_sentence(tmp_path):
    path = tmp_path / "file.conllu"
    first = lines(row("1-3"), row(1), row(3).replace("\t_", "\t", 1), "# no")
    path.write_bytes(first + word_lines("_", 7, 0) + GOOD + b"\xff\n\xfe\n")
    for check, of_tree in ((None, 0), (TreeCheck(), [8, 9])):
        found = [
            [fault.line for fault in result] if isinstance(result, tuple) else 0 for result in scan_conllu(path, check)
        ]
        assert found == [[4, 5], of_tree, 0, [15, 16]]


def test_possible_heads_by_hand() -> None:
    column = ["_", "Heads=2,5", "SpaceAfter=No|Heads=0", "Gloss=xHeads=3"]
    assert possible_heads(column) == ((), (2, 5), (0,), ())
    assert possible_heads(["_", "Gloss=a"]) is None


@pytest.mark.parametrize(
    ("misc", "head", "problem"),
    [
        ("Heads=2,x", -1, "write the possible heads of word 1 once, as Heads=2,5, not 'Heads=2,x'"),
        ("Heads=0|Heads=2", -1, "write the possible heads of word 1 once, as Heads=2,5, not 'Heads=0|Heads=2'"),
        ("Heads=2,4", -1, "word 1 may have the heads 2,4, one of which is no other node of the sentence"),
        ("Heads=1", -1, "word 1 may have the heads 1, one of which is no other node of the sentence"),
        ("Heads=0,3", 2, "word 1 has head 2, which is not among its possible heads 0,3"),
    ],
)
def test_possible_heads_that_cannot_be(misc: str, head: int, problem: str) -> None:
    [(line, found)] = possible_head_faults([misc, "_", "Heads=1"], [head, 0, -1], [7, 8, 9])
    assert line == 7
    assert found.startswith(problem)


def test_possible_heads_are_read_where_trees_may_be_partial(tmp_path: Path) -> None:
    path = tmp_path / "some.conllu"
    rows = [("_", "Heads=0,2"), ("1", "_"), ("_", "_")]
    lines = [f"{n}\tw\t_\t_\t_\t_\t{head}\t_\t_\t{misc}" for n, (head, misc) in enumerate(rows, 1)]
    path.write_text("\n".join(lines) + "\n\n", encoding="utf-8")
    [sentence] = load_treebank(path, partial=True)
    assert (sentence.words.heads, sentence.words.allowed) == ((-1, 1, -1), ((0, 2), (), ()))
    [plain] = load_treebank(path, require_trees=False)
    assert plain.words.allowed is None
    path.write_text(path.read_text().replace("Heads=0,2", "Heads=0,7"), encoding="utf-8")
    with pytest.raises(DataError, match=r"some.conllu:1: word 1 may have the heads 0,7"):
        load_treebank(path, partial=True)
