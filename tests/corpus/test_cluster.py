"""A corpus on a cluster: files of any storage, outputs that appear whole, a manifest; by Ray where it is installed."""

import hashlib
import json
import os
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from helpers.commands import Capture

from treeparse.cli.main import main
from treeparse.corpus import CorpusRequest, TreeRequest, parse_corpus
from treeparse.corpus.cluster import add_to_manifest, read_manifest
from treeparse.corpus.cluster_files import UNFINISHED, FailedFile, FileParser, FinishedFile, file_tasks
from treeparse.errors import DataError, TreeparseError
from treeparse.model import Parser

pytestmark = pytest.mark.usefixtures("one_thread")
NAMES = ["a.conllu", "b.conllu.gz", "deeper/c.conllu"]
FAULTY = "1\tfew columns\n\n"


def conllu(words: int, count: int) -> str:
    rows = "".join(f"{word}\tw{word}\t_\tX\t_\t_\t_\t_\t_\t_\n" for word in range(1, words + 1))
    return f"{rows}\n" * count


@pytest.fixture
def folder(parser: Parser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a model and three files, of which the last one has a faulty sentence."""
    from treeparse.data.outputs import atomic_write

    monkeypatch.chdir(tmp_path)
    parser.save_pretrained("model")
    for number, name in enumerate(NAMES):
        os.makedirs(os.path.dirname(f"in/{name}"), exist_ok=True)
        atomic_write(f"in/{name}", conllu(number + 3, 5) + (FAULTY if number == 2 else ""))
    return tmp_path


@pytest.fixture(params=["paths", "URLs"])
def base(request: pytest.FixtureRequest, folder: Path) -> str:
    """What paths begin with: nothing, or the URL of the current folder."""
    pytest.importorskip("fsspec")
    return "" if request.param == "paths" else f"{folder.as_uri()}/"


def load(folder: Path) -> Parser:
    return Parser.from_pretrained(folder / "model", mapped=True)


def requested(base: str, **options: Any) -> CorpusRequest:
    return CorpusRequest([f"{base}in/**/*.conllu*"], f"{base}out/", **options)


def parse_files(folder: Path, request: CorpusRequest) -> list[FinishedFile | FailedFile]:
    parser = FileParser(partial(load, folder), request, {"model": "digest"}, threads=1)
    assert parser.load() is None
    return [parser.parse(task) for task in file_tasks(request)]


def outputs(folder: str) -> dict[str, bytes]:
    files = [path for path in Path(folder).rglob("*") if path.is_file() and path.name != "manifest.jsonl"]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def test_files_are_those_of_a_command_once_they_are_published(folder: Path, base: str) -> None:
    """Chunks end where files end, since the last digits of probabilities depend on what is parsed at once."""
    options = {"trees": TreeRequest("sample", 2, seed=3), "skip_invalid": True, "chunk": 5}
    results = parse_files(folder, requested(base, faults=f"{base}faults/", **options))
    assert all(UNFINISHED in name for name in [*outputs("out"), *outputs("faults")])
    finished = [result for result in results if isinstance(result, FinishedFile)]
    for result in finished:
        result.publish()
    parse_corpus(load(folder), CorpusRequest(["in/**/*.conllu*"], "one/", **options))
    assert outputs("out") == outputs("one") and sorted(outputs("out")) == sorted(NAMES)
    [fault] = [json.loads(text) for text in outputs("faults").values() if text and not text.startswith(b"\x1f\x8b")]
    assert fault["file"] == f"{base or f'{folder}/'}in/deeper/c.conllu" and fault["line"] == 31
    assert finished[0].line["output_sha256"] == f"sha256:{hashlib.sha256(outputs('out')['a.conllu']).hexdigest()}"
    assert finished[0].line["sentences"] == 5 and finished[0].line["models"] == {"model": "digest"}


def test_a_faulty_file_leaves_the_others(folder: Path, base: str) -> None:
    *whole, failed = parse_files(folder, requested(base))
    assert all(isinstance(result, FinishedFile) for result in whole)
    assert isinstance(failed, FailedFile)
    problem = f"{base or f'{folder}/'}in/deeper/c.conllu:31: a line must have 10 columns, got 2"
    assert failed.problem.startswith(problem)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"output": "out.conllu"}, "is one file: name a folder"),
        ({"output": "in/"}, "would replace an input"),
        ({"inputs": ["in/missing*"]}, "no file matches"),
        ({"inputs": ["file:///missing/*.conllu"]}, "no file matches 'file:///missing"),
        ({"inputs": ["nobody://x/*"]}, "nobody://x/.* cannot be opened"),
        ({"inputs": ["-"]}, "^<stdin>: a pipe cannot be read more than once"),
        ({"inputs": ["/dev/null"]}, "^/dev/null: a pipe cannot be read more than once"),
    ],
)
def test_requests_that_no_cluster_can_do(folder: Path, options: dict[str, Any], problem: str) -> None:
    pytest.importorskip("fsspec")
    with pytest.raises(TreeparseError, match=problem):
        file_tasks(CorpusRequest(**{"inputs": ["in/**/*.conllu*"], "output": "out/"} | options))


def test_a_manifest_grows_by_lines_and_the_last_one_of_an_output_counts(tmp_path: Path) -> None:
    path = tmp_path / "deeper" / "manifest.jsonl"
    add_to_manifest(path, {"output": "a", "words": 1})
    add_to_manifest(path, {"output": "b", "words": 2})
    add_to_manifest(path, {"output": "a", "words": 3})
    assert read_manifest(path) == {"a": {"output": "a", "words": 3}, "b": {"output": "b", "words": 2}}


@pytest.mark.parametrize("line", [b"{", b"3", b'{"words": 3}', b'{"output": 3}', b"\xff"])
def test_a_damaged_manifest(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "manifest.jsonl"
    add_to_manifest(path, {"output": "name of any bytes: \udcff"})
    assert read_manifest(path).keys() == {"name of any bytes: \udcff"}
    path.write_bytes(path.read_bytes() + line + b"\n")
    with pytest.raises(DataError, match=r"manifest.jsonl:2: a line of a manifest is a JSON object"):
        read_manifest(path)


def test_a_cluster_needs_ray(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    assert main(["predict", "-q", "model", "in/a.conllu", "-o", "out/", "--ray", "local"]) == 2
    assert "pip install treeparse[ray]" in capsys.readouterr().err
    assert main(["predict", "-q", "model", "s3://in/a.conllu", "-o", "s3://out/", "--ray", "local"]) == 2
    assert "--manifest" in capsys.readouterr().err


@pytest.mark.slow
def test_ray_parses_each_file_once(folder: Path, capsys: Capture) -> None:
    """A worker is killed while it parses; the faulty file is named, and what is missing is parsed by a second start."""
    ray = pytest.importorskip("ray")
    for number in range(8):
        Path(f"in/{number}.conllu").write_text(conllu(4, 300), encoding="utf-8")
    assert not Path("killed").exists()
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    try:
        command = ["predict", "model", "in/**/*.conllu*", "-o", "out/", "--ray", "local", "--import", "killed_once"]
        Path("killed_once.py").write_text(
            "import os, pathlib, signal, threading\n"
            "mark = pathlib.Path('killed')\n"
            "if 'RAY_JOB_ID' in os.environ and not mark.exists():\n"
            "    mark.touch()\n"
            "    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGKILL)).start()\n",
            encoding="utf-8",
        )
        assert main(command) == 2
        error = capsys.readouterr().err
        assert Path("killed").exists()
        assert "1 of 11 files have no output" in error and "deeper/c.conllu:31" in error
        assert len(outputs("out")) == 10 and not any(UNFINISHED in name for name in outputs("out"))
        Path("out/a.conllu").unlink()
        assert main([*command, "--skip-invalid"]) == 0
        assert "2 files, 10 sentences" in " ".join(capsys.readouterr().err.split())
    finally:
        ray.shutdown()
    parse_corpus(load(folder), CorpusRequest(["in/**/*.conllu*"], "one/", skip_invalid=True))
    assert outputs("out") == outputs("one")
    manifest = read_manifest("out/manifest.jsonl")
    assert sorted(manifest) == sorted(f"{folder}/out/{name}" for name in outputs("out"))
    for path, line in manifest.items():
        assert line["output_sha256"] == f"sha256:{hashlib.sha256(Path(path).read_bytes()).hexdigest()}"
