"""Tokenised text: one sentence a line, words separated by spaces or tabs."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from treeparse.data.conllu import NO_SENTENCE, ConlluSentence
from treeparse.data.files import STANDARD_STREAM, display_name, numbered_lines, open_input
from treeparse.data.text.formats import check_encoding, check_text, utf8_problem
from treeparse.data.validation import BYTE_ORDER_MARK, byte_order_mark_problem
from treeparse.errors import DataError

_SEPARATORS = re.compile(r"[ \t]+")


def read_text(
    path: str | Path,
    *,
    first: int = 1,
    span: range | None = None,
    on_invalid: Callable[[DataError], None] | None = None,
) -> Iterator[ConlluSentence]:
    """Read tokenised text, one sentence a line, words separated by spaces or tabs; ``sent_id`` counts from ``first``.

    With ``span``, only the lines that start at these bytes of the file (counted from 0, decompressed) are read.
    ``on_invalid`` is as for `read_conllu`.

    Raises:
        DataError: a line is not UTF-8, or the file has no sentence.
        OSError: the file cannot be read.
    """
    for result in _scan_text(path, first, span, on_invalid is not None or str(path) == STANDARD_STREAM):
        if isinstance(result, ConlluSentence):
            yield result
        elif on_invalid is None:
            raise result
        else:
            on_invalid(result)


def _scan_text(
    path: str | Path, first: int, span: range | None, any_encoding: bool
) -> Iterator[ConlluSentence | DataError]:
    """Read as `read_text`, but yield the fault of a faulty line."""
    source, ordinal, end = display_name(path), 0, 0
    with open_input(path) as stream:
        lines = check_text(numbered_lines(stream, source), source)
        for number, line in lines if any_encoding else check_encoding(lines, source):
            start, end = end, end + len(line)
            if span is not None and start >= span.stop:
                break
            result = _text_sentence(line, number, source, first, ordinal)
            if result is not None and (span is None or start >= span.start or isinstance(result, DataError)):
                yield result
            ordinal += result is not None
        else:
            if not ordinal:
                yield DataError(NO_SENTENCE, source=source)


def _text_sentence(
    line: bytes, number: int, source: str, first: int, ordinal: int
) -> ConlluSentence | DataError | None:
    """Return the sentence of a line, or its fault; None for a line without words."""
    try:
        forms = [form for form in _SEPARATORS.split(_decode_line(line, number, source).strip("\r\n")) if form]
        if not forms:
            return None
        name = str(first + ordinal)
        return ConlluSentence.from_forms(forms, sent_id=name, source=source, line=number, ordinal=ordinal)
    except DataError as error:
        return error


def _decode_line(line: bytes, number: int, source: str) -> str:
    try:
        text = line.decode()
    except UnicodeDecodeError as error:
        raise DataError(utf8_problem(error), source=source, line=number) from error
    if number == 1:
        return text.removeprefix(BYTE_ORDER_MARK)
    if problem := byte_order_mark_problem(text):
        raise DataError(problem, source=source, line=number)
    return text
