"""Compressed files, by Python's own libraries and, for Zstandard, by the package `backports.zstd`."""

import bz2
import gzip
import lzma
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from helpers.commands import Capture

from treeparse.cli.main import main
from treeparse.data.files import (
    MAX_LINE,
    compression_of_content,
    compression_of_name,
    expand_paths,
    numbered_lines,
    open_by_content,
    open_input,
    plain_name,
)
from treeparse.data.outputs import atomic_write
from treeparse.errors import DataError, TreeparseError

ZSTD = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"
SUFFIXES = (".gz", ".bz2", ".xz", ".zst")
NAMES = {".gz": "gzip", ".bz2": "bzip2", ".xz": "xz", ".zst": "zstd"}
LINES = "".join(f"{number} é\r\n" for number in range(50_000)).encode()


def library(suffix: str) -> Any:
    """The library of a format; a test of Zstandard is skipped without it."""
    return {".gz": gzip, ".bz2": bz2, ".xz": lzma}.get(suffix) or pytest.importorskip(ZSTD)


def compress(data: bytes, suffix: str) -> bytes:
    return library(suffix).compress(data)


def written(folder: Path, suffix: str, data: bytes) -> Path:
    path = folder / f"file.conllu{suffix}"
    path.write_bytes(data)
    return path


def read(path: Path) -> bytes:
    with open_input(path) as stream:
        return b"".join(line for _, line in numbered_lines(stream, str(path)))


@pytest.mark.parametrize("data", [LINES, b"", os.urandom(2**20)], ids=["text", "nothing", "noise"])
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_compressed_file_is_read_byte_for_byte(tmp_path: Path, suffix: str, data: bytes) -> None:
    packed = written(tmp_path, suffix, compress(data, suffix))
    with open_input(packed) as stream:
        assert stream.read() == data


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_joined_files_are_read_to_the_end(tmp_path: Path, suffix: str) -> None:
    """As by cat a.gz b.gz."""
    assert read(written(tmp_path, suffix, compress(LINES, suffix) * 2)) == LINES * 2


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
    path = written(tmp_path, suffix, damage(compress(LINES, suffix)))
    with pytest.raises(DataError, match=rf"{path}: this is no whole {NAMES[suffix]} file \("):
        read(path)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_small_file_of_an_endless_line_is_left_soon(tmp_path: Path, suffix: str) -> None:
    path = written(tmp_path, suffix, compress(bytes(4 * MAX_LINE), suffix))
    assert path.stat().st_size < 50_000
    with pytest.raises(DataError, match=rf"{path}:1: a line must be at most 8 MiB long"):
        read(path)


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
    path = written(tmp_path, ".zst", b"")
    sentence = rf"{path}: files in \.zst need backports.zstd, which is not installed: pip install backports.zstd$"
    with pytest.raises(TreeparseError, match=sentence):
        expand_paths([path])
    with pytest.raises(TreeparseError, match=sentence):
        read(path)
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
