"""Compressed files: gzip, bzip2, xz, and Zstandard where Python or the package `zstandard` has it."""

import gzip
import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from io import BufferedReader, RawIOBase
from pathlib import Path
from typing import Any, BinaryIO, Literal

from treeparse.errors import DataError, TreeparseError

MAGIC_LENGTH = 10  # bytes of a file that tell its format
_AHEAD = 2**16  # decompressed bytes that are buffered
_PIECE = 2**10  # bytes of a Zstandard file that are decompressed at once, into at most 32 MiB

Mode = Literal["rb", "wb"]


@dataclass(frozen=True, slots=True)
class Compression:
    """A format of compressed files.

    Attributes:
        name: the name of the format.
        suffix: the end of its files' names.
        command: the shell command that writes a file to standard output, decompressed.
        magic: the first bytes of its files, as a regular expression.
        open: opens a stream of compressed bytes; closing the result does not close the stream.
        errors: returns the exceptions by which the format's library reports damage, besides ``EOFError``.
    """

    name: str
    suffix: str
    command: str
    magic: bytes
    open: Callable[[BinaryIO, Mode], Any]
    errors: Callable[[], tuple[type[Exception], ...]]

    @contextmanager
    def reading(self, stream: BinaryIO, source: str) -> Iterator[BinaryIO]:
        """Decompress a stream; a ``DataError`` names ``source`` if the stream is damaged or cut."""
        plain = self._opened(stream, "rb", source)
        try:
            with plain:
                yield plain
        except (EOFError, *self.errors()) as error:
            if isinstance(error, OSError) and error.errno is not None:  # of the disk, not of the format
                raise
            raise DataError(f"this is no whole {self.name} file ({error})", source=source) from error

    @contextmanager
    def writing(self, stream: BinaryIO, target: str) -> Iterator[BinaryIO]:
        """Compress what is written, with the same bytes for the same input; errors name ``target``."""
        with self._opened(stream, "wb", target) as packed:
            yield packed

    def _opened(self, stream: BinaryIO, mode: Mode, path: str) -> Any:
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
    """Raise a ``TreeparseError`` if a file's name ends in that of a compression which is not installed."""
    if (compression := compression_of_name(path)) is not None:
        compression.check_installed(str(path))


def compression_of_name(path: str | Path) -> Compression | None:
    """The compression that the end of a file's name stands for; None for a plain file."""
    return next((each for each in _FORMATS if str(path).endswith(each.suffix)), None)


def compression_of_content(head: bytes) -> Compression | None:
    """The compression of a file that begins with ``head``, `MAGIC_LENGTH` bytes of it or more; None if it has none."""
    return next((each for each in _FORMATS if re.match(each.magic, head)), None)


def plain_name(path: str | Path) -> str:
    """A file's name without the suffix of its compression."""
    compression = compression_of_name(path)
    return str(path).removesuffix("" if compression is None else compression.suffix)


def _gzip(stream: BinaryIO, mode: Mode) -> Any:
    return gzip.GzipFile(filename="", mode=mode, compresslevel=6, fileobj=stream, mtime=0)


def _bzip2(stream: BinaryIO, mode: Mode) -> Any:
    return import_module("bz2").BZ2File(stream, mode)


def _xz(stream: BinaryIO, mode: Mode) -> Any:
    return import_module("lzma").LZMAFile(stream, mode)


def _zstd(stream: BinaryIO, mode: Mode) -> Any:
    library = _zstd_library()
    if hasattr(library, "ZstdFile"):
        return library.ZstdFile(stream, mode)
    if mode == "wb":
        return library.ZstdCompressor().stream_writer(stream, closefd=False)
    return BufferedReader(_ZstdReader(stream, library.ZstdDecompressor().decompressobj), _AHEAD)


def _zstd_library() -> Any:
    """Python's own module, from 3.14 on, or the package."""
    try:
        return import_module("compression.zstd")
    except ImportError:
        return import_module("zstandard")


class _ZstdReader(RawIOBase):
    """Decompresses by `zstandard`, whose own reader takes a file that is cut for a whole one."""

    def __init__(self, stream: BinaryIO, new_frame: Callable[[], Any]) -> None:
        self._stream, self._new_frame = stream, new_frame
        self._frame: Any = None
        self._packed, self._plain = b"", memoryview(b"")  # what is left of the last piece

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._plain:
            piece = self._packed or self._stream.read(_PIECE)
            if not piece and self._frame is None:
                return 0
            if not piece:
                raise EOFError("it ends within a frame")
            self._decompress(piece)
        count = min(len(buffer), len(self._plain))
        buffer[:count], self._plain = self._plain[:count], self._plain[count:]
        return count

    def _decompress(self, piece: bytes) -> None:
        frame = self._frame or self._new_frame()
        self._plain = memoryview(frame.decompress(piece))
        self._packed, self._frame = (frame.unused_data, None) if frame.eof else (b"", frame)


_FORMATS = (
    Compression("gzip", ".gz", "gzip -dc", rb"\x1f\x8b", _gzip, lambda: (OSError, zlib.error)),
    Compression("bzip2", ".bz2", "bzip2 -dc", rb"BZh[1-9](1AY&SY|\x17rE8P\x90)", _bzip2, lambda: (OSError,)),
    Compression("xz", ".xz", "xz -dc", rb"\xfd7zXZ\x00", _xz, lambda: (import_module("lzma").LZMAError,)),
    Compression("zstd", ".zst", "zstd -dc", rb"\x28\xb5\x2f\xfd", _zstd, lambda: (_zstd_library().ZstdError,)),
)
