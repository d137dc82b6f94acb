"""Every fault, with the file, the line, the ``sent_id`` and the sentence that names it."""

from pathlib import Path

import pytest

from treeparse.data import load_treebank
from treeparse.data.conllu import read_conllu, scan_conllu
from treeparse.data.validation import TreeCheck, possible_head_faults, possible_heads
from treeparse.errors import DataError

GOOD = b"# sent_id = good\n1\tyes\t_\t_\t_\t_\t0\troot\t_\t_\n\n"  # three lines


def row(identifier: int | str, head: int | str = "_", label: str = "_", form: str = "x") -> str:
    return f"{identifier}\t{form}\t_\t_\t_\t_\t{head}\t{label}\t_\t_"


def lines(*rows: str) -> bytes:
    return "\n".join(["# sent_id = bad", *rows, "", ""]).encode()


def word_lines(*heads: int | str) -> bytes:
    return lines(*(row(word, head, "dep") for word, head in enumerate(heads, 1)))


STRUCTURAL = {
    "missing column": (
        lines(row(1, 0), row(2, 1).removesuffix("\t_")),
        6,
        "a line must have 10 columns, got 9: separate them by single tabs",
    ),
    "spaces for tabs": (
        lines(row(1, 0).replace("\t", "  ")),
        5,
        "a line must have 10 columns, got 1: separate them by single tabs",
    ),
    "column too many": (
        lines(row(1, 0) + "\tx"),
        5,
        "a line must have 10 columns, got 11: separate them by single tabs",
    ),
    "empty column": (lines(row(1, 0, form="")), 5, "the column FORM must not be empty; write a missing value as _"),
    "skipped word": (lines(row(1, 0), row(3, 1)), 6, "the ID must be 2, the next word, got '3'"),
    "repeated word": (lines(row(1, 0), row(1, 0)), 6, "the ID must be 2, the next word, got '1'"),
    "first word 2": (lines(row(2, 0)), 5, "the ID must be 1, the next word, got '2'"),
    "no number": (lines(row("x", 0)), 5, "the ID must be 1, the next word, got 'x'"),
    "leading zero": (lines(row("01", 0)), 5, "the ID must be 1, the next word, got '01'"),
    "escape sequence": (lines(row("\x1b[2J", 0)), 5, r"the ID must be 1, the next word, got '\x1b[2J'"),
    "range behind its word": (
        lines(row(1, 0), row("1-2"), row(2, 1)),
        6,
        "the range 1-2 is out of place: the next word is 2",
    ),
    "range too early": (
        lines(row("2-3"), row(1, 0), row(2, 1), row(3, 1)),
        5,
        "the range 2-3 is out of place: the next word is 1",
    ),
    "overlapping ranges": (
        lines(row("1-2"), row(1, 0), row("2-3"), row(2, 1), row(3, 1)),
        7,
        "the range 2-3 overlaps the range before it, which ends at word 2",
    ),
    "range backwards": (lines(row(1, 0), row("2-1"), row(2, 1)), 6, "the range 2-1 runs backwards"),
    "range beyond the end": (
        lines(row("1-3"), row(1, 0), row(2, 1)),
        5,
        "the range ends at word 3, but the last word is 2",
    ),
    "empty node too early": (
        lines(row("1.1"), row(1, 0)),
        5,
        "the empty node 1.1 is out of place: the next one here is 0.1",
    ),
    "empty node skipped": (
        lines(row(1, 0), row("1.2")),
        6,
        "the empty node 1.2 is out of place: the next one here is 1.1",
    ),
    "empty node repeated": (
        lines(row(1, 0), row("1.1"), row("1.1")),
        7,
        "the empty node 1.1 is out of place: the next one here is 1.2",
    ),
    "comment inside": (
        lines(row(1, 0), "# text = x"),
        6,
        "a comment must be before the first word; is the empty line between two sentences missing?",
    ),
    "carriage return alone": (
        lines(row(1, 0), "\r\r", row(2, 1)),
        6,
        "a line must have 10 columns, got 1: separate them by single tabs",
    ),
    "comments only": (lines(), 4, "the sentence has no words"),
    "invalid UTF-8": (
        lines(row(1, 0), row(2, 1, form="caf@")).replace(b"@", b"\xe9"),
        6,
        "byte 6 of the line (0xe9) is not valid UTF-8: convert the file, for example by iconv -f ENCODING -t UTF-8",
    ),
    "UTF-8 of a surrogate": (
        lines(row(1, 0, form="@")).replace(b"@", b"\xed\xa0\x80"),
        5,
        "byte 3 of the line (0xed) is not valid UTF-8: convert the file, for example by iconv -f ENCODING -t UTF-8",
    ),
}
OF_TREES = {
    "no head": (word_lines(0, "_", 1), 6, "word 2 has no head (HEAD is _)"),
    "head no number": (word_lines(0, "x"), 6, "the head of word 2 must be a number, got 'x'"),
    "head in Arabic digits": (word_lines(0, "\u0661"), 6, "the head of word 2 must be a number, got '\u0661'"),
    "head of too many digits": (
        word_lines(0, "9" * 5000),
        6,
        f"the head of word 2 must be a number, got '{'9' * 39}…'",
    ),
    "head too large": (word_lines(0, 1, 4), 7, "the head of word 3 must be from 0 to 3, got 4"),
    "head negative": (word_lines(0, -1), 6, "the head of word 2 must be from 0 to 2, got -1"),
    "no root": (word_lines(2, 1), 5, "no word hangs from the root (HEAD 0)"),
    "two roots": (word_lines(0, 1, 0), 7, "words 1, 3 all hang from the root, but a tree has one root"),
    "cycle": (word_lines(0, 3, 2, 3), 6, "the heads of words 2, 3, 4 lead into a cycle, never to the root"),
    "own head": (word_lines(0, 2), 6, "the heads of words 2 lead into a cycle, never to the root"),
}


@pytest.mark.parametrize("require_trees", [False, True])
@pytest.mark.parametrize("name", STRUCTURAL)
def test_structural_fault(tmp_path, name, require_trees):
    check_fault(tmp_path, *STRUCTURAL[name], require_trees=require_trees)


@pytest.mark.parametrize("name", OF_TREES)
def test_fault_of_a_tree(tmp_path, name):
    check_fault(tmp_path, *OF_TREES[name], require_trees=True)


def check_fault(folder, bad, line, problem, *, require_trees):
    path = folder / "file.conllu"
    path.write_bytes(GOOD + bad + GOOD)
    message = f"{path}:{line}: sentence bad: {problem}"
    sentences = read_conllu(path, require_trees=require_trees)
    assert next(sentences).sent_id == "good"
    with pytest.raises(DataError) as caught:
        next(sentences)
    assert str(caught.value) == message

    told: list[DataError] = []
    kept = [sentence.line for sentence in read_conllu(path, require_trees=require_trees, on_invalid=told.append)]
    assert [str(fault) for fault in told] == [message]
    assert kept == [1, 4 + bad.count(b"\n")]


@pytest.mark.parametrize("name", OF_TREES)
def test_fault_of_a_tree_does_not_matter_where_no_tree_is_required(tmp_path, name):
    path = tmp_path / "file.conllu"
    path.write_bytes(OF_TREES[name][0])
    (sentence,) = read_conllu(path)
    assert sentence.text.encode() == path.read_bytes()


def test_several_roots_can_be_allowed(tmp_path):
    path = tmp_path / "file.conllu"
    path.write_bytes(word_lines(0, 1, 0))
    (sentence,) = read_conllu(path, require_trees=True, single_root=False)
    assert sentence.words.heads == (0, 1, 0)


def test_cycle_beside_several_allowed_roots_is_found(tmp_path):
    path = tmp_path / "file.conllu"
    path.write_bytes(word_lines(0, 0, 4, 3))
    with pytest.raises(DataError, match="the heads of words 3, 4 lead into a cycle") as caught:
        list(read_conllu(path, require_trees=True, single_root=False))
    assert caught.value.line == 4


@pytest.mark.parametrize("data", [b"", b"\n", b"\r\n\n\r", b"\xef\xbb\xbf", b"\xef\xbb\xbf\n"])
def test_file_without_a_sentence(tmp_path, data):
    path = tmp_path / "empty.conllu"
    path.write_bytes(data)
    with pytest.raises(DataError, match=r"empty\.conllu: the file holds no sentence$"):
        list(read_conllu(path))
    told: list[DataError] = []
    assert list(read_conllu(path, on_invalid=told.append)) == []
    assert [fault.problem for fault in told] == ["the file holds no sentence"]


def test_sentence_without_id_is_found_by_its_line(tmp_path):
    path = tmp_path / "file.conllu"
    path.write_bytes(word_lines(0, "_").removeprefix(b"# sent_id = bad\n"))
    with pytest.raises(DataError) as caught:
        list(read_conllu(path, require_trees=True))
    assert str(caught.value) == f"{path}:2: word 2 has no head (HEAD is _)"


def test_lines_are_counted_with_carriage_returns_and_blank_lines_before(tmp_path):
    path = tmp_path / "file.conllu"
    path.write_bytes(b"\r\n\n" + word_lines(0, "_").replace(b"\n", b"\r\n"))
    with pytest.raises(DataError, match=r"conllu:5: sentence bad: word 2 has no head"):
        list(read_conllu(path, require_trees=True))


def test_scan_finds_all_the_faults_of_a_sentence(tmp_path):
    path = tmp_path / "file.conllu"
    path.write_bytes(
        lines(row("1-3"), row(1), row(3).replace("\t_", "\t", 1), "# no")
        + word_lines("_", 7, 0)
        + GOOD
        + b"\xff\n\xfe\n"
    )
    found = [[fault.line for fault in result] if isinstance(result, tuple) else 0 for result in scan_conllu(path)]
    assert found == [[4, 5], 0, 0, [15, 16]]
    found = [
        [fault.line for fault in result] if isinstance(result, tuple) else 0
        for result in scan_conllu(path, TreeCheck())
    ]
    assert found == [[4, 5], [8, 9], 0, [15, 16]]


def test_possible_heads_by_hand() -> None:
    column = ["_", "Heads=2,5", "SpaceAfter=No|Heads=0", "Gloss=xHeads=3"]
    assert possible_heads(column) == ((), (2, 5), (0,), ())
    assert possible_heads(["_", "Gloss=a"]) is None


@pytest.mark.parametrize(
    ("misc", "head", "problem"),
    [
        ("Heads=2,x", -1, "write the possible heads of word 1 once, as Heads=2,5, not 'Heads=2,x'"),
        ("Heads=", -1, "write the possible heads of word 1 once, as Heads=2,5, not 'Heads='"),
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
