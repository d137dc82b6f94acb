"""Recognise files that are not UTF-8 text (archives, other encodings) and say how to convert them."""

import codecs
import re
import shlex
from collections.abc import Iterator
from pathlib import PurePath

from treeparse.data.compression import compression_of_content, compression_of_name, plain_name
from treeparse.data.validation import Fault
from treeparse.errors import DataError

STDIN = "<stdin>"  # the name of standard input in messages

_ZIP = b"PK\x03\x04"
_MARKS = {  # in this order, because one of UTF-32 begins with one of UTF-16
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}
_CONLLU = re.compile(rb"#\s?(sent_id|text|newdoc|newpar|global\.columns)\b|(1|1-[0-9]+|0\.1)(\t[^\t\r\n]+){9}\r?\n")
_HEAD = 1000  # bytes of the first line in which zeros are counted
_AHEAD = 2**20  # bytes that are read ahead after a line that is not UTF-8
_FEWEST = 3  # lines that are not UTF-8; fewer of them are faults of a UTF-8 file
_MOST = 0.8  # share of the lines that are not ASCII; text in a legacy encoding is seldom valid UTF-8


class WrongFormatError(DataError):
    """A whole file is not UTF-8 text; the message says what it is and how to convert it."""


def check_format(head: bytes, source: str) -> None:
    """Raise a `WrongFormatError` if a file that begins with ``head`` is a zip archive, compressed, or UTF-16 or -32."""
    piped = source == STDIN
    if head.startswith(_ZIP):
        problem = "this is a zip archive"
        remedy = "unpack it in the pipe by unzip -p FILE" if piped else f"unpack it by {_unzip(source)}"
    elif (compression := compression_of_content(head)) is not None:
        problem = f"this is compressed by {compression.name}"
        remedy = f"decompress it in the pipe by {compression.command}"
        if not piped:
            remedy = f"give it a name that ends in {compression.suffix}, and it is decompressed"
    elif (encoding := _wide_encoding(head)) is not None:
        problem, remedy = f"this is {encoding}, not UTF-8", _conversion(encoding, source)
    else:
        return
    raise WrongFormatError(f"{problem}: {remedy}", source=source)


def check_encoding(blocks: Iterator[tuple[int, bytes]], source: str) -> Iterator[tuple[int, bytes]]:
    """Yield the numbered lines of a file, or blocks of lines, unless the file is in a legacy encoding.

    In such a file at least three lines, and at least 80% of the lines that are not ASCII, are not UTF-8. The check
    counts lines up to 1 MiB after the first one that is not UTF-8.

    Raises:
        WrongFormatError: the file is in a legacy encoding.
    """
    beyond_ascii = 0
    for number, block in blocks:
        if not block.isascii():
            try:
                block.decode()
            except UnicodeDecodeError:
                ahead = [(number, block), *_first_bytes(blocks, _AHEAD - len(block))]
                _check_share(ahead, beyond_ascii, source)
                yield from ahead
                yield from blocks
                return
            beyond_ascii += _beyond_ascii(block)
        yield number, block


def check_text(lines: Iterator[tuple[int, bytes]], source: str) -> Iterator[tuple[int, bytes]]:
    """Yield the numbered lines of a text.

    Raises:
        WrongFormatError: the first lines are comments or columns of CoNLL-U.
    """
    for number, line in lines:
        if _CONLLU.match(line.removeprefix(codecs.BOM_UTF8)):
            problem = f"text must have one sentence a line, but line {number} is CoNLL-U"
            raise WrongFormatError(f"{problem}: leave out --format text, or name the file .conllu", source=source)
        yield number, line
        if line.strip() and not line.startswith(b"#"):
            break
    yield from lines


def undecodable_lines(block: bytes, first_line: int) -> list[Fault]:
    """Return the faults of the lines of a block that are not UTF-8: their first bad byte."""
    faults = []
    for number, line in enumerate(block.split(b"\n"), first_line):
        try:
            line.decode()
        except UnicodeDecodeError as error:
            faults.append((number, utf8_problem(error)))
    return faults


def utf8_problem(error: UnicodeDecodeError) -> str:
    """Return the fault of a line that is not UTF-8."""
    return f"byte {error.start + 1} of the line (0x{error.object[error.start]:02x}) is not valid UTF-8"


def _check_share(ahead: list[tuple[int, bytes]], beyond_ascii: int, source: str) -> None:
    """Raise if most of the lines that are not ASCII are not UTF-8; ``beyond_ascii`` valid ones precede ``ahead``."""
    bad = [number for first, block in ahead for number, _ in undecodable_lines(block, first)]
    good = beyond_ascii + sum(_beyond_ascii(block) for _, block in ahead) - len(bad)
    if len(bad) < _FEWEST or len(bad) < _MOST * (len(bad) + good):
        return
    problem = f"this is not UTF-8 (line {bad[0]} is the first that is not), perhaps Windows-1252 or Latin-1"
    raise WrongFormatError(f"{problem}: {_conversion('WINDOWS-1252', source)}", source=source)


def _beyond_ascii(block: bytes) -> int:
    """Return the number of lines that are not ASCII."""
    return sum(not line.isascii() for line in block.split(b"\n"))


def _first_bytes(blocks: Iterator[tuple[int, bytes]], size: int) -> Iterator[tuple[int, bytes]]:
    """Yield the next blocks, at least ``size`` bytes unless the file ends."""
    while size > 0 and (item := next(blocks, None)) is not None:
        size -= len(item[1])
        yield item


def _wide_encoding(head: bytes) -> str | None:
    """Return UTF-16 or UTF-32, by the byte order mark or by zeros in every other byte; None for anything else."""
    for mark, name in _MARKS.items():
        if head.startswith(mark):
            return name
    zeros = [head[parity:_HEAD:2].count(0) for parity in (0, 1)]
    few, many = sorted(zeros)
    if many < 2 or many * 10 < min(len(head), _HEAD) or many < 10 * few:
        return None
    return "UTF-16BE" if zeros[0] == many else "UTF-16LE"


def _conversion(encoding: str, source: str) -> str:
    """Return how to convert a file to UTF-8, as the end of a message."""
    command = f"iconv -f {encoding} -t UTF-8"
    if source == STDIN:
        return f"convert it in the pipe by {command}"
    plain = PurePath(plain_name(source))
    target = _quoted(plain.with_name(f"{plain.stem}.utf8{plain.suffix}"))
    if (compression := compression_of_name(source)) is not None:
        return f"convert it by {compression.command} {_quoted(source)} | {command} > {target}"
    return f"convert it by {command} {_quoted(source)} > {target}"


def _unzip(source: str) -> str:
    """Return the command that unpacks a zip archive of one file."""
    path = PurePath(source)
    target = path.with_name(f"{path.stem}.unzipped{path.suffix}")
    if path.suffix == ".zip":
        target = path.with_suffix("") if PurePath(path.stem).suffix else path.with_suffix(".conllu")
    return f"unzip -p {_quoted(source)} > {_quoted(target)}"


def _quoted(path: PurePath | str) -> str:
    return shlex.quote(str(path))
