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
    report, source, ordinal, end = on_invalid or _raise, display_name(path), 0, 0
    with open_input(path) as stream:
        lines = check_text(numbered_lines(stream, source), source)
        if on_invalid is None and str(path) != STANDARD_STREAM:
            lines = check_encoding(lines, source)
        for number, line in lines:
            start, end = end, end + len(line)
            if span is not None and start >= span.stop:
                return
            try:
                sentence = _text_sentence(line, number, source, first, ordinal)
            except DataError as error:
                report(error)
                ordinal += 1
                continue
            if sentence is not None:
                ordinal += 1
                if span is None or start >= span.start:
                    yield sentence
        if not ordinal:
            report(DataError(NO_SENTENCE, source=source))


def _raise(error: DataError) -> None:
    raise error


def _text_sentence(line: bytes, number: int, source: str, first: int, ordinal: int) -> ConlluSentence | None:
    """Return the sentence of a line; None for a line without words."""
    try:
        text = line.decode()
    except UnicodeDecodeError as error:
        raise DataError(utf8_problem(error), source=source, line=number) from error
    if number == 1:
        text = text.removeprefix(BYTE_ORDER_MARK)
    elif problem := byte_order_mark_problem(text):
        raise DataError(problem, source=source, line=number)
    forms = [form for form in _SEPARATORS.split(text.strip("\r\n")) if form]
    if not forms:
        return None
    return ConlluSentence.from_forms(forms, sent_id=str(first + ordinal), source=source, line=number, ordinal=ordinal)
