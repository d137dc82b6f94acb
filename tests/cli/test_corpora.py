"""Big inputs: shards that join to the whole, a file for each input, work that goes on where it stopped, memory."""

import gc
import gzip
import json
import os
import tracemalloc
from collections.abc import Sequence
from pathlib import Path

import pytest
from helpers.commands import Capture, error_of, run
from helpers.parsed_files import SENTENCES, assert_same, conllu, lists_of, written

from treeparse.data.conllu import ConlluSentence, read_conllu
from treeparse.data.outputs import atomic_write
from treeparse.model import Parse, Parser

BAD = "# sent_id = bad\n1\tno\t_\n\n"
LENGTHS = (3, 1, 12, 2)  # of SENTENCES


def tree_below(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """Files in two folders, two of one base name, one compressed, one with a faulty sentence."""
    folder = tmp_path / "corpus"
    (folder / "a").mkdir(parents=True)
    (folder / "b").mkdir()
    written(folder / "a" / "x.conllu", conllu(*SENTENCES))
    written(folder / "b" / "x.conllu", BAD + conllu(*SENTENCES[::-1]) + BAD + conllu(("c", "d", "e")))
    written(folder / "b" / "y.conllu.gz", gzip.compress(conllu(SENTENCES[0], SENTENCES[0]).encode()))
    return folder


NAMES = {"a/x.conllu", "b/x.conllu", "b/y.conllu.gz"}


# ---------------------------------------------------------------- a file for each input


@pytest.mark.parametrize("exists", [False, True])
def test_a_folder_gets_a_file_an_input(model: str, corpus: Path, tmp_path: Path, capsys: Capture, exists: bool) -> None:
    out = tmp_path / "out"
    if exists:
        out.mkdir()
    output = out if exists else f"{out}/"
    assert run("predict", model, corpus / "**/*.conllu*", "-o", output, "--skip-invalid", "--chunk", 3) == 0
    assert capsys.readouterr().err.startswith("treeparse: 3 files, 11 sentences, 45 words, ")
    assert set(tree_below(out)) == NAMES
    for name in NAMES:
        alone = tmp_path / f"alone{Path(name).suffix}"
        assert run("predict", model, corpus / name, "-o", alone, "--skip-invalid") == 0
        assert alone.read_bytes() == (out / name).read_bytes()


@pytest.mark.parametrize(
    ("command", "name", "expected"),
    [
        (["predict"], "in.conllu", "in.conllu"),
        (["predict", "--format", "text"], "in.txt.gz", "in.conllu.gz"),
        (["predict", "--format", "text"], "in.txt.xz", "in.conllu.xz"),
        (["predict", "--format", "text"], "in.2020", "in.2020.conllu"),
        (["kbest", "-k", "2"], "in.conllu", "in.conllu"),
        (["kbest", "-k", "2", "--output-format", "jsonl"], "in.conllu.gz", "in.jsonl.gz"),
        (["kbest", "-k", "2", "--output-format", "jsonl"], "in.conllu.bz2", "in.jsonl.bz2"),
        (["sample", "-k", "2", "--output-format", "jsonl", "--format", "text"], "in.txt", "in.jsonl"),
    ],
)
def test_the_suffix_says_the_format(model: str, tmp_path: Path, command: list[str], name: str, expected: str) -> None:
    data = (conllu(["a", "b"]).replace("s1", "1") if "text" not in command else "a b\n").encode()
    source = str(tmp_path / name)
    atomic_write(source, data)
    assert run(command[0], model, source, "-o", f"{tmp_path}/new/out/", *command[1:]) == 0
    assert os.listdir(tmp_path / "new" / "out") == [expected]
    if command[0] == "predict":
        assert [s.sent_id for s in read_conllu(tmp_path / "new" / "out" / expected)] == ["1"]
    else:
        assert [len(parses) for _, parses in lists_of(tmp_path / "new" / "out" / expected)] == [2]


def test_outputs_that_cannot_be(model: str, corpus: Path, tmp_path: Path, capsys: Capture) -> None:
    before = tree_below(tmp_path)
    x = corpus / "a" / "x.conllu"
    assert "would both be" in error_of(capsys, "predict", model, x, x, "-o", f"{tmp_path}/out/")
    for pipe, name in (("-", "<stdin>"), ("/dev/null", "/dev/null")):
        problem = f"{name}: a pipe has no name for a file in the folder {tmp_path}/out/: name an output file"
        assert problem in error_of(capsys, "predict", model, pipe, x, "-o", f"{tmp_path}/out/")
    assert tree_below(tmp_path) == before


# ---------------------------------------------------------------- faults, and going on


def test_finished_files_stay_and_the_work_goes_on(model: str, corpus: Path, tmp_path: Path, capsys: Capture) -> None:
    out = tmp_path / "out"
    files = [corpus / name for name in sorted(NAMES)]
    command = ["predict", model, *files, "-o", f"{out}/"]
    assert run(*command) == 2
    error = capsys.readouterr().err
    assert (
        error.splitlines()[0] == "treeparse: 1 of 3 files done; the same command with --skip-existing does the others"
    )
    assert error.splitlines()[1].startswith(
        f"treeparse: error: {files[1]}:2: sentence bad: a line must have 10 columns, got 3"
    )
    [name] = tree_below(out)
    assert name == "a/x.conllu" and len(list(read_conllu(out / name))) == 4
    (out / name).write_text("mine")
    written(files[1], conllu(*SENTENCES))
    assert run(*command, "--skip-existing") == 0
    line = capsys.readouterr().err
    assert line.startswith("treeparse: 2 files, 6 sentences, ") and line.endswith("; 1 output there already\n")
    assert set(tree_below(out)) == NAMES and (out / name).read_text() == "mine"
    assert run(*command, "--skip-existing") == 0
    assert "treeparse: 0 sentences, 0 words, " in capsys.readouterr().err
    assert run("predict", model, files[0], "-o", out / name, "--skip-existing", "-q") == 0
    assert (out / name).read_text() == "mine"
    assert run(*command) == 0 and (out / name).read_text() != "mine"


def test_a_fault_behind_the_last_sentence_of_a_file_spares_it(
    model: str, source: str, tmp_path: Path, capsys: Capture
) -> None:
    bad, missing = written(tmp_path / "bad.conllu", conllu(["a"]) + BAD), tmp_path / "z.conllu.gz"
    assert run("predict", model, source, bad, "-o", f"{tmp_path}/out/", "-q") == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert os.listdir(tmp_path / "out") == ["in.conllu"]
    missing.write_bytes(b"no gzip")
    assert run("predict", model, source, missing, "-o", f"{tmp_path}/new/", "-q") == 2
    assert "no whole gzip file" in capsys.readouterr().err
    assert os.listdir(tmp_path / "new") == ["in.conllu"]


@pytest.mark.parametrize(("form", "data"), [("conllu", "\n"), ("text", " \n")])
def test_empty_files_in_a_folder(model: str, tmp_path: Path, capsys: Capture, form: str, data: str) -> None:
    files = [written(tmp_path / "0", data), written(tmp_path / "1", conllu(["a"]) if form == "conllu" else "a\n")]
    command = ["predict", model, *files, "-o", f"{tmp_path}/out/", "--format", form]
    assert run(*command) == 2 and "0: the file holds no sentence" in capsys.readouterr().err
    assert run(*command, "--skip-invalid") == 0
    assert capsys.readouterr().err.endswith("; 1 file without a sentence\n")
    assert [len(data) > 0 for _, data in sorted(tree_below(tmp_path / "out").items())] == [False, True]


# ---------------------------------------------------------------- long sentences


def test_long_sentences_are_left_out_and_counted(model: str, corpus: Path, tmp_path: Path, capsys: Capture) -> None:
    path, out = corpus / "b" / "x.conllu", tmp_path / "out.conllu"
    assert run("predict", model, path, "-o", out, "--max-words", 2, "--skip-invalid") == 0
    assert [sentence.words.forms for sentence in read_conllu(out)] == [("a", "b"), ("Verb1",)]
    summary = capsys.readouterr().err.strip().split("; ")
    assert summary[1:] == ["2 sentences left out", "3 sentences of more than 2 words left out"]
    written(path, conllu(("a", "b")))
    error = error_of(capsys, "predict", model, path, "-o", tmp_path / "no.conllu", "--max-words", 1)
    assert "no valid sentence of at most 1 words is left in" in error and not (tmp_path / "no.conllu").exists()


# ---------------------------------------------------------------- shards


@pytest.mark.parametrize("count", [1, 2, 3, 20])
@pytest.mark.parametrize("form", ["conllu", "text"])
def test_shards_of_sentences_join_to_the_whole(model: str, corpus: Path, tmp_path: Path, count: int, form: str) -> None:
    files: Sequence[Path | str] = [corpus / name for name in sorted(NAMES)]
    if form == "text":
        lines = [[("a", "b"), ("c",)], [("d", "e", "f")] * 3, [("g",)] * 5]
        files = [
            written(tmp_path / f"{number}.txt", "\n\n".join(map(" ".join, some))) for number, some in enumerate(lines)
        ]
    options = ["--format", form, "--skip-invalid", "--max-words", 11, "-q"]
    assert run("predict", model, *files, "-o", tmp_path / "whole", *options) == 0
    parts = [tmp_path / f"part-{number}" for number in range(1, count + 1)]
    for number, part in enumerate(parts, 1):
        assert run("predict", model, *files, "-o", part, "--shard", f"{number}/{count}", *options) == 0
    assert b"".join(part.read_bytes() for part in parts) == (tmp_path / "whole").read_bytes()
    assert count > 3 or all(part.stat().st_size for part in parts)


@pytest.mark.parametrize("count", [2, 5])
def test_shards_of_files_fill_the_folder_once(
    model: str, corpus: Path, tmp_path: Path, capsys: Capture, count: int
) -> None:
    command = ["predict", model, corpus / "*/*", "--skip-invalid", "-o"]
    assert run(*command, f"{tmp_path}/whole/") == 0
    files = 0
    for number in range(1, count + 1):
        capsys.readouterr()
        assert run(*command, f"{tmp_path}/{number}/", "--shard", f"{number}/{count}") == 0
        own = tree_below(tmp_path / str(number)) if (tmp_path / str(number)).exists() else {}
        assert (f"{len(own)} file" in capsys.readouterr().err) is bool(own)
        assert own.items() <= tree_below(tmp_path / "whole").items()
        files += len(own)
    assert files == 3


def trees(path: Path) -> dict[str | None, list[Parse]]:
    return dict(lists_of(path))


@pytest.mark.parametrize("replacement", [[], ["--without-replacement"]])
def test_samples_do_not_depend_on_shards_and_what_is_left_out(
    model: str, parser: Parser, corpus: Path, tmp_path: Path, replacement: list[str]
) -> None:
    command = ["sample", model, corpus / "*/*", "-k", 6, "--seed", 3, "--skip-invalid", *replacement]
    assert run(*command, "-o", tmp_path / "whole.jsonl") == 0
    whole = lists_of(tmp_path / "whole.jsonl")
    parts = []
    for number in range(1, 4):
        part = tmp_path / f"{number}.jsonl"
        assert run(*command, "-o", part, "--shard", f"{number}/3", "--chunk", 2) == 0
        parts += lists_of(part)
    assert [parses[0].tokens for _, parses in parts] == [parses[0].tokens for _, parses in whole]
    assert_same([parses for _, parses in parts], [parses for _, parses in whole])
    assert run(*command, "-o", f"{tmp_path}/out/", "--shard", "1/2", "--output-format", "jsonl") == 0
    assert run(*command, "-o", f"{tmp_path}/out/", "--shard", "2/2", "--output-format", "jsonl") == 0
    names = ["a/x.jsonl", "b/x.jsonl", "b/y.jsonl.gz"]
    apart = [parses for name in names for _, parses in lists_of(tmp_path / "out" / name)]
    assert_same(apart, [parses for _, parses in whole])
    assert run(*command, "-o", tmp_path / "short.jsonl", "--max-words", 3) == 0
    short = [parses for _, parses in whole if len(parses[0].tokens) <= 3]
    assert_same([parses for _, parses in lists_of(tmp_path / "short.jsonl")], short)
    assert_same([parses for _, parses in whole[:4]], parser.sample(SENTENCES, 6, seed=3, replacement=not replacement))
    one, other = (parses for _, parses in whole if parses[0].tokens == SENTENCES[2])  # of two files
    assert [(parse.heads, parse.labels) for parse in one] != [(parse.heads, parse.labels) for parse in other]


def test_sentences_without_ids_have_those_of_their_place(model: str, tmp_path: Path) -> None:
    nameless = conllu(("a",), ("b",), ("c", "d", "e"), ("f",)).replace("# sent_id = ", "# note = ")
    path = written(tmp_path / "in.conllu", nameless)
    names = []
    for number in (1, 2):
        part = tmp_path / f"{number}.conllu"
        options = ["--shard", f"{number}/2", "--max-words", 2]
        assert run("kbest", model, path, "-k", 2, "-o", part, *options) == 0
        names += [name for name, _ in lists_of(part)]
    assert names == ["sentence-1", "sentence-2", "sentence-4"]


def test_what_cannot_be_shared_out(model: str, source: str, capsys: Capture) -> None:
    error = error_of(capsys, "predict", model, source, "-", "--shard", "1/2")
    assert "<stdin>: a pipe cannot be read more than once" in error
    for shard in ("0/2", "3/2", "2", "a/b"):
        problem = f"argument --shard: must be i/n with i from 1 to n, such as 2/4, got {shard!r}"
        assert problem in error_of(capsys, "predict", model, source, f"--shard={shard}")


# ---------------------------------------------------------------- memory and raw text


@pytest.mark.slow
def test_memory_does_not_grow_with_the_input(model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def chain(self: Parser, sentences: Sequence[ConlluSentence], *_: object, **options: object) -> list[list[Parse]]:
        return [
            [Parse(s.forms, tuple(range(len(s))), ("dep",) * len(s), -1.0, 0.0)]
            for s in (each.words for each in sentences)
        ]

    def peak(count: int) -> int:
        words = ([f"w{number}", f"v{number}"] for number in range(count))
        path = written(tmp_path / "in.conllu", conllu(*words))
        gc.collect()  # so that the collector's next turns come at the same moments
        tracemalloc.start()
        assert run("predict", model, path, "-o", tmp_path / "out.conllu", "--chunk", 10, "-q") == 0
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    monkeypatch.setattr(Parser, "find_trees", chain)
    # The lower of two: what is loaded only once, whenever that may be, is not what grows with the input.
    peaks = [min(peak(count), peak(count)) for count in (100, 400, 2000)]
    assert peaks[2] < peaks[1] + 100_000  # 1,600 sentences take over a million bytes


def test_raw_text_is_noticed_once(model: str, parser: Parser, tmp_path: Path, capsys: Capture) -> None:
    parser.save_pretrained(tmp_path / "model")
    vocabulary = json.loads((tmp_path / "model" / "vocabulary.json").read_text())
    vocabulary["features"]["words"]["items"][-1] = [".", 9]
    (tmp_path / "model" / "vocabulary.json").write_text(json.dumps(vocabulary))
    config = json.loads((tmp_path / "model" / "config.json").read_text())
    del config["digests"]  # of the vocabulary as it was
    (tmp_path / "model" / "config.json").write_text(json.dumps(config))
    text = written(tmp_path / "in.txt", "They saw her duck.\nThey left.\nThey ran.\n")
    command = ["predict", tmp_path / "model", text, "-o", tmp_path / "out", "--format", "text", "--chunk", 1]
    assert run(*command) == 0
    warning, closing = capsys.readouterr().err.splitlines()
    assert warning.startswith("treeparse: warning: this looks like raw text: in the first sentence, the token 'duck.'")
    assert closing.startswith("treeparse: 3 sentences, 8 words")
    assert run(*command, "-q") == 0
    assert run("predict", tmp_path / "model", written(tmp_path / "t", "They left .\n"), "--format", "text", "-q") == 0
    assert capsys.readouterr().err == ""
