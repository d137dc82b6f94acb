"""Folders appear whole, and are found again after their writer was killed."""

import os
import signal
import sys
from pathlib import Path

import pytest
from helpers.forked import Forks

from treeparse.data.outputs import atomic_folder, check_folder, restore_folder
from treeparse.errors import TreeparseError


def make_folder(path: Path, *names: str) -> None:
    path.mkdir()
    for name in names:
        (path / name).write_text(name)


def test_folder_appears_whole_and_takes_the_place_of_an_old_one(tmp_path):
    path = tmp_path / "model"
    for names in (["a", "b"], ["b", "c"]):
        before = sorted(os.listdir(path)) if path.exists() else None
        with atomic_folder(str(path)) as folder:
            assert folder.parent == tmp_path
            for name in names:
                (folder / name).write_text(name)
            assert (sorted(os.listdir(path)) if path.exists() else None) == before
        assert sorted(os.listdir(path)) == names
        assert os.listdir(tmp_path) == ["model"]


@pytest.mark.parametrize("exists", [False, True])
@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_exception_leaves_the_old_folder_and_nothing_else(tmp_path, exists, error):
    path = tmp_path / "model"
    if exists:
        make_folder(path, "old")
    with pytest.raises(error), atomic_folder(path) as folder:
        (folder / "new").touch()
        raise error
    assert os.listdir(tmp_path) == (["model"] if exists else [])
    assert not exists or os.listdir(path) == ["old"]


def test_folder_whose_second_rename_fails_is_put_back(tmp_path, monkeypatch):
    path = tmp_path / "model"
    make_folder(path, "old")
    rename = os.rename

    def fail_for_the_new(source, target):
        if str(source).endswith(".tmp"):
            raise OSError("disk on fire")
        rename(source, target)

    monkeypatch.setattr(os, "rename", fail_for_the_new)
    with pytest.raises(OSError, match="disk on fire"), atomic_folder(path) as folder:
        (folder / "new").touch()
    assert os.listdir(tmp_path) == ["model"]
    assert os.listdir(path) == ["old"]


def test_folder_is_replaced_behind_a_symbolic_link(tmp_path):
    make_folder(tmp_path / "real", "old")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with atomic_folder(tmp_path / "link") as folder:
        (folder / "new").touch()
    assert (tmp_path / "link").is_symlink()
    assert os.listdir(tmp_path / "real") == ["new"]


def test_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "file").touch()
    for name, problem in (("file", "must be a folder, but a file has that name"), ("no/x", "does not exist; create")):
        with pytest.raises(TreeparseError, match=problem), atomic_folder(tmp_path / name):
            pass
    assert os.listdir(tmp_path) == ["file"]


BETWEEN_RENAMES = """
import os, signal, sys
from treeparse.data.outputs import atomic_folder
rename = os.rename
def killed(source, target):
    if str(source).endswith(".tmp"):
        os.kill(os.getpid(), signal.SIGKILL)
    rename(source, target)
os.rename = killed
with atomic_folder(sys.argv[1]) as folder:
    (folder / "weights").write_text("theirs")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signal")
@pytest.mark.parametrize("way", ["restore", "check", "write"])
def test_the_old_folder_of_a_killed_writer_is_put_back(forks: Forks, tmp_path: Path, way: str) -> None:
    """The process is killed when the old folder has another name, and the new one does not yet have it."""
    path = tmp_path / "model"
    make_folder(path, "before")
    assert forks.run(BETWEEN_RENAMES, path).returncode == -signal.SIGKILL
    assert not path.exists()
    if way == "restore":
        restore_folder(path)
    elif way == "check":
        check_folder(path)
    else:
        with pytest.raises(KeyboardInterrupt), atomic_folder(path):
            raise KeyboardInterrupt
    assert os.listdir(path) == ["before"] and not (tmp_path / ".model.old").exists()


def test_the_old_folder_of_a_writer_that_was_killed_later_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "model"
    make_folder(path, "before")
    make_folder(tmp_path / ".model.old", "older")
    restore_folder(path)
    assert os.listdir(path) == ["before"]
    with atomic_folder(path) as folder:
        (folder / "new").touch()
    assert os.listdir(tmp_path) == ["model"] and os.listdir(path) == ["new"]
