"""The command serve: names of models, limits, and how it starts and ends."""

import json
import os
import re
import signal
import socket
import urllib.error
import urllib.request
from dataclasses import fields
from pathlib import Path

import pytest
from helpers.commands import Capture, error_of
from helpers.forked import COMMAND, Forks
from helpers.waiting import wait_until

pytest.importorskip("aiohttp")

from treeparse import serve as room
from treeparse.cli import main as cli
from treeparse.cli.commands import serve
from treeparse.errors import TreeparseError


def test_defaults_are_as_help_shows_them(monkeypatch: pytest.MonkeyPatch, model: str) -> None:
    given: list[object] = []
    monkeypatch.setattr(serve, "serve", lambda models, **options: given.extend([list(models), options]))
    assert cli.main(["serve", f"one={model}", f"two={model}"]) == 0
    names, options = given
    assert names == ["one", "two"] and isinstance(options, dict)
    assert options.pop("limits") == room.Limits()
    options.pop("ready")
    assert options == {"host": room.HOST, "port": room.PORT, "origins": [], "tokenizer": None}


def test_sites_and_a_tokenizer_can_be_named(monkeypatch: pytest.MonkeyPatch, model: str) -> None:
    given: dict[str, object] = {}
    monkeypatch.setattr(serve, "serve", lambda models, **options: given.update(options))
    monkeypatch.setattr(serve, "tokenizer_named", lambda name: f"splits by {name}")
    assert cli.main(["serve", model, "--tokenizer", "spacy:en", "--allow-origin", "https://a.org"]) == 0
    assert (given["tokenizer"], given["origins"]) == ("splits by spacy:en", ["https://a.org"])


def test_every_limit_can_be_set(monkeypatch: pytest.MonkeyPatch, model: str) -> None:
    given: list[room.Limits] = []
    monkeypatch.setattr(serve, "serve", lambda models, *, limits, **options: given.append(limits))
    options = "--max-megabytes 1 --max-words 2 --max-sentence-words 3 --max-trees 4 --waiting 5 --seconds 6.5"
    assert cli.main(["serve", model, *options.split(), "--client-seconds", "7"]) == 0
    assert [getattr(given[0], field.name) for field in fields(room.Limits)] == [1 << 20, 2, 3, 4, 5, 6.5, 7]


def test_names_of_models(tmp_path: Path) -> None:
    (tmp_path / "a=b").mkdir()
    folder = str(tmp_path / "a=b")
    given = ["runs/english/model", "runs/latin/", "x=runs/turkish", folder]
    assert serve.named_folders(given) == {
        "english": "runs/english/model",
        "latin": "runs/latin/",
        "x": "runs/turkish",
        "a=b": folder,
    }
    with pytest.raises(TreeparseError, match=r"runs/a and elsewhere/a are both called a: give names, NAME=FOLDER."):
        serve.named_folders(["runs/a", "elsewhere/a"])
    for wrong in ("=runs/a", "a=", ""):
        with pytest.raises(TreeparseError, match="must be NAME=FOLDER or FOLDER, got"):
            serve.named_folders([wrong])


def test_a_port_that_is_taken(model: str, capsys: Capture) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        problem = f"The server cannot listen at 127.0.0.1, port {port}: "
        assert problem in error_of(capsys, "serve", model, "--port", port)


@pytest.mark.parametrize(
    ("number", "code", "end"),
    [(signal.SIGTERM, 0, ""), (signal.SIGINT, 0, ""), (signal.SIGHUP, 129, "treeparse: error: hung up\n")],
)
def test_it_serves_until_it_is_told_to_stop(
    model: str, forks: Forks, number: signal.Signals, code: int, end: str
) -> None:
    with forks.begin(COMMAND, "serve", f"mine={model}", "--port", "0", "--threads", "1", anew=["treeparse"]) as process:
        wait_until(lambda: "\n" in process.stderr(), seconds=50)
        line = process.stderr()
        found = re.fullmatch(r"treeparse: serving 1 model, mine, at (http://127.0.0.1:\d+/process)\n", line)
        assert found, line
        with urllib.request.urlopen(f"{found[1]}?input=horizontal&data=They+saw") as answer:
            assert json.load(answer)["model"] == "mine"
        with pytest.raises(urllib.error.HTTPError) as fault:
            urllib.request.urlopen(f"{found[1]}?data=They")
        fault.value.close()
        os.kill(process.pid, number)
        assert (process.wait(), process.stderr()) == (code, line + end)
