import errno
import gzip
import io
import os
import stat
import sys
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest

from treeparse.data.files import (
    MAX_LINE,
    atomic_folder,
    atomic_output,
    atomic_write,
    expand_paths,
    numbered_lines,
    open_input,
)
from treeparse.errors import DataError, TreeparseError


class RecordingStream(io.BytesIO):
    """Bytes that remember what had been written at each flush."""

    def __init__(self) -> None:
        super().__init__()
        self.flushed: list[bytes] = []

    def flush(self) -> None:
        self.flushed.append(self.getvalue())


def read(path: Path | str) -> bytes:
    with open_input(path) as stream:
        return stream.read()


def test_reads_plain_and_gzip_files_byte_for_byte(tmp_path):
    data = b"\xef\xbb\xbfa\r\nb\n\xff\x00"
    (tmp_path / "plain").write_bytes(data)
    (tmp_path / "packed.gz").write_bytes(gzip.compress(data))
    assert read(tmp_path / "plain") == read(str(tmp_path / "packed.gz")) == data


def test_reads_standard_input_and_leaves_it_open(monkeypatch):
    stdin = io.BytesIO(b"a\r\n")
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=stdin))
    assert read("-") == b"a\r\n"
    assert not stdin.closed


@pytest.mark.parametrize("damage", [lambda data: data[:-6], lambda data: b"no gzip" + data, lambda data: data[:12] * 2])
def test_damaged_gzip_file_is_named(tmp_path, damage):
    path = tmp_path / "damaged.gz"
    path.write_bytes(damage(gzip.compress(os.urandom(100))))
    with pytest.raises(DataError, match=r"damaged\.gz: this is no whole gzip file"):
        read(path)


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


def test_failed_rename_leaves_nothing_behind(tmp_path, monkeypatch):
    def fail(source, target):
        raise OSError("disk on fire")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk on fire"):
        atomic_write(tmp_path / "out", b"new")
    assert os.listdir(tmp_path) == []


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


def test_gzip_output_is_the_same_every_time_and_names_no_file(tmp_path):
    first, second = tmp_path / "a.gz", tmp_path / "b.gz"
    atomic_write(first, "text\n" * 1000)
    atomic_write(second, "text\n" * 1000)
    assert first.read_bytes() == second.read_bytes()
    assert first.read_bytes()[3:8] == bytes(5)  # no flags (no name), modification time 0
    assert gzip.decompress(first.read_bytes()) == b"text\n" * 1000


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


def test_folder_as_output_is_refused(tmp_path):
    with pytest.raises(TreeparseError, match="it is a folder"):
        atomic_write(tmp_path, b"x")


def test_missing_folder_of_an_output_is_named(tmp_path):
    with pytest.raises(TreeparseError, match=r"the folder .*missing does not exist"):
        atomic_write(tmp_path / "missing" / "out", b"x")


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
    with pytest.raises(TreeparseError, match="there is a file of that name"), atomic_folder(tmp_path / "file"):
        pass
    with pytest.raises(TreeparseError, match="does not exist; create it first"), atomic_folder(tmp_path / "no" / "x"):
        pass
    assert os.listdir(tmp_path) == ["file"]


def test_expands_globs_in_order_and_variables(tmp_path, monkeypatch):
    for name in ("b.conllu", "a.conllu", "c.txt"):
        (tmp_path / name).touch()
    (tmp_path / "folder.conllu").mkdir()
    (tmp_path / "folder.conllu" / "d.conllu").touch()
    monkeypatch.setenv("TREEBANKS", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    found = expand_paths(["~/c.txt", "$TREEBANKS/*.conllu", "-", tmp_path / "**" / "d.conllu"])
    names = ["c.txt", "a.conllu", "b.conllu", None, "folder.conllu/d.conllu"]
    assert found == [Path("-") if name is None else tmp_path / name for name in names]


def test_existing_name_with_glob_characters_is_taken_literally(tmp_path):
    for name in ("x[1].conllu", "x1.conllu"):
        (tmp_path / name).touch()
    assert expand_paths([tmp_path / "x[1].conllu"]) == [tmp_path / "x[1].conllu"]


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("missing.conllu", r"there is no file .*missing\.conllu"),
        ("*.nothing", r"no file matches .*\*\.nothing"),
        ("$NO_SUCH_VARIABLE/x.conllu", r"no file matches '\$NO_SUCH_VARIABLE/x\.conllu': set the variable"),
    ],
)
def test_pattern_without_a_file_is_named(tmp_path, monkeypatch, pattern, message):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NO_SUCH_VARIABLE", raising=False)
    with pytest.raises(TreeparseError, match=message):
        expand_paths([pattern])


class EndlessLine(io.RawIOBase):
    """A stream of zeros without a line end, as /dev/zero is, that counts what is taken."""

    taken = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # pyright: ignore[reportIncompatibleMethodOverride]
        buffer[:] = bytes(len(buffer))
        self.taken += len(buffer)
        return len(buffer)


def test_lines_come_with_their_numbers_and_ends():
    stream = io.BytesIO(b"a\n\r\nb\rc\n" + b"x" * 99)
    expected = [(1, b"a\n"), (2, b"\r\n"), (3, b"b\rc\n"), (4, b"x" * 99)]
    assert list(numbered_lines(stream, "file", limit=99)) == expected


@pytest.mark.parametrize("limit", [2**20, MAX_LINE])
def test_line_that_never_ends_is_left_soon(limit):
    source = EndlessLine()
    stream = io.BufferedReader(source)
    with pytest.raises(DataError, match=f"^zeros:1: the line is longer than {limit >> 20} MiB; is this a text file"):
        list(numbered_lines(stream, "zeros", limit=limit))
    assert source.taken < limit + 2**20


def test_longest_line_is_read():
    lines = b"x" * (2**20 - 1) + b"\n" + b"y" * (2**20 + 1) + b"\n"
    reader = numbered_lines(io.BytesIO(lines), "file", limit=2**20)
    assert next(reader) == (1, lines[: 2**20])
    with pytest.raises(DataError, match=r"^file:2: the line is longer than 1 MiB"):
        next(reader)


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


def test_failed_sync_of_a_file_leaves_the_old_one(tmp_path, monkeypatch):
    def fail(descriptor):
        raise OSError(errno.EIO, "Input/output error")

    (tmp_path / "file").write_bytes(b"old")
    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="Input/output"):
        atomic_write(tmp_path / "file", b"x")
    assert os.listdir(tmp_path) == ["file"]
    assert (tmp_path / "file").read_bytes() == b"old"
