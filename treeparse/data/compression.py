"""Compressed files: gzip, bzip2, xz, and Zstandard where Python or the package `backports.zstd` has it."""

import gzip
import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO, Literal

from treeparse.errors import DataError, TreeparseError

MAGIC_LENGTH = 10  # bytes of a file that tell its format

Mode = Literal["rb", "wb"]


@dataclass(frozen=True, slots=True)
class Compression:
    """A format of compressed files.

    Attributes:
        name: the name of the format and of its shell command.
        suffix: the end of its files' names.
        magic: the first bytes of its files, as a regular expression.
        open: opens a stream of compressed bytes; closing the result does not close the stream.
        errors: returns the exceptions by which the format's library reports damage, besides ``EOFError``.
    """

    name: str
    suffix: str
    magic: bytes
    open: Callable[[BinaryIO, Mode], Any]
    errors: Callable[[], tuple[type[Exception], ...]]

    @property
    def command(self) -> str:
        """The shell command that decompresses a file to standard output."""
        return f"{self.name} -dc"

    @contextmanager
    def reading(self, stream: BinaryIO, source: str) -> Iterator[BinaryIO]:
        """Decompress a stream; a ``DataError`` names ``source`` if the stream is damaged or incomplete."""
        plain = self.opened(stream, "rb", source)
        try:
            with plain:
                yield plain
        except (EOFError, *self.errors()) as error:
            if isinstance(error, OSError) and error.errno is not None:  # an error of the disk, not of the format
                raise
            raise DataError(f"this is no whole {self.name} file ({error})", source=source) from error

    def opened(self, stream: BinaryIO, mode: Mode, path: str) -> Any:
        """Open a stream of compressed bytes; ``path`` is the name in errors. Written bytes depend on the input only."""
        self.check_installed(path)
        return self.open(stream, mode)

    def check_installed(self, path: str) -> None:
        """Raise a ``TreeparseError`` that names ``path`` if the library of the format is not installed."""
        try:
            self.errors()
        except ImportError as error:
            problem = f"{path}: files in {self.suffix} need {error.name}, which is not installed"
            raise TreeparseError(f"{problem}: pip install {error.name}") from error


def check_compression(path: str | Path) -> None:
    """Raise a ``TreeparseError`` if the library of the compression that a file's name ends in is not installed."""
    if (compression := compression_of_name(path)) is not None:
        compression.check_installed(str(path))


def compression_of_name(path: str | Path) -> Compression | None:
    """Return the compression that the end of a file's name stands for; None for a plain file."""
    return next((each for each in _FORMATS if str(path).endswith(each.suffix)), None)


def compression_of_content(head: bytes) -> Compression | None:
    """Return the compression of a file from its first `MAGIC_LENGTH` bytes or more; None for a plain file."""
    return next((each for each in _FORMATS if re.match(each.magic, head)), None)


def plain_name(path: str | Path) -> str:
    """Return a file's name without the suffix of its compression."""
    compression = compression_of_name(path)
    return str(path).removesuffix("" if compression is None else compression.suffix)


def _gzip(stream: BinaryIO, mode: Mode) -> Any:
    return gzip.GzipFile(filename="", mode=mode, compresslevel=6, fileobj=stream, mtime=0)


def _bzip2(stream: BinaryIO, mode: Mode) -> Any:
    return import_module("bz2").BZ2File(stream, mode)


def _xz(stream: BinaryIO, mode: Mode) -> Any:
    return import_module("lzma").LZMAFile(stream, mode)


def _zstd(stream: BinaryIO, mode: Mode) -> Any:
    return _zstd_library().ZstdFile(stream, mode)


def _zstd_library() -> Any:
    """Return the standard library's module (from Python 3.14 on) or the same module from a package."""
    for name in ("compression.zstd", "backports.zstd"):
        with suppress(ImportError):
            return import_module(name)
    raise ImportError(name="backports.zstd")


_FORMATS = (
    Compression("gzip", ".gz", rb"\x1f\x8b", _gzip, lambda: (OSError, zlib.error)),
    Compression("bzip2", ".bz2", rb"BZh[1-9](1AY&SY|\x17rE8P\x90)", _bzip2, lambda: (OSError,)),
    Compression("xz", ".xz", rb"\xfd7zXZ\x00", _xz, lambda: (import_module("lzma").LZMAError,)),
    Compression("zstd", ".zst", rb"\x28\xb5\x2f\xfd", _zstd, lambda: (_zstd_library().ZstdError,)),
)
