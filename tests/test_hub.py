"""Models of the Hugging Face hub, whose place a folder takes here: its files, and no others, come and go."""

import shutil
from pathlib import Path
from typing import Any

import huggingface_hub
import pytest
from helpers.commands import Capture
from helpers.parsers import CONFIG, TRAINING
from huggingface_hub.errors import LocalEntryNotFoundError

from treeparse import Parser
from treeparse.cli.main import main
from treeparse.errors import TreeparseError
from treeparse.model import folder

MODEL = ["config.json", "model.safetensors", "vocabulary.json"]
WORDS = [["det1", "noun2", "verb1"]]


class Hub:
    """A hub of one model, ``org/name``, and its copies on this machine."""

    def __init__(self, folder: Path) -> None:
        self.there, self.copies, self.calls = folder / "there", folder / "copies", list[tuple[str, Any]]()
        self.reachable = True

    def snapshot_download(self, name: str, **options: Any) -> str:
        copy = self.copies / str(options["revision"])
        self.calls.append(("local" if options["local_files_only"] else "network", options["revision"]))
        if options["local_files_only"]:
            if not copy.is_dir():
                raise LocalEntryNotFoundError("no snapshot")
            return str(copy)
        if not self.reachable or name != "org/name":
            raise OSError("404 Client Error.\nMore of it")  # of which the errors of the hub are
        copy.mkdir(parents=True, exist_ok=True)
        for path in self.there.iterdir():
            if path.name in options["allow_patterns"]:
                shutil.copy(path, copy)
        return str(copy)


@pytest.fixture
def one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hub:
    Parser.build(CONFIG, TRAINING).save_pretrained(tmp_path / "there")
    (tmp_path / "there" / "evil.py").write_text("raise SystemExit")
    found = Hub(tmp_path)
    monkeypatch.setattr(huggingface_hub, "snapshot_download", found.snapshot_download)
    monkeypatch.chdir(tmp_path)
    return found


def test_a_model_comes_from_the_hub_once(one: Hub) -> None:
    expected = Parser.from_pretrained(one.there).parse(WORDS)
    assert Parser.from_pretrained("org/name").parse(WORDS) == expected
    assert one.calls == [("local", None), ("network", None)]
    one.reachable = False
    assert Parser.from_pretrained("org/name").parse(WORDS) == expected
    assert one.calls[2:] == [("local", None)]
    assert sorted(path.name for path in (one.copies / "None").iterdir()) == MODEL


def test_a_copy_that_is_not_whole_is_fetched_again(one: Hub) -> None:
    Parser.from_pretrained("org/name", revision="v2")
    (one.copies / "v2" / "model.safetensors").unlink()
    Parser.from_pretrained("org/name", revision="v2")
    assert one.calls == [("local", "v2"), ("network", "v2")] * 2


def test_commands_take_a_model_of_the_hub(one: Hub, capsys: Capture) -> None:
    Path("text.txt").write_text("det1 noun2 verb1\n", encoding="utf-8")
    shown = []
    for model in ("org/name", str(one.there)):
        assert main(["predict", model, "text.txt", "--format", "text", "-q"]) == 0
        shown.append(capsys.readouterr().out)
    assert shown[0] == shown[1] and "noun2" in shown[0]


@pytest.mark.parametrize(
    ("name", "revision", "problem"),
    [
        ("org/other", None, r"no folder org/other, and the .* hub gave no model of that name \(404 Client Error\)"),
        ("org/other", "v1", "of that name with a revision 'v1'"),
        ("there", "v1", "there is a folder, which has no revisions"),
    ],
)
def test_what_is_not_there(one: Hub, name: str, revision: str | None, problem: str) -> None:
    with pytest.raises(TreeparseError, match=problem):
        Parser.from_pretrained(name, revision=revision)


def test_a_mistyped_folder_does_not_ask_the_network(one: Hub) -> None:
    for name in ("copies/name", "nothing", "a/b/c", str(one.there / "x")):
        one.copies.mkdir(exist_ok=True)
        with pytest.raises(TreeparseError, match="There is no folder"):
            Parser.from_pretrained(name)
    assert one.calls == []


class Api:
    """What goes to the hub."""

    def __init__(self) -> None:
        self.done: list[tuple[str, ...]] = []
        self.refuses = False

    def create_repo(self, name: str, *, private: bool, exist_ok: bool) -> str:
        assert exist_ok
        if self.refuses:
            raise OSError("403 Forbidden")
        self.done.append(("made", name, "private" if private else "public"))
        return f"https://hub.invalid/{name}"

    def create_branch(self, name: str, *, branch: str, exist_ok: bool) -> None:
        assert exist_ok
        self.done.append(("branch", name, branch))

    def upload_folder(self, *, repo_id: str, folder_path: Path, allow_patterns: list[str], **options: Any) -> None:
        files = sorted(path.name for path in folder_path.iterdir() if path.name in allow_patterns)
        self.done.append(("sent", repo_id, str(options["revision"]), *files))


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Api:
    found = Api()
    monkeypatch.setattr(huggingface_hub, "HfApi", lambda: found)
    return found


def test_pushing(one: Hub, api: Api, capsys: Capture) -> None:
    (one.there / "README.md").write_text("a card", encoding="utf-8")
    assert main(["push", str(one.there), "org/name", "--private", "--revision", "trial"]) == 0
    assert capsys.readouterr().out == "https://hub.invalid/org/name\n"
    assert api.done == [
        ("made", "org/name", "private"),
        ("branch", "org/name", "trial"),
        ("sent", "org/name", "trial", "README.md", *MODEL),
    ]
    assert Parser.from_pretrained(one.there).push_to_hub("org/name") == "https://hub.invalid/org/name"
    assert api.done[3:] == [("made", "org/name", "public"), ("sent", "org/name", "None", *MODEL)]


def test_nothing_unsound_is_pushed(one: Hub, api: Api) -> None:
    with pytest.raises(TreeparseError, match="is called organisation/name, not 'name'"):
        folder.push(one.there, "name")
    (one.there / "vocabulary.json").write_text("{}", encoding="utf-8")
    with pytest.raises(TreeparseError, match="damaged"):
        folder.push(one.there, "org/name")
    assert api.done == []


def test_a_hub_that_refuses(one: Hub, api: Api) -> None:
    api.refuses = True
    with pytest.raises(TreeparseError, match=r"was not put on the hub as org/name \(403 Forbidden\): .*hf auth login"):
        folder.push(one.there, "org/name")
