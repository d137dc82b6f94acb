"""Files and folders appear whole, and are found again after their writer was killed."""

import errno
import io
import os
import signal
import stat
import sys
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest
from helpers.forked import Forks

from treeparse.data.outputs import atomic_folder, atomic_output, atomic_write, check_folder, restore_folder
from treeparse.errors import TreeparseError


class RecordingStream(io.BytesIO):
    """Bytes that remember what had been written at each flush."""

    def __init__(self) -> None:
        super().__init__()
        self.flushed: list[bytes] = []

    def flush(self) -> None:
        self.flushed.append(self.getvalue())


def test_output_takes_text_and_bytes(tmp_path):
    path = tmp_path / "out.txt"
    with atomic_output(path) as output:
        assert output.write("é\r\n") == 3
        output.write(b"\xff")
    assert path.read_bytes() == "é\r\n".encode() + b"\xff"


@pytest.mark.parametrize("name", ["out.txt", "out.txt.gz"])
@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, GeneratorExit])
def test_exception_leaves_the_old_file_and_nothing_else(tmp_path, name, error):
    path = tmp_path / name
    path.write_bytes(b"old")
    with pytest.raises(error), atomic_output(path) as output:
        output.write(b"new" * 100_000)
        assert path.read_bytes() == b"old"
        raise error
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == [name]


def test_new_file_obeys_the_umask_and_a_replaced_one_keeps_its_permissions(tmp_path):
    new, old = tmp_path / "new", tmp_path / "old"
    old.write_bytes(b"old")
    old.chmod(0o604)
    umask = os.umask(0o027)
    try:
        atomic_write(new, b"x")
        atomic_write(old, b"x")
    finally:
        os.umask(umask)
    assert stat.S_IMODE(new.stat().st_mode) == 0o640
    assert stat.S_IMODE(old.stat().st_mode) == 0o604


def test_writes_through_a_symbolic_link(tmp_path):
    (tmp_path / "folder").mkdir()
    target, link = tmp_path / "folder" / "target", tmp_path / "link"
    target.write_bytes(b"old")
    link.symlink_to(target)
    atomic_write(link, "new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"


def test_gzip_output_names_no_file_and_no_time(tmp_path):
    atomic_write(tmp_path / "a.gz", "text")
    assert (tmp_path / "a.gz").read_bytes()[3:8] == bytes(5)  # no flags (no name), modification time 0


def test_standard_output_is_flushed_write_by_write(monkeypatch):
    stream = RecordingStream()
    monkeypatch.setattr(sys, "stdout", SimpleNamespace(buffer=stream, flush=lambda: None))
    with atomic_output("-") as output:
        output.write("a")
        output.write(b"b")
    assert stream.flushed == [b"a", b"ab"]
    assert not stream.closed


def test_device_is_written_and_not_replaced():
    atomic_write("/dev/null", b"x")
    assert not os.path.isfile("/dev/null")


def test_outputs_that_cannot_be_are_refused(tmp_path):
    for path, problem in ((tmp_path, "it is a folder"), (tmp_path / "no" / "out", "the folder .*no does not exist")):
        with pytest.raises(TreeparseError, match=problem):
            atomic_write(path, b"x")


def test_system_that_opens_no_folders_and_has_no_fchmod(tmp_path, monkeypatch):
    own_open = os.open

    def refuse_the_folder(path, *arguments, **options):
        if path == tmp_path:
            raise PermissionError(13, "Permission denied", str(path))
        return own_open(path, *arguments, **options)

    monkeypatch.setattr(os, "open", refuse_the_folder)
    monkeypatch.delattr(os, "fchmod")
    old = tmp_path / "old"
    old.write_bytes(b"old")
    old.chmod(0o604)
    for path in (old, tmp_path / "new"):
        atomic_write(path, b"x")
        assert path.read_bytes() == b"x"
    assert stat.S_IMODE(old.stat().st_mode) == 0o604
    for _ in range(2):
        with atomic_folder(tmp_path / "model") as folder:
            (folder / "weights").touch()
    assert sorted(os.listdir(tmp_path)) == ["model", "new", "old"]


@pytest.mark.parametrize(("code", "written"), [(errno.EINVAL, True), (errno.ENOTSUP, True), (errno.EIO, False)])
def test_folder_that_cannot_be_synced(tmp_path, monkeypatch, code, written):
    """Some file systems do not know how, which does no harm; a disk that fails does."""

    def fail_for_folders(descriptor):
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "fsync", fail_for_folders)
    with nullcontext() if written else pytest.raises(OSError, match="Input/output"):
        atomic_write(tmp_path / "file", b"x")


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_failed_write_leaves_the_old_file(tmp_path, monkeypatch, step):
    def fail(*_):
        raise OSError(errno.EIO, "Input/output error")

    (tmp_path / "file").write_bytes(b"old")
    monkeypatch.setattr(os, step, fail)
    with pytest.raises(OSError, match="Input/output"):
        atomic_write(tmp_path / "file", b"x")
    assert os.listdir(tmp_path) == ["file"]
    assert (tmp_path / "file").read_bytes() == b"old"


def test_a_long_name_beyond_ascii_can_be_written(tmp_path):
    path = tmp_path / ("語" * 80)  # of 240 bytes, where 255 are allowed
    atomic_write(path, "mine")
    with pytest.raises(KeyboardInterrupt), atomic_output(path) as output:
        output.write("half")
        raise KeyboardInterrupt
    assert os.listdir(tmp_path) == [path.name]


def test_two_writers_of_one_file_do_not_meet_and_the_last_one_wins(tmp_path):
    path = tmp_path / "out"
    with atomic_output(path) as first:
        first.write("first")
        atomic_write(path, "second")
        assert path.read_text() == "second"
    assert path.read_text() == "first" and os.listdir(tmp_path) == ["out"]


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
