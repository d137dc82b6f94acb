"""Tokenised text: one sentence a line, words separated by spaces or tabs."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from treeparse.data.conllu import NO_SENTENCE, ConlluSentence, RawSentence
from treeparse.data.files import display_name, numbered_lines, open_input
from treeparse.data.validation import BYTE_ORDER_MARK, byte_order_mark_problem, utf8_problem
from treeparse.errors import DataError

_SEPARATORS = re.compile(r"[ \t]+")
_BLANK = re.compile(rb"[\r\n]*[ \t]*[\r\n]*")
_MARK = BYTE_ORDER_MARK.encode()
_CONLLU = re.compile(rb"#\s?(sent_id|text|newdoc|newpar|global\.columns)\b|(1|1-[0-9]+|0\.1)(\t[^\t\r\n]+){9}\r?\n")


def read_text(path: str | Path, *, on_invalid: Callable[[DataError], None] | None = None) -> Iterator[ConlluSentence]:
    """Read tokenised text, one sentence a line, words separated by spaces or tabs; ``sent_id`` counts from 1.

    ``on_invalid`` is as for `read_conllu`.

    Raises:
        DataError: a line is not UTF-8, or the file has no sentence.
        OSError: the file cannot be read.
    """
    report = on_invalid or _raise
    try:
        for raw in raw_text(path):
            try:
                sentence = parse_text(raw)
            except DataError as error:
                report(error)
            else:
                yield sentence
    except DataError as error:
        if error.problem != NO_SENTENCE:
            raise
        report(error)


def raw_text(path: str | Path, *, span: range | None = None) -> Iterator[RawSentence]:
    """Yield the lines of a text that have words, as bytes; with ``span``, those that start at these bytes of the file.

    Raises:
        DataError: the file is compressed, its first lines are CoNLL-U, or it holds no sentence.
        OSError: the file cannot be read.
    """
    source, ordinal, end = display_name(path), 0, 0
    with open_input(path) as stream:
        for number, line in _check_text(numbered_lines(stream, source), source):
            start, end = end, end + len(line)
            if span is not None and start >= span.stop:
                return
            if _BLANK.fullmatch(line.removeprefix(_MARK) if number == 1 else line):
                continue
            ordinal += 1
            if span is None or start >= span.start:
                yield RawSentence(line, source, number, ordinal - 1)
    if not ordinal:
        raise DataError(NO_SENTENCE, source=source)


def _check_text(lines: Iterator[tuple[int, bytes]], source: str) -> Iterator[tuple[int, bytes]]:
    """Yield the numbered lines of a text; raise if the first lines are comments or columns of CoNLL-U."""
    for number, line in lines:
        if _CONLLU.match(line.removeprefix(_MARK)):
            problem = f"text must have one sentence a line, but line {number} is CoNLL-U"
            raise DataError(f"{problem}: leave out --format text, or name the file .conllu", source=source)
        yield number, line
        if line.strip() and not line.startswith(b"#"):
            break
    yield from lines


def _raise(error: DataError) -> None:
    raise error


def parse_text(raw: RawSentence, first: int = 1) -> ConlluSentence:
    """Return the sentence of a line; its id is its ordinal, counted from ``first``.

    Raises:
        DataError: the line is not UTF-8, or holds a byte order mark.
    """
    try:
        text = raw.text.decode()
    except UnicodeDecodeError as error:
        raise DataError(utf8_problem(error), source=raw.source, line=raw.line) from error
    if raw.line == 1:
        text = text.removeprefix(BYTE_ORDER_MARK)
    elif problem := byte_order_mark_problem(text):
        raise DataError(problem, source=raw.source, line=raw.line)
    place = {"source": raw.source, "line": raw.line, "ordinal": raw.ordinal}
    return ConlluSentence.from_forms(forms_of(text.strip("\r\n")), sent_id=str(first + raw.ordinal), **place)


def forms_of(line: str) -> list[str]:
    """Return the words of a line: what stands between spaces and tabs."""
    return [form for form in _SEPARATORS.split(line) if form]
