"""N-best lists in files: exact round trips, blocks that the official validator accepts, a sentence for every fault."""

import gzip
import io
import json
import math
import random
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from udtools import Validator

from treeparse.data.annotations import has_probabilities
from treeparse.data.conllu import ConlluSentence, read_conllu
from treeparse.data.nbest import read_nbest, write_nbest
from treeparse.data.parses import NBestList, Parse
from treeparse.errors import DataError, TreeparseError

FIRST = (
    "# newdoc id = d1\n"
    "# newpar\n"
    "# sent_id = d1-s1\n"
    "# parallel_id = news/1\n"
    "# text = No sé.\n"
    "# note = kept = so\n"
    "1\tNo\tno\tADV\t_\t_\t2\tadvmod\t_\t_\n"
    "2\tsé\tsaber\tVERB\t_\tMood=Ind\t0\troot\t_\tSpaceAfter=No\n"
    "3\t.\t.\tPUNCT\t_\t_\t2\tpunct\t_\tSpaceAfter=No\n"
    "\n"
)
SECOND = (
    "# sent_id = d1-s1.1\n"
    "# text = Dámelo ya\n"
    "1-3\tDámelo\t_\t_\t_\t_\t_\t_\t_\t_\n"
    "1\tDa\tdar\tVERB\t_\t_\t0\troot\t_\t_\n"
    "2\tme\tyo\tPRON\t_\t_\t1\tiobj\t_\t_\n"
    "3\tlo\tél\tPRON\t_\t_\t1\tobj\t_\t_\n"
    "4\tya\tya\tADV\t_\t_\t1\tadvmod\t_\tGloss=a=b\n"
    "\n"
)
# Floats whose shortest decimals are long, tiny, whole, or in exponent form.
FIGURES = [(-0.1, 1e22), (-1 / 3, 0.1 + 0.2), (-5e-324, -math.pi), (-1e300, 7.0)]
TREES = {
    3: [
        ((2, 0, 2), ("advmod", "root", "punct")),
        ((0, 1, 1), ("root", "obj", "punct")),
        ((3, 3, 0), ("a", "b", "root")),
    ],
    4: [((0, 1, 1, 1), ("root", "iobj", "obj", "advmod")), ((0, 1, 1, 1), ("root", "obj", "obj", "advmod"))],
}


def sentences(text: str | bytes, path: Path) -> list[ConlluSentence]:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return list(read_conllu(path))


def nbest(sentence: ConlluSentence) -> NBestList:
    tokens = sentence.words.forms
    trees = zip(TREES[len(tokens)], FIGURES, strict=False)
    return NBestList(sentence, tuple(Parse(tokens, heads, labels, *figures) for (heads, labels), figures in trees))


@pytest.fixture
def lists(tmp_path: Path) -> list[NBestList]:
    return [nbest(sentence) for sentence in sentences(FIRST + SECOND, tmp_path / "source.conllu")]


def blocks_of(path: Path) -> list[list[str]]:
    return [block.split("\n") for block in path.read_text(encoding="utf-8").removesuffix("\n\n").split("\n\n")]


def rows_of(block: Sequence[str]) -> list[list[str]]:
    return [line.split("\t") for line in block if not line.startswith("#")]


def incidents(path: Path, lang: str = "es") -> list[str]:
    """What the official validator finds, up to level 2, in the given language or any ("ud")."""
    state = Validator(lang=lang, level=2, output=None).validate_files([str(path)])
    return [str(incident) for incident in state.error_tracker]


def test_a_block_a_tree_with_the_sentences_lines(lists: list[NBestList], tmp_path: Path) -> None:
    write_nbest(tmp_path / "out.conllu", lists)
    blocks = blocks_of(tmp_path / "out.conllu")
    assert len(blocks) == 5
    figures = ["# rank = 2", f"# log_prob = {-1 / 3!r}", "# score = 0.30000000000000004"]
    assert blocks[1][:-3] == ["# sent_id = d1-s1.2", "# text = No sé.", "# note = kept = so", *figures]
    assert [block[0] for block in blocks[3:]] == ["# sent_id = d1-s1.1.1", "# sent_id = d1-s1.1.2"]
    for block, parse in zip(blocks, lists[0].parses + lists[1].parses, strict=True):
        rows = [row for row in rows_of(block) if row[0].isdigit()]
        assert tuple(int(row[6]) for row in rows) == parse.heads
        assert tuple(row[7] for row in rows) == parse.labels
        old = rows_of((FIRST if len(rows) == 3 else SECOND).strip("\n").split("\n"))
        for row, source in zip(rows_of(block), old, strict=True):
            assert row[:6] + row[8:] == source[:6] + source[8:]


def test_comments_that_may_come_once_stand_at_the_first_rank(lists: list[NBestList], tmp_path: Path) -> None:
    write_nbest(tmp_path / "out.conllu", lists)
    first, second, third, *_ = blocks_of(tmp_path / "out.conllu")
    once = ["# newdoc id = d1", "# newpar", "# parallel_id = news/1"]
    assert first[:5] == [*once[:2], "# sent_id = d1-s1.1", once[2], "# text = No sé."]
    assert not set(once) & set(second + third)


def test_official_validator_accepts_the_lists(lists: list[NBestList], tmp_path: Path) -> None:
    path = tmp_path / "out.conllu"
    assert not incidents(tmp_path / "source.conllu")
    labelled = [replace(lists[0], parses=lists[0].parses[:2]), lists[1]]  # the third tree's labels are made up
    write_nbest(path, labelled)
    assert incidents(path) == []
    again = [without_comments(each, "# parallel_id") for each in labelled]
    nameless = [without_comments(each, "# parallel_id", "# sent_id") for each in labelled]
    write_nbest(path, [*labelled, *again, *nameless])
    assert incidents(path) == []
    path.write_text(path.read_text(encoding="utf-8").replace("s1.2\n", "s1.1\n", 1), encoding="utf-8")
    assert any("Non-unique sent_id" in incident for incident in incidents(path))  # it would have said so


def without_comments(nbest: NBestList, *starts: str) -> NBestList:
    lines = [line for line in nbest.sentence.text.split("\n") if not line.startswith(starts)]
    sent_id = None if "# sent_id" in starts else nbest.sent_id
    return replace(nbest, sentence=replace(nbest.sentence, text="\n".join(lines), sent_id=sent_id))


@pytest.mark.parametrize("name", ["out.conllu", "out.conllu.gz", "out.jsonl", "out.jsonl.gz"])
def test_what_is_written_reads_back_exactly(lists: list[NBestList], tmp_path: Path, name: str) -> None:
    write_nbest(tmp_path / name, lists)
    again = list(read_nbest(tmp_path / name))
    assert [(each.sent_id, each.tokens, each.parses) for each in again] == [
        (each.sent_id, each.tokens, each.parses) for each in lists
    ]
    write_nbest(tmp_path / f"again-{name}", again)
    assert (tmp_path / f"again-{name}").read_bytes() == (tmp_path / name).read_bytes()
    assert (tmp_path / name).read_bytes().startswith(b"\x1f\x8b") == name.endswith(".gz")


def with_random_probabilities(nbest: NBestList, stream: random.Random) -> NBestList:
    def probs(parse: Parse) -> tuple[float, ...]:
        return tuple(round(stream.random(), 4) for _ in parse.tokens)

    parses = [replace(each, log_prob=-1.0, arc_probs=probs(each), label_probs=probs(each)) for each in nbest.parses]
    return replace(nbest, parses=(*(replace(each, entropy=2.5) for each in parses[:-1]), parses[-1]))


@pytest.mark.parametrize("name", ["out.conllu", "out.jsonl"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_probabilities_are_written_and_read(tmp_path: Path, name: str, end: str) -> None:
    """In CoNLL-U to four digits; they are no part of the sentence, and those of an older parse go."""
    text = SECOND.replace("\tGloss=a=b", "\tArcProb=0.5|Gloss=a=b").replace("# text", "# entropy = 1\n# text")
    stream, source = random.Random(1), sentences((FIRST + text).replace("\n", end), tmp_path / "source.conllu")
    lists = [with_random_probabilities(nbest(sentence), stream) for sentence in source]
    write_nbest(tmp_path / name, lists)
    again = list(read_nbest(tmp_path / name))
    assert [each.parses for each in again] == [each.parses for each in lists]
    assert not any(has_probabilities(each.sentence) for each in again)
    write_nbest(tmp_path / f"again-{name}", again)
    assert (tmp_path / f"again-{name}").read_text() == (tmp_path / name).read_text()  # whatever ends the lines
    if name == "out.conllu" and end == "\n":
        block = blocks_of(tmp_path / name)[-2]
        assert block[3:7] == ["# log_prob = -1.0", "# score = 1e+22", "# tree_prob = 0.367879", "# entropy = 2.5"]
        parse = lists[1].parses[0]
        assert parse.arc_probs and parse.label_probs
        arc, label = parse.arc_probs[-1], parse.label_probs[-1]
        assert block[-1].endswith(f"\tGloss=a=b|ArcProb={arc:.4f}|LabelProb={label:.4f}")
        write_nbest(tmp_path / name, [nbest(sentence) for sentence in source])
        assert "Prob=" not in (tmp_path / name).read_text() and "# entropy" not in (tmp_path / name).read_text()


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("|LabelProb=0.5000", "", "the LabelProb of word 1 is missing"),
        ("ArcProb=0.5000|", "ArcProb=1.5|", r"the ArcProb of word 1 must be from 0 to 1, got '1.5'"),
        ("# entropy = 1", "# entropy = nan", "the entropy must be a finite number, got 'nan'"),
        ('"arc_probs": [0.5, 0.5, 0.5, 0.5]', '"arc_probs": [0.5]', "arc_probs of a parse must be a list of 4 numbers"),
        ('"arc_probs": [0.5, ', '"arc_probs": [true, ', "arc_probs of a parse must be numbers"),
        ('"arc_probs"', '"arcs"', "both arc_probs and label_probs, or neither"),
        ('"entropy": 1.0', '"entropy": "1"', "the entropy of a parse must be a number"),
    ],
)
def test_faulty_probabilities_are_named(tmp_path: Path, old: str, new: str, problem: str) -> None:
    [source] = sentences(SECOND, tmp_path / "source.conllu")
    half = (0.5,) * 4
    parses = tuple(replace(each, arc_probs=half, label_probs=half, entropy=1.0) for each in nbest(source).parses)
    path = tmp_path / ("out.jsonl" if '"' in old else "out.conllu")
    write_nbest(path, [NBestList(source, parses)])
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(DataError, match=problem):
        list(read_nbest(path))


def test_the_sentence_comes_back_as_it_was_parsed(lists: list[NBestList], tmp_path: Path) -> None:
    write_nbest(tmp_path / "out.conllu", lists)
    for source, read in zip(lists, read_nbest(tmp_path / "out.conllu"), strict=True):
        best = read.parses[0]
        assert read.sentence.text == source.sentence.with_parse(best.heads, best.labels).text
        assert read.sentence.words.upos == source.sentence.words.upos
    # A list made of a list has no figures but its own.
    write_nbest(tmp_path / "new.conllu", [nbest(sentence) for sentence in read_conllu(tmp_path / "out.conllu")])
    assert [len(each.parses) for each in read_nbest(tmp_path / "new.conllu")] == [3, 3, 3, 2, 2]
    assert [each.sent_id for each in read_nbest(tmp_path / "new.conllu")][:2] == ["d1-s1.1", "d1-s1.2"]


def test_a_sentence_keeps_its_own_comments_rank_and_score(tmp_path: Path) -> None:
    own = "# rank = 1\n#score=high\n# log_prob = 3\n"
    [sentence] = sentences(FIRST.replace("# note", f"{own}# note"), tmp_path / "in.conllu")
    for _ in range(2):  # written, read, and written again
        write_nbest(tmp_path / "out.conllu", [nbest(sentence)])
        assert (tmp_path / "out.conllu").read_text(encoding="utf-8").count(f"\n{own}# note") == 3
        [read] = read_nbest(tmp_path / "out.conllu")
        assert read.sentence.text == sentence.with_parse(read.parses[0].heads, read.parses[0].labels).text
        sentence = read.sentence


def test_json_lines(lists: list[NBestList], tmp_path: Path) -> None:
    write_nbest(tmp_path / "out.jsonl", lists)
    first, _ = (json.loads(line) for line in (tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines())
    assert list(first) == ["sent_id", "text", "tokens", "parses"]
    assert first["sent_id"] == "d1-s1" and first["text"] == "No sé." and first["tokens"] == ["No", "sé", "."]
    expected = {"heads": [0, 1, 1], "labels": ["root", "obj", "punct"], "log_prob": -1 / 3, "score": 0.1 + 0.2}
    assert first["parses"][1] == expected
    read = next(read_nbest(tmp_path / "out.jsonl")).sentence
    assert read.text.startswith("# sent_id = d1-s1\n# text = No sé.\n1\tNo\t_\t")
    write_nbest(tmp_path / "out.jsonl", [without_comments(lists[0], "# text")])
    assert "text" not in json.loads((tmp_path / "out.jsonl").read_bytes())
    assert next(read_nbest(tmp_path / "out.jsonl")).tokens == ("No", "sé", ".")


def test_format_is_the_names_or_as_told(lists: list[NBestList], tmp_path: Path) -> None:
    write_nbest(tmp_path / "a.conllu", lists, format="jsonl")
    write_nbest(tmp_path / "a.jsonl", lists, format="conllu")
    assert json.loads((tmp_path / "a.conllu").read_text(encoding="utf-8").splitlines()[0])["sent_id"] == "d1-s1"
    assert list(read_nbest(tmp_path / "a.conllu", format="jsonl")) != []
    assert len(list(read_conllu(tmp_path / "a.jsonl"))) == 5
    with pytest.raises(DataError, match="column"):
        list(read_nbest(tmp_path / "a.conllu"))
    with pytest.raises(DataError, match="must be JSON"):
        list(read_nbest(tmp_path / "a.jsonl"))


@pytest.mark.parametrize("form", ["conllu", "jsonl"])
def test_standard_streams(lists: list[NBestList], form: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", SimpleNamespace(buffer=stream, flush=lambda: None))
    write_nbest("-", lists, format=form)
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(stream.getvalue())))
    assert [each.parses for each in read_nbest("-", format=form)] == [each.parses for each in lists]


def test_sentences_get_ids_that_no_other_has(lists: list[NBestList], tmp_path: Path) -> None:
    named, nameless = lists[0], without_comments(lists[1], "# sent_id")
    for name in ("out.conllu", "out.jsonl"):
        write_nbest(tmp_path / name, [nameless, named, named, nameless, named])
        found = [each.sent_id for each in read_nbest(tmp_path / name)]
        assert found == ["sentence-1", "d1-s1", "d1-s1+2", "sentence-4", "d1-s1+3"]
    assert (tmp_path / "out.conllu").read_text(encoding="utf-8").startswith("# sent_id = sentence-1.1\n# text = D")


@pytest.mark.parametrize("change", [
    lambda text: text.replace("\n", "\r\n"),
    lambda text: "\ufeff" + text,
    lambda text: text.rstrip("\n"),
    lambda text: "\n\n" + text + "\n\n",
    lambda text: ("\ufeff\n" + text.rstrip("\n")).replace("\n", "\r\n"),
])  # fmt: skip
def test_line_ends_blank_lines_and_marks(tmp_path: Path, change: Callable[[str], str]) -> None:
    expected = nbest(sentences(FIRST, tmp_path / "plain.conllu")[0])
    changed = nbest(sentences(change(FIRST), tmp_path / "changed.conllu")[0])
    write_nbest(tmp_path / "expected.conllu", [expected, expected])
    write_nbest(tmp_path / "out.conllu", [changed, changed])
    written = (tmp_path / "out.conllu").read_bytes()
    assert (b"\r\n" in written) == ("\r" in change(FIRST))
    assert written.replace(b"\r\n", b"\n") == (tmp_path / "expected.conllu").read_bytes()
    assert [each.parses for each in read_nbest(tmp_path / "out.conllu")] == [expected.parses] * 2


def test_empty_nodes_are_kept_or_dropped(tmp_path: Path) -> None:
    text = FIRST.replace("2\tsé", "1.1\tyo\t_\tPRON\t_\t_\t_\t_\t2:nsubj\t_\n2\tsé")
    [source] = sentences(text, tmp_path / "in.conllu")
    for drop in (False, True):
        write_nbest(tmp_path / "out.conllu", [nbest(source)], drop_empty=drop)
        numbers = [[row[0] for row in rows_of(block)] for block in blocks_of(tmp_path / "out.conllu")]
        assert numbers == [["1", "2", "3"] if drop else ["1", "1.1", "2", "3"]] * 3
        assert [each.parses for each in read_nbest(tmp_path / "out.conllu")] == [nbest(source).parses]


def test_lists_that_cannot_be_written(lists: list[NBestList], tmp_path: Path) -> None:
    path = tmp_path / "out.conllu"
    path.write_text("old", encoding="utf-8")
    best = lists[0].parses[0]
    for parses, problem in [
        ((), "sentence d1-s1 has no parse"),
        ((best, replace(best, score=math.inf)), "rank 2 of sentence d1-s1 .* not finite"),
        ((replace(best, log_prob=-math.inf),), "rank 1 of sentence d1-s1 .* not finite"),
        ((replace(best, log_prob=math.nan),), "rank 1 of sentence d1-s1 has no log probability"),
        (lists[1].parses, "rank 1 of sentence d1-s1 has other words"),
    ]:
        with pytest.raises(TreeparseError, match=problem):
            write_nbest(path, [lists[1], replace(lists[0], parses=parses)])
    assert path.read_text(encoding="utf-8") == "old"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["out.conllu", "source.conllu"]


def fault_of(path: Path) -> DataError:
    with pytest.raises(DataError) as caught:
        list(read_nbest(path))
    assert str(caught.value).startswith(str(path))
    return caught.value


@pytest.mark.parametrize(("old", "new", "line", "sent_id", "problem"), [
    ("# rank = 2\n", "", 14, "d1-s1.2", "must have a comment # rank, got none"),
    ("# rank = 2\n", "# rank = two\n", 14, "d1-s1.2", "the rank must be an integer of at least 1, got 'two'"),
    ("# score = 0.30000000000000004\n", "# score = nan\n", 14, "d1-s1.2", "score must be a finite number, got 'nan'"),
    ("# log_prob = -0.1\n", "# log_prob = 0.1\n", 1, "d1-s1.1", "the log of a probability, at most 0, got 0.1"),
    ("# sent_id = d1-s1.2\n", "# sent_id = d1-s1\n", 14, "d1-s1", "the sent_id of a tree of rank 2 must"),
    ("# sent_id = d1-s1.2\n", "", 14, None, "the sent_id of a tree of rank 2 must"),
    ("# sent_id = d1-s1.2\n", "# sent_id = other.2\n", 14, "other.2", "among those of sentence d1-s1"),
    ("# sent_id = d1-s1.2\n", "# sent_id = d1-s1.3\n# rank = 3\n#", 14, "d1-s1.3", "the sent_id of a tree of rank 2"),
    ("1\tNo\tno\tADV\t_\t_\t0", "1\tYo\tno\tADV\t_\t_\t0", 14, "d1-s1.2", "the words must be those"),
    ("2\tsé\tsaber\tVERB\t_\tMood=Ind\t1", "2\tsé\tsaber\tVERB\t_\tMood=Ind\t2", 21, "d1-s1.2", "lead into a cycle"),
    ("2\tsé\tsaber\tVERB\t_\tMood=Ind\t1", "2\tsé\tsaber\tVERB\t_\t1", 21, "d1-s1.2", "have 10 columns, got 9"),
])  # fmt: skip
def test_faults_of_conllu_lists(
    lists: list[NBestList], tmp_path: Path, old: str, new: str, line: int, sent_id: str | None, problem: str
) -> None:
    path = tmp_path / "out.conllu"
    write_nbest(path, lists)
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    fault = fault_of(path)
    assert (fault.line, fault.sent_id) == (line, sent_id) and problem in fault.problem


@pytest.mark.parametrize(("order", "problem"), [
    ([1, 2], "the rank must be 1, the next of the sentence, got 2"),
    ([0, 1, 1], "the rank must be 3, the next of the sentence, got 2"),
    ([0, 4], "the tree is among those of sentence d1-s1; its own sentence has no tree of rank 1 before it"),
])  # fmt: skip
def test_faults_in_the_order_of_trees(lists: list[NBestList], tmp_path: Path, order: list[int], problem: str) -> None:
    path = tmp_path / "out.conllu"
    write_nbest(path, lists)
    blocks = blocks_of(path)
    path.write_text("".join("\n".join(blocks[place]) + "\n\n" for place in order), encoding="utf-8")
    assert problem in fault_of(path).problem


def changed(path: list[Any], value: Any) -> Callable[[dict[str, Any]], None]:
    """Sets a value deep in an object; ``...`` deletes it."""

    def change(data: Any) -> None:
        for key in path[:-1]:
            data = data[key]
        if value is ...:
            del data[path[-1]]
        else:
            data[path[-1]] = value

    return change


@pytest.mark.parametrize(("change", "problem"), [
    (changed(["sent_id"], ...), "sent_id must be one line"),
    (changed(["sent_id"], "a\nb"), "sent_id must be one line of text"),
    (changed(["text"], "a\nb"), "text must be one line of text"),
    (changed(["tokens"], ["No", 1, "."]), "tokens must be a list of one or more strings"),
    (changed(["tokens"], ["No", "", "."]), "a form must have a character, and no tab or line break, got ''"),
    (changed(["parses"], []), "parses must be a list of one or more objects"),
    (changed(["parses", 1, "heads"], [0, True, 1]), "heads must be a list of one or more integers"),
    (changed(["parses", 1, "heads"], [0, 1]), "a parse of 3 tokens must have as many heads and labels, got 2 and 3"),
    (changed(["parses", 1, "heads"], [0, 3, 2]), "lead into a cycle"),
    (changed(["parses", 1, "labels"], ["root", None, "x"]), "labels must be a list of one or more strings"),
    (changed(["parses", 1, "labels"], ["root", "a\tb", "x"]), "a label must have a character, and no tab"),
    (changed(["parses", 1, "score"], ...), "the score of a parse must be a number"),
    (changed(["parses", 1, "log_prob"], math.nan), "the log_prob must be a finite number, got 'nan'"),
    (changed(["parses", 1, "log_prob"], 710.0), "the log_prob must be the log of a probability, at most 0, got 710"),
])  # fmt: skip
def test_faults_of_json_lists(
    lists: list[NBestList], tmp_path: Path, change: Callable[[dict[str, Any]], None], problem: str
) -> None:
    path = tmp_path / "out.jsonl"
    write_nbest(path, [lists[1], lists[0]])
    good, bad = path.read_text(encoding="utf-8").splitlines()
    data = json.loads(bad)
    change(data)
    path.write_text(f"{good}\n\n{json.dumps(data)}\n", encoding="utf-8")
    fault = fault_of(path)
    assert fault.line == 3 and problem in fault.problem
    assert fault.sent_id == (None if problem.startswith("sent_id") else "d1-s1")


@pytest.mark.parametrize("line", [b"{", b"[1]", b"\xff", b'{"sent_id": "\\uD800"}'])
def test_lines_that_are_no_objects(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "out.jsonl"
    path.write_bytes(line + b"\n")
    fault = fault_of(path)
    assert fault.line == 1 and "JSON" in fault.problem


@pytest.mark.parametrize("name", ["empty.conllu", "empty.jsonl", "empty.jsonl.gz"])
def test_a_file_with_nothing_in_it(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(gzip.compress(b"\n") if name.endswith(".gz") else b"\n")
    assert fault_of(path).problem == "the file holds no sentence"


def test_multi_root_trees_are_trees(lists: list[NBestList], tmp_path: Path) -> None:
    two_roots = replace(lists[0].parses[0], heads=(0, 0, 2))
    for name in ("out.conllu", "out.jsonl"):
        write_nbest(tmp_path / name, [replace(lists[0], parses=(two_roots,))])
        assert next(read_nbest(tmp_path / name)).parses == (two_roots,)


def test_a_line_that_never_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("treeparse.data.nbest._MAX_LINE", 2**20)
    (tmp_path / "zeros.jsonl").write_bytes(b"\n" + bytes(2**20 + 1))
    with pytest.raises(DataError, match=r"zeros\.jsonl:2: a line must be at most 1 MiB long"):
        list(read_nbest(tmp_path / "zeros.jsonl"))
