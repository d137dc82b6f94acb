import bz2
import gzip
import json
import lzma
import sys

import pytest
from helpers.commands import error_of
from helpers.parsed_files import written

from treeparse.cli.main import main

CLEAN = b"""# sent_id = one
1-2\tDon't\t_\t_\t_\t_\t_\t_\t_\t_
1\tDo\t_\t_\t_\t_\t3\taux\t_\t_
2\tn't\t_\t_\t_\t_\t3\tadvmod\t_\t_
3\tgo\t_\t_\t_\t_\t0\troot\t_\t_

"""
CYCLE = b"""# sent_id = turn
1\ta\t_\t_\t_\t_\t2\tdep\t_\t_
2\tb\t_\t_\t_\t_\t1\tdep\t_\t_
3\tc\t_\t_\t_\t_\t0\troot\t_\t_

"""
TWO_ROOTS = b"""# sent_id = roots
1\ta\t_\t_\t_\t_\t0\troot\t_\t_
2\tb\t_\t_\t_\t_\t0\troot\t_\t_

"""
NO_HEADS = b"""# sent_id = raw
1\ta\t_\t_\t_\t_\t_\t_\t_\t_
2\tb\t_\t_\t_\t_\t9\t_\t_\t_
"""


@pytest.fixture
def clean(tmp_path):
    return written(tmp_path / "clean.conllu", CLEAN)


@pytest.fixture
def faulty(tmp_path):
    return written(tmp_path / "faulty.conllu.gz", gzip.compress(CYCLE + CLEAN + TWO_ROOTS + NO_HEADS))


def checked(capsys, *arguments) -> tuple[int, list[str]]:
    """The exit code, and the lines on standard output."""
    code = main(["check", *map(str, arguments)])
    return code, capsys.readouterr().out.splitlines()


def test_clean_file(clean, capsys):
    assert main(["check", str(clean)]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert out.splitlines() == [
        "                         clean",
        "faults                       0",
        "sentences left out           0",
        "sentences                    1",
        "words                        3",
        "multiword tokens             1",
        "empty nodes                  0",
        "sentence length: min         3",
        "                 median      3",
        "                 mean      3.0",
        "                 max         3",
        "trees                        1",
        "roots                        1",
        "non-projective trees         0",
        "non-projective arcs          0",
        "labels                       3",
        "",
        "label   words   share",
        "aux         1  33.33%",
        "advmod      1  33.33%",
        "root        1  33.33%",
    ]


def test_every_fault_has_its_line(faulty, capsys):
    code, faults = checked(capsys, "-q", faulty)
    assert code == 1 and faults == [
        f"{faulty}:2: sentence turn: the heads of words 1, 2 lead into a cycle, never to the root: a b",
        f"{faulty}:14: sentence roots: words 1, 2 all hang from the root, but a tree has one root",
        f"{faulty}:17: sentence raw: word 1 has no head (HEAD is _)",
        f"{faulty}:18: sentence raw: the head of word 2 must be from 0 to 2, got 9",
    ]


@pytest.mark.parametrize(("option", "lines"), [("--multi-root", [2, 17, 18]), ("--no-trees", [])])
def test_options_let_faults_pass(faulty, capsys, option, lines):
    code, faults = checked(capsys, "-q", option, faulty)
    assert (code, [int(line.split(":")[1]) for line in faults]) == (bool(lines), lines)


def test_several_files_have_their_columns_and_a_sum(clean, faulty, capsys):
    assert main(["check", "--multi-root", str(clean), str(faulty)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[3] == ""
    cells = {line[:24].strip(): line[24:].split() for line in lines[4:20]}
    assert cells[""] == ["clean", "faulty", "all"]
    assert cells["faults"] == ["0", "3", "3"]
    assert cells["sentences left out"] == ["0", "2", "2"]
    assert cells["words"] == ["3", "5", "8"]
    assert cells["roots"] == ["1", "3", "4"]
    assert "root        1      3      4  50.00%" in lines


def test_more_files_than_columns_show_their_sum(clean, capsys):
    assert main(["check", *[str(clean)] * 5]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["all"]
    assert lines[4].split() == ["words", "15"]


def test_json_holds_faults_and_figures(clean, faulty, tmp_path, capsys):
    output = tmp_path / "report.json"
    assert main(["check", "-q", str(clean), str(faulty), "--output", str(output)]) == 1
    report = json.loads(output.read_text())
    assert [each["file"] for each in report["files"]] == [str(clean), str(faulty)]
    assert report["files"][0]["faults"] == []
    assert report["files"][1]["faults"][1] == {
        "line": 14,
        "sent_id": "roots",
        "problem": "words 1, 2 all hang from the root, but a tree has one root",
    }
    assert report["files"][1]["sentences_left_out"] == 3
    assert report["all"]["words"] == 6
    capsys.readouterr()
    assert main(["check", str(clean), str(faulty), "--output", "-"]) == 1
    assert json.loads(capsys.readouterr().out) == report


def test_empty_file_is_a_fault_without_a_table(tmp_path, capsys):
    path = written(tmp_path / "empty.conllu", "")
    assert checked(capsys, path) == (1, [f"{path}: the file holds no sentence"])


def test_missing_and_damaged_files_are_usage_errors(clean, tmp_path, capsys):
    assert "there is no file" in error_of(capsys, "check", clean, tmp_path / "missing")
    damaged = written(tmp_path / "damaged.gz", "plain text")
    assert f"error: {damaged}: this is no whole gzip file" in error_of(capsys, "check", damaged)


FRENCH = CLEAN.decode().replace("Do", "Dé").replace("go", "gé")


def test_a_file_in_another_encoding_is_one_fault_and_the_next_file_is_checked(clean, tmp_path, capsys):
    path = written(tmp_path / "old.conllu", (CLEAN.decode() * 9 + FRENCH * 300).encode("latin-1"))
    code, (first, blank, *table) = checked(capsys, path, clean)
    assert code == 1 and first.startswith(f"{path}: in 300 of 309 sentences ") and "first in lines 56, 62," in first
    assert "iconv" in first and blank == ""
    assert table[3].split() == ["sentences", "9", "1", "10"]


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz"])
def test_compressed_files_are_checked_and_named_without_their_suffix(tmp_path, capsys, suffix):
    path = written(tmp_path / f"some.conllu{suffix}", {".gz": gzip, ".bz2": bz2, ".xz": lzma}[suffix].compress(CLEAN))
    code, lines = checked(capsys, path)
    assert (code, lines[0].strip()) == (0, "some")


BARE = b"1\ta\t_\t_\t_\t_\t_\t_\t_\t_\n2\tb\t_\t_\t_\t_\t_\t_\t_\t_\n\n"
UNLABELLED = CLEAN.replace(b"aux", b"_").replace(b"advmod", b"_").replace(b"root", b"_")


@pytest.mark.parametrize(
    ("sentence", "problem", "remedy"),
    [
        (BARE, "no word has a head (HEAD is _)", "check files to parse with --no-trees; training takes such sentences"),
        (UNLABELLED, "no word has a label (DEPREL is _)", "with --no-trees, the lines alone are checked"),
    ],
    ids=["heads", "labels"],
)
def test_what_all_sentences_lack_is_one_fault_of_the_file(tmp_path, capsys, sentence, problem, remedy):
    path = tmp_path / "bare.conllu"
    code, [line] = checked(capsys, written(path, sentence * 2000))
    assert code == 1 and line.startswith(f"{path}: in all 2,000 sentences {problem}: {remedy}")
    code, [line] = checked(capsys, "-q", written(path, sentence + CLEAN + sentence * 5))
    places = [1, 1 + (sentence + CLEAN).count(b"\n"), 1 + (sentence + CLEAN + sentence).count(b"\n")]
    places = [place + 2 * (sentence == UNLABELLED) for place in places]  # its words begin in line 3
    start = f"{path}: in 6 of 7 sentences {problem}, first in lines {', '.join(map(str, places))}: "
    assert code == 1 and line.startswith(start)
    code, [line] = checked(capsys, "-q", written(path, sentence + CLEAN))
    assert code == 1 and line.startswith(f"{path}:{places[0]}: ") and line.endswith(problem)
    assert checked(capsys, "-q", "--no-trees", written(path, sentence * 2000)) == (0, [])


def test_a_word_of_a_tree_without_a_label_is_a_fault(tmp_path, capsys):
    path = written(tmp_path / "some.conllu", CLEAN + CLEAN.replace(b"advmod", b"_"))
    fault = f"{path}:10: sentence one: word 2 has head 3 and no label (DEPREL is _)"
    assert checked(capsys, "-q", path) == (1, [fault])
    assert checked(capsys, "-q", "--no-trees", path) == (0, [])


def row(word, form, head, label="dep", upos="X", feats="_"):
    return f"{word}\t{form}\t_\t{upos}\t_\t{feats}\t{head}\t{label}\t_\t_\n"


HELLO = row(1, "hello", 0, "root") + "\n"
LONG = row(1, "a", 0, "root") + row(2, "long", 1) + row(3, "one", 1) + "\n"
OTHER = row(1, "other", 0, "root", "NOUN", "Case=Nom|Number=Dual") + row(2, "word", 1, "nsubj", feats="Case=Nom") + "\n"


def notes_of(capsys, *paths) -> list[str]:
    code, lines = checked(capsys, *paths)
    assert code == 0
    return [line for line in lines if line.startswith("note: ")]


def test_several_files_are_compared_in_notes(tmp_path, capsys):
    train, dev = tmp_path / "en_x-ud-train.conllu", tmp_path / "en_x-ud-dev.conllu"
    train.write_text(HELLO + LONG + HELLO)
    dev.write_text(OTHER + LONG + HELLO)
    assert notes_of(capsys, train, dev) == [
        "note: train and dev share 2 sentences: train:3 and dev:4, train:1 and dev:8",
        "note: dev has 1 label that train lacks: nsubj",
        "note: dev has 1 UPOS tag that train lacks: NOUN",
        "note: dev has 2 features that train lacks: Case=Nom, Number=Dual",
    ]
    assert notes_of(capsys, train) == []
    report = tmp_path / "report.json"
    assert checked(capsys, "-q", train, dev, "--output", report) == (0, [])
    assert len(json.loads(report.read_text())["notes"]) == 4


def test_notes_name_the_longest_shared_sentences_and_the_most_frequent_labels(tmp_path, capsys):
    sentences = [
        row(1, "a", 0, "root") + "".join(row(n, "b", 1) for n in range(2, size)) + "\n" for size in range(2, 9)
    ]
    labels = "".join(row(1, str(n), 0, "root") + row(2, "x", 1, f"l{n}") + "\n" for n in range(12))
    often = row(1, "z", 0, "root") + row(2, "x", 1, "l11") + "\n"
    one, two = tmp_path / "one.conllu", tmp_path / "two.conllu"
    one.write_text("".join(sentences) + labels + often)
    two.write_text("".join(sentences))
    shared, lacking = notes_of(capsys, one, two)
    starts = [1 + "".join(sentences[:n]).count("\n") for n in (6, 5, 4)]
    places = ", ".join(f"one:{start} and two:{start}" for start in starts)
    assert shared == f"note: one and two share 7 sentences, the longest: {places}"
    named = ", ".join(["l11", *(f"l{n}" for n in range(9))])
    assert lacking == f"note: one has 12 labels that two lacks: {named}, ..."


def test_of_many_files_notes_say_what_one_alone_has(tmp_path, capsys):
    paths = [tmp_path / f"{name}.conllu" for name in "abcde"]
    for number, path in enumerate(paths):
        path.write_text(row(1, path.stem, 0, "root") + row(2, "x", 1, "own" if number == 2 else "dep") + "\n")
    assert notes_of(capsys, *paths) == ["note: c has 1 label that no other file has: own"]


def test_files_of_one_name_are_told_apart_by_their_folders(tmp_path, capsys):
    paths = [tmp_path / folder / "train.conllu" for folder in "ab"]
    for path in paths:
        path.parent.mkdir()
        path.write_text(HELLO)
    assert notes_of(capsys, *paths) == [
        f"note: {paths[0]} and {paths[1]} share 1 sentence: {paths[0]}:1 and {paths[1]}:1"
    ]


TAGGED = CLEAN.replace(b"Do\t_\t_", b"Do\t_\tAUX").replace(b"go\t_\t_", b"go\t_\tVERB")
TAGGED = TAGGED.replace(b"\tn't\t_\t_", b"\tn't\t_\tPART")
UD = TAGGED.replace(b"one\n", b"one\n# text = Don't go\n", 1)
LOOSE = {
    "line ends of Windows": (UD.replace(b"\n", b"\r\n"), []),
    "a byte order mark": (b"\xef\xbb\xbf" + UD, [1]),
    "blank lines": (UD + b"\n" + UD.replace(b"= one", b"= two"), [8]),
    "no blank line": (UD[:-1], []),
    "white space": (UD.replace(b"aux", b"a\xc2\xa0x"), [4]),
    "no text": (TAGGED, []),
}


@pytest.mark.parametrize(("data", "lines"), LOOSE.values(), ids=LOOSE)
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_ud_asks_the_official_validator(tmp_path, capsys, data, lines, suffix):
    path = written(tmp_path / f"some.conllu{suffix}", gzip.compress(data) if suffix else data)
    assert checked(capsys, "-q", path) == (0, [])
    code, faults = checked(capsys, "-q", "--ud", path)
    assert code == 1 and faults and all(fault.startswith(f"{path}:") for fault in faults)
    assert all(any(fault.startswith(f"{path}:{line}:") for fault in faults) for line in lines)


def test_ud_accepts_what_the_official_validator_accepts(tmp_path, capsys):
    assert checked(capsys, "-q", "--ud", written(tmp_path / "some.conllu", UD)) == (0, [])


def test_ud_is_asked_of_sound_files_only_and_what_reads_twice_not_of_standard_input(faulty, capsys):
    assert checked(capsys, "-q", "--ud", faulty) == checked(capsys, "-q", faulty)
    for pipe in ("-", "/dev/null"):
        assert "--ud reads the files again" in error_of(capsys, "check", "--ud", pipe)
        assert "--html reads the files again" in error_of(capsys, "check", pipe, "--html", "page.html")


def test_ud_without_the_validator(clean, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "udtools", None)
    assert "pip install udtools" in error_of(capsys, "check", "--ud", clean)


def test_a_page_draws_unique_kinds_of_arcs_and_crossing_arcs(tmp_path, capsys):
    def sentence(name, heads, labels, tags):
        rows = zip("abcd", tags, heads, labels, strict=True)
        lines = (f"{i}\t{w}\t_\t{t}\t_\t_\t{h}\t{d}\t_\t_" for i, (w, t, h, d) in enumerate(rows, 1))
        return "\n".join([f"# sent_id = {name}", *lines]) + "\n\n"

    usual = [("usual-1", (2, 0, 2, 2), ("nsubj", "root", "obj", "punct"), ("X", "V", "N", "P")),
             ("usual-2", (2, 0, 2, 2), ("nsubj", "root", "obj", "punct"), ("X", "V", "N", "P"))]  # fmt: skip
    rare = ("rare", (2, 0, 2, 3), ("nsubj", "root", "obj", "punct"), ("X", "V", "N", "P"))
    crossing = ("crossing", (3, 4, 0, 3), ("nsubj", "nsubj", "root", "obj"), ("N", "X", "V", "V"))
    path, page = tmp_path / "trees.conllu", tmp_path / "page.html"
    path.write_text("".join(sentence(*each) for each in [*usual, rare, crossing]) + CYCLE.decode(), encoding="utf-8")
    assert main(["check", str(path), "--html", str(page)]) == 1
    text = page.read_text(encoding="utf-8")
    assert text.startswith("<!DOCTYPE html>") and "usual" not in text
    rare_part, crossing_part = text.split("Trees with arcs of a kind")[1].split("Trees with non-projective arcs")
    assert "N punct P" in rare_part and "heads of: b" in crossing_part and "rare" not in crossing_part
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "")
    capsys.readouterr()
    assert main(["check", str(path), "--html", "-"]) == 1
    assert capsys.readouterr().out == text


def test_arcs_that_contradict_the_label_of_the_root_are_noted(tmp_path, capsys):
    """One word that hangs from another has the label root, and all roots have another one: nothing is reserved."""
    sentence = CLEAN.replace(b"root", b"sent")
    files = [written(tmp_path / "free.conllu", sentence * 3 + sentence.replace(b"aux", b"root"))]
    files.append(written(tmp_path / "kept.conllu", CLEAN * 40 + sentence))
    free = f"4 of 4 arcs from the root have another label (the first: {files[0]}:5, 'go' as 'sent'); "
    free += f"1 of 1 arcs with the label root are not from the root (the first: {files[0]}:21, 'Do' as 'root'): "
    free = f"note: in free {free}the label root is possible for every arc"
    code, lines = checked(capsys, files[0])
    assert (code, lines[-1]) == (0, free)
    code, lines = checked(capsys, *files)
    kept = f"note: in kept 1 of 41 arcs from the root have another label (the first: {files[1]}:245, 'go' as 'sent'): "
    assert code == 0 and free in lines
    assert any(line.startswith(f"{kept}the label root is reserved for arcs from the root, and ") for line in lines)
    assert not any("note" in line for line in checked(capsys, written(tmp_path / "clean.conllu", CLEAN))[1])


def test_words_without_forms_are_noted(tmp_path, capsys):
    def notes(name, bare):
        words = range(1, 11)
        rows = (row(word, "_" if word in bare else "go", word - 1, "dep" if word > 1 else "root") for word in words)
        (path := tmp_path / f"{name}.conllu").write_text("".join(rows) + "\n")
        return notes_of(capsys, path)

    stripped = "9 of 10 words have the form _: was the treebank shipped without its text?"
    assert notes("stripped", range(2, 11)) == [f"note: in stripped {stripped}"]
    assert notes("whole", [1]) == []


def test_ids_that_stand_twice_other_texts_and_characters_apart_are_noted(tmp_path, capsys):
    def sentence(name, text, word, misc="_"):
        rows = (f"1\tgo\t_\t_\t_\t_\t0\troot\t_\t{misc}", f"2-3\t{word}\t_\t_\t_\t_\t_\t_\t_\t_")
        parts = (f"{number}\tx\t_\t_\t_\t_\t1\tdep\t_\t_" for number in (2, 3))
        return "\n".join([f"# sent_id = {name}", f"# text = {text}", *rows, *parts]) + "\n\n"

    path = tmp_path / "odd.conllu"
    path.write_text(sentence("a", "go aux", "aux") + sentence("b", "goaux", "aux", "SpaceAfter=No"), encoding="utf-8")
    assert notes_of(capsys, path) == []
    odd = sentence("a", "go aux", "aux") + sentence("a", "go du", "aux") + sentence("c", "go a\u0308", "a\u0308")
    path.write_text(odd + sentence("a", "goaux", "aux"), encoding="utf-8")
    assert notes_of(capsys, path) == [
        f"note: in odd 2 sentences have the sent_id of an earlier sentence (the first: {path}:8, 'a', as in line 1)",
        f"note: in odd 2 sentences have a # text that differs from the words (the first: {path}:8, 'du' where the "
        "words have 'aux')",
        f"note: in odd 1 sentence has characters that are not composed (NFC) (the first: {path}:15, 'a\u0308')",
    ]


def test_of_a_fault_that_stands_often_ten_are_printed_and_the_others_counted(tmp_path, capsys):
    path, report = tmp_path / "often.conllu", tmp_path / "report.json"
    path.write_text("".join(row(1, "a", head, "root") + "\n" for head in range(5, 20)) + row(1, "a", "x") + "\n")
    code, faults = checked(capsys, "-q", path, "--output", report)
    assert code == 1 and [int(line.split(":")[1]) for line in faults[:11]] == [*range(1, 20, 2), 31]
    assert faults[11:] == [
        f"{path}: 5 more such faults, from line 21 on: the head of word 1 must be from 0 to 1, got 15"
    ]
    assert len(json.loads(report.read_text())["files"][0]["faults"]) == 16


def test_partial_trees_pass_where_they_are_asked_for(tmp_path, capsys):
    path = tmp_path / "partial.conllu"
    path.write_text(row(1, "a", "_", "_") + row(2, "b", 1) + "\n")
    assert checked(capsys, "-q", path)[0] == 1
    assert checked(capsys, "-q", "--partial", path) == (0, [])
    path.write_text(row(1, "a", 2) + row(2, "b", 1) + row(3, "c", "_", "_") + "\n")
    assert checked(capsys, "-q", "--partial", path)[0] == 1
