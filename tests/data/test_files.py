"""Files by names and patterns, pipes, endless lines, and bytes that are not UTF-8 text."""

import gzip
import io
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from helpers.parsed_files import written

from treeparse.data.conllu import read_conllu
from treeparse.data.files import MAX_LINE, check_rereadable, expand_paths, numbered_lines, open_input
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
