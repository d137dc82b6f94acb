"""Files by names and patterns, pipes, endless lines, other encodings, and compressed files."""

import bz2
import gzip
import io
import lzma
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from helpers.commands import Capture
from helpers.parsed_files import written

from treeparse.cli.main import main
from treeparse.data.conllu import read_conllu
from treeparse.data.files import (
    MAX_LINE,
    check_rereadable,
    compression_of_content,
    compression_of_name,
    expand_paths,
    numbered_lines,
    open_by_content,
    open_input,
    plain_name,
)
from treeparse.data.outputs import atomic_write
from treeparse.data.tokenised import read_text
from treeparse.errors import DataError, TreeparseError


def read(path: Path | str) -> bytes:
    with open_input(path) as stream:
        return stream.read()


def test_reads_standard_input_and_leaves_it_open(monkeypatch):
    stdin = io.BytesIO(b"a\r\n")
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=stdin))
    assert read("-") == b"a\r\n"
    assert not stdin.closed


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


@pytest.fixture
def pipe(tmp_path: Path) -> Iterator[str]:
    """The path of a pipe as the shell's <(...) gives it."""
    ends = os.pipe()
    yield f"/dev/fd/{ends[0]}"
    for end in ends:
        os.close(end)


def test_a_pipe_is_read_once_whatever_its_name(tmp_path: Path, pipe: str) -> None:
    os.mkfifo(tmp_path / "named")
    (tmp_path / "file").touch()
    names = ["-", str(tmp_path / "named"), pipe]
    for name in names:
        source = "<stdin>" if name == "-" else name
        problem = f"^{source}: a pipe cannot be read more than once, but {{}}: write it to a file first"
        with pytest.raises(DataError, match=problem.format("each epoch does")):
            check_rereadable(name, "each epoch does")
        with pytest.raises(DataError, match=problem.format("the command names it twice")):
            expand_paths([name, tmp_path / "file", name])
    assert [*map(str, expand_paths(names))] == names
    for path in (tmp_path, tmp_path / "file", tmp_path / "none"):
        check_rereadable(path, "each epoch does")
    assert len(expand_paths([tmp_path / "file"] * 2)) == 2


def test_standard_input_has_two_names(pipe: str) -> None:
    before = os.dup(0)
    try:
        os.dup2(int(pipe.rpartition("/")[2]), 0)
        with pytest.raises(DataError, match=r"^/dev/stdin: a pipe cannot be read more than once"):
            expand_paths(["-", "/dev/stdin"])
    finally:
        os.dup2(before, 0)
        os.close(before)


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


def test_line_that_never_ends_is_left_soon():
    source = EndlessLine()
    with pytest.raises(DataError, match=r"^zeros:1: a line must be at most 8 MiB long; is this a text file"):
        list(numbered_lines(io.BufferedReader(source), "zeros", limit=MAX_LINE))
    assert source.taken < MAX_LINE + 2**20


def test_longest_line_is_read():
    lines = b"x" * (2**20 - 1) + b"\n" + b"y" * (2**20 + 1) + b"\n"
    reader = numbered_lines(io.BytesIO(lines), "file", limit=2**20)
    assert next(reader) == (1, lines[: 2**20])
    with pytest.raises(DataError, match=r"^file:2: a line must be at most 1 MiB long"):
        next(reader)


TURKISH = "# text = Çiğ köfte\n1\tÇiğ\t_\t_\t_\t_\t2\tamod\t_\t_\n2\tköfte\t_\t_\t_\t_\t0\troot\t_\t_\n\n"
PLAIN = "# text = a\n1\ta\t_\t_\t_\t_\t0\troot\t_\t_\n\n"


@pytest.mark.parametrize("encoding", ["latin-1", "cp1251", "gbk"])
def test_a_legacy_encoding_is_refused_in_a_sentence_that_names_the_line(tmp_path: Path, encoding: str) -> None:
    text = {"cp1251": "Он читал", "gbk": "我爱你"}.get(encoding, "déjà vü")
    data = (PLAIN * 1000 + TURKISH.replace("Çiğ", text).replace("köfte", text) * 100).encode(encoding)
    path = written(tmp_path / "old.conllu", data)
    with pytest.raises(DataError, match="convert the file, for example by iconv") as caught:
        list(read_conllu(path))
    assert (caught.value.source, caught.value.line) == (path, 3001)


@pytest.mark.parametrize("encoding", ["UTF-16", "UTF-32"])
@pytest.mark.parametrize("read", [read_conllu, read_text])
def test_utf_16_is_refused_in_a_sentence_that_names_the_file(tmp_path: Path, encoding: str, read) -> None:
    path = written(tmp_path / "wide", (TURKISH * 100).encode(encoding))
    with pytest.raises(DataError, match=f"^{path}:1: .*convert the file, for example by iconv"):
        list(read(path))


def test_a_compressed_file_of_another_name_is_named(tmp_path: Path) -> None:
    path = written(tmp_path / "a.conllu", gzip.compress(TURKISH.encode()))
    with pytest.raises(DataError, match=r"a\.conllu: this is compressed by gzip: give it a name that ends in \.gz"):
        list(read_conllu(path))


def test_compressed_bytes_on_standard_input_are_named_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    stdin = io.BytesIO(gzip.compress(TURKISH.encode()))
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=stdin))
    with pytest.raises(DataError, match=r"<stdin>: this is compressed by gzip: .* gzip -dc"):
        list(read_conllu("-"))


def test_so_are_those_of_a_file_that_standard_input_is_redirected_from(tmp_path: Path) -> None:
    path = written(tmp_path / "a.conllu.gz", gzip.compress(TURKISH.encode()))
    program = "from treeparse.data.conllu import read_conllu; list(read_conllu('/dev/stdin'))"
    with open(path, "rb") as stdin:
        done = subprocess.run([sys.executable, "-c", program], stdin=stdin, capture_output=True, text=True, timeout=60)
    assert "DataError: /dev/stdin: this is compressed by gzip: decompress it in the pipe by gzip -dc" in done.stderr


ZSTD = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"
SUFFIXES = (".gz", ".bz2", ".xz", ".zst")
NAMES = {".gz": "gzip", ".bz2": "bzip2", ".xz": "xz", ".zst": "zstd"}
LINES = "".join(f"{number} é\r\n" for number in range(50_000)).encode()


def library(suffix: str) -> Any:
    """The library of a format; a test of Zstandard is skipped without it."""
    return {".gz": gzip, ".bz2": bz2, ".xz": lzma}.get(suffix) or pytest.importorskip(ZSTD)


def compress(data: bytes, suffix: str) -> bytes:
    return library(suffix).compress(data)


def written_as(folder: Path, suffix: str, data: bytes) -> Path:
    path = folder / f"file.conllu{suffix}"
    path.write_bytes(data)
    return path


def read_lines(path: Path) -> bytes:
    with open_input(path) as stream:
        return b"".join(line for _, line in numbered_lines(stream, str(path)))


@pytest.mark.parametrize("data", [LINES, b"", os.urandom(2**20)], ids=["text", "nothing", "noise"])
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_compressed_file_is_read_byte_for_byte(tmp_path: Path, suffix: str, data: bytes) -> None:
    packed = written_as(tmp_path, suffix, compress(data, suffix))
    with open_input(packed) as stream:
        assert stream.read() == data


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_joined_files_are_read_to_the_end(tmp_path: Path, suffix: str) -> None:
    """As by cat a.gz b.gz."""
    assert read_lines(written_as(tmp_path, suffix, compress(LINES, suffix) * 2)) == LINES * 2


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_an_output_is_compressed_as_its_name_says_and_the_same_every_time(tmp_path: Path, suffix: str) -> None:
    paths, module = [tmp_path / f"{name}{suffix}" for name in "ab"], library(suffix)
    for path in paths:
        atomic_write(path, LINES)
    packed = paths[0].read_bytes()
    assert len(packed) < len(LINES) / 2 and module.decompress(packed) == LINES
    assert packed == paths[1].read_bytes()


@pytest.mark.parametrize(
    "damage",
    [lambda data: data[:-6], lambda data: data[: len(data) // 2], lambda _: b"text"],
    ids=["end lost", "half lost", "not compressed"],
)
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_damaged_file_is_named(tmp_path: Path, suffix: str, damage) -> None:
    path = written_as(tmp_path, suffix, damage(compress(LINES, suffix)))
    with pytest.raises(DataError, match=rf"{path}: this is no whole {NAMES[suffix]} file \("):
        read_lines(path)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_small_file_of_an_endless_line_is_left_soon(tmp_path: Path, suffix: str) -> None:
    path = written_as(tmp_path, suffix, compress(bytes(4 * MAX_LINE), suffix))
    assert path.stat().st_size < 50_000
    with pytest.raises(DataError, match=rf"{path}:1: a line must be at most 8 MiB long"):
        read_lines(path)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_word_vectors_tell_by_their_first_bytes_that_they_are_compressed(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / "vectors"
    path.write_bytes(compress(LINES, suffix))
    with open_by_content(path) as stream:
        assert stream.read() == LINES


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_names_and_first_bytes_tell_the_same(suffix: str) -> None:
    by_name = compression_of_name(f"a.conllu{suffix}")
    assert by_name is not None and by_name.name == NAMES[suffix]
    assert compression_of_content(compress(b"", suffix)) == compression_of_content(compress(LINES, suffix)) == by_name
    assert plain_name(Path("b", f"a.conllu{suffix}")) == os.path.join("b", "a.conllu")


@pytest.mark.parametrize("head", [b"", b"BZh", b"BZh9 is a word", b"# text\n", b"PK\x03\x04"])
def test_other_first_bytes_tell_nothing(head: bytes) -> None:
    assert compression_of_content(head) is None


def test_plain_names_stay() -> None:
    assert compression_of_name("a.conllu") is None
    assert plain_name("a.gz.conllu") == "a.gz.conllu"


def test_a_library_that_is_missing_is_named_with_the_command_that_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "backports.zstd", None)
    monkeypatch.setitem(sys.modules, "compression.zstd", None)
    path = written_as(tmp_path, ".zst", b"")
    sentence = rf"{path}: files in \.zst need backports.zstd, which is not installed: pip install backports.zstd$"
    with pytest.raises(TreeparseError, match=sentence):
        expand_paths([path])
    with pytest.raises(TreeparseError, match=sentence):
        read_lines(path)
    with pytest.raises(TreeparseError, match=sentence):
        atomic_write(path, "new")
    assert path.read_bytes() == b"" and os.listdir(tmp_path) == [path.name]


def test_a_command_refuses_an_output_that_it_cannot_compress(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setitem(sys.modules, "backports.zstd", None)
    monkeypatch.setitem(sys.modules, "compression.zstd", None)
    path = tmp_path / "report.json.zst"
    with pytest.raises(SystemExit, match="2"):
        main(["check", "no.conllu", "--output", str(path)])
    error = capsys.readouterr().err
    assert f"argument --output: {path}: " in error and "pip install backports.zstd" in error
