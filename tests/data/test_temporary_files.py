"""What a killed process leaves beside its output is removed by the next writer; what a living one holds is not."""

import errno
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from helpers.forked import ForkedProcess, Forks
from helpers.waiting import wait_until

from treeparse.data import temporary_files
from treeparse.data.outputs import atomic_folder, atomic_output, atomic_write
from treeparse.data.temporary_files import remove_all_leftovers, remove_leftovers

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such locks")

WRITER = """
import sys, time
from pathlib import Path
from treeparse.data.outputs import atomic_folder, atomic_output
path = Path(sys.argv[1])
with (atomic_folder(path) if path.name == "model" else atomic_output(path)) as output:
    if path.name == "model":
        (output / "weights").write_text("theirs")
    else:
        output.write("theirs")
    print("writing", flush=True)
    while not path.with_name("go").exists():
        time.sleep(0.01)
"""

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

NAMES = ("out.conllu", "out.conllu.gz", "model")


@contextmanager
def writer(forks: Forks, path: Path) -> Iterator[ForkedProcess]:
    """A process that has begun to write an output and goes on once there is a file ``go`` beside it."""
    with forks.begin(WRITER, path) as process:
        wait_until(lambda: bool(process.stdout()))
        yield process


def write(path: Path, text: str) -> None:
    if path.name == "model":
        with atomic_folder(path) as folder:
            (folder / "weights").write_text(text)
    else:
        atomic_write(path, text)


def kill(process: ForkedProcess) -> None:
    os.kill(process.pid, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL


@pytest.mark.parametrize("name", NAMES)
def test_what_a_killed_writer_left_is_removed(forks: Forks, tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    write(path, "before")
    with writer(forks, path) as process:
        kill(process)
    assert len(os.listdir(tmp_path)) == 2
    remove_leftovers([tmp_path / f"other-{name}", tmp_path / "missing" / name])
    assert len(os.listdir(tmp_path)) == 2  # it is not theirs
    remove_leftovers([str(path)])
    assert os.listdir(tmp_path) == [name]


@pytest.mark.parametrize("name", NAMES)
def test_what_a_living_writer_holds_stays_and_the_last_writer_wins(forks: Forks, tmp_path: Path, name: str) -> None:
    path, expected = tmp_path / name, tmp_path / "expected" / name
    expected.parent.mkdir()
    write(expected, "theirs")
    with writer(forks, path) as process:
        before = sorted(os.listdir(tmp_path))
        remove_leftovers([path])
        remove_all_leftovers(tmp_path)
        assert sorted(os.listdir(tmp_path)) == before
        write(path, "mine")
        (tmp_path / "go").touch()
        assert process.wait() == 0
    assert sorted(os.listdir(tmp_path)) == sorted(["expected", "go", name])
    files = (path / "weights", expected / "weights") if name == "model" else (path, expected)
    assert files[0].read_bytes() == files[1].read_bytes()


def test_the_next_writer_of_a_folder_removes_what_was_left(forks: Forks, tmp_path: Path) -> None:
    path = tmp_path / "model"
    with writer(forks, path) as process:
        kill(process)
    write(path, "mine")
    assert os.listdir(tmp_path) == ["model"]


def test_a_folder_that_had_given_way_is_put_back(forks: Forks, tmp_path: Path) -> None:
    """The process is killed when the old folder has another name, and the new one is not in its place."""
    path = tmp_path / "model"
    write(path, "before")
    assert forks.run(BETWEEN_RENAMES, path).returncode == -signal.SIGKILL
    assert not path.exists() and len(os.listdir(tmp_path)) == 2
    remove_leftovers([path])
    assert os.listdir(tmp_path) == ["model"] and (path / "weights").read_text() == "before"


def test_an_old_folder_without_the_new_one_is_put_back_or_removed(tmp_path: Path) -> None:
    for _ in range(2):
        (tmp_path / ".model.0123456789ab.old").mkdir()
        remove_leftovers([tmp_path / "model"])
        assert os.listdir(tmp_path) == ["model"]


def test_two_folders_written_at_once_end_well(tmp_path: Path) -> None:
    path = tmp_path / "model"
    with atomic_folder(path) as first:
        (first / "first").touch()
        with atomic_folder(path) as second:
            (second / "second").touch()
        assert os.listdir(path) == ["second"] and first.is_dir()
    assert os.listdir(path) == ["first"] and os.listdir(tmp_path) == ["model"]


def test_a_folder_that_appears_between_the_renames_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, rename = tmp_path / "model", os.rename
    calls = []

    def overtaken(source: Path, target: Path) -> None:
        calls.append(source)
        if len(calls) == 2:
            path.mkdir()
            (path / "another").touch()
        rename(source, target)

    monkeypatch.setattr(os, "rename", overtaken)
    with atomic_folder(path) as folder:
        (folder / "mine").touch()
    assert os.listdir(path) == ["mine"] and os.listdir(tmp_path) == ["model"]


@pytest.mark.parametrize("code", [errno.ENOLCK, errno.EBADF, errno.ENOTSUP])
def test_without_locks_all_is_written_and_nothing_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    def fail(descriptor: int) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(temporary_files, "_lock", fail)
    names = [".model.0123456789ab.tmp", ".out.0123456789ab.tmp"]
    for name in names:
        (tmp_path / name).touch()
    for name in ("model", "out"):
        remove_leftovers([tmp_path / name])
        write(tmp_path / name, "mine")
    assert sorted(os.listdir(tmp_path)) == [*names, "model", "out"]


@pytest.mark.parametrize("name", ["out", "model"])
def test_a_file_that_was_taken_for_a_leftover_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Another process removes what was just made, before its maker has the lock; of a file it still holds that."""
    lock, calls = temporary_files._lock, []

    def too_late(descriptor: int) -> None:
        calls.append(descriptor)
        if len(calls) == 1:
            [left] = tmp_path.iterdir()
            left.rmdir() if left.is_dir() else left.unlink()
            if name == "out":
                raise BlockingIOError
        lock(descriptor)

    monkeypatch.setattr(temporary_files, "_lock", too_late)
    write(tmp_path / name, "mine")
    assert len(calls) == 2 and os.listdir(tmp_path) == [name]


@pytest.mark.parametrize("name", ["out", "model"])
def test_an_interrupt_before_the_lock_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    def interrupted(_: int) -> None:
        assert len([*tmp_path.iterdir()]) == 1
        raise KeyboardInterrupt

    monkeypatch.setattr(temporary_files, "_lock", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write(tmp_path / name, "mine")
    assert not [*tmp_path.iterdir()]


def test_a_long_name_beyond_ascii_can_be_written(tmp_path: Path) -> None:
    path = tmp_path / ("語" * 80)  # of 240 bytes, where 255 are allowed
    atomic_write(path, "mine")
    with pytest.raises(KeyboardInterrupt), atomic_output(path) as output:
        output.write("half")
        raise KeyboardInterrupt
    assert os.listdir(tmp_path) == [path.name]


def test_a_link_is_no_leftover(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    (tmp_path / ".out.0123456789ab.tmp").symlink_to(tmp_path / "mine")
    remove_leftovers([tmp_path / "out"])
    assert (tmp_path / "mine").read_text() == "mine"
