"""Every fault, with the file, the line, the ``sent_id`` and the sentence that names it."""

import re
from pathlib import Path

import pytest

from treeparse.data import load_treebank
from treeparse.data.conllu import ConlluSentence, read_conllu, scan_conllu
from treeparse.data.validation import TreeCheck, possible_head_faults, possible_heads
from treeparse.errors import DataError

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
