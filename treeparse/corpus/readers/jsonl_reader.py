"""Documents in JSON Lines: an item is an object, of which one key holds the text and another may hold the id.

A document's text is read as a file of text: each of its lines is a sentence of words between spaces, or with a
tokenizer a paragraph. The ids of sentences are the document's with the number of the line, such as ``doc-3``.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from treeparse.corpus.readers.reader import Reader
from treeparse.data.conllu import ConlluSentence, RawSentence
from treeparse.data.text.tokenised import forms_of, raw_text
from treeparse.data.validation import TreeCheck
from treeparse.errors import DataError

_LINE_END = re.compile(r"\r\n|\n|\r")
_SPACES = re.compile(r"\s+")


class JsonlReader(Reader):
    """Reads documents in JSON Lines."""

    def items(self, path: Path, span: range | None = None) -> Iterator[RawSentence]:
        """Yield the lines that are not blank."""
        return raw_text(path, span=span)

    def sentences(self, item: RawSentence, check: TreeCheck | None) -> Sequence[ConlluSentence]:
        """Return the sentences of a document; before the first one stands ``# newdoc id``."""
        fault = partial(DataError, source=item.source, line=item.line)
        try:
            document = json.loads(item.text)
        except ValueError as error:
            raise fault(f"the line must be JSON ({error!s:.200})") from error
        if not isinstance(document, dict):
            raise fault("the line must be a JSON object of one document")
        name = self._name(document, item.before + item.ordinal + 1, fault)
        fault = partial(fault, sent_id=name)
        text = document.get(self.options.text_column)
        if not isinstance(text, str):
            raise fault(self._text_problem(document))
        place = {"source": item.source, "line": item.line, "ordinal": item.ordinal}
        sentences = [
            ConlluSentence.from_forms(forms, sent_id=f"{name}-{number}", **place)
            for number, line in enumerate(_LINE_END.split(_encodable(text, "text", fault)), 1)
            if (forms := forms_of(line))
        ]
        if sentences:
            sentences[0] = replace(sentences[0], text=f"# newdoc id = {name}\n{sentences[0].text}")
        return sentences

    def _name(self, document: dict[str, Any], number: int, fault: partial[DataError]) -> str:
        """Return the id of a document, with _ for white space, which ids of CoNLL-U cannot have."""
        column = self.options.id_column
        if column is None:
            return str(number)
        value = document.get(column)
        if isinstance(value, bool) or not isinstance(value, str | int) or not str(value).strip():
            raise fault(f"the id of a document, {column!r}, must be a string or an integer, got {value!r:.50}")
        return _SPACES.sub("_", _encodable(str(value).strip(), "id", fault))

    def _text_problem(self, document: dict[str, Any]) -> str:
        column = self.options.text_column
        if column in document:
            return f"the text of a document, {column!r}, must be a string, got {document[column]!r:.50}"
        names = ", ".join(f"{name!r:.50}" for name in list(document)[:10])
        return f"the document has no key {column!r} with its text: name one by --text-column ({names or 'it is empty'})"


def _encodable(text: str, what: str, fault: partial[DataError]) -> str:
    """Return a text; raise if it holds a half of a surrogate pair, which no file can hold."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise fault(f"the {what} of the document holds half of a surrogate pair: {error}") from error
    return text
