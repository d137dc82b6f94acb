"""Hashed attributes of words, which the feature templates of linear models read."""

import sys
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from treeparse.data.columns import COLUMNS, entry
from treeparse.data.features.padding import lengths_of
from treeparse.data.features.words import Features
from treeparse.errors import TreeparseError
from treeparse.linear.templates import text_hash
from treeparse.sentence import Sentence

SHORT = 3  # letters of a prefix or suffix
MOST_ROWS = 2**18  # words whose attributes are cached
ROOT = "<root>"
NODES = "nodes"  # the name of the features in a batch

Key = tuple[str, ...]  # what a word's attributes depend on

OF_FORMS: Mapping[str, Callable[[str], str]] = {
    "form": str,
    "lower": str.lower,
    "prefix": lambda form: form.lower()[:SHORT],
    "suffix": lambda form: form.lower()[-SHORT:],
    "shape": lambda form: _shape(form),
}


class AttributeHashes(Features):
    """Hashes of the attributes of all nodes: ``nodes`` (B, n+1, A) int32, whose bits are unsigned.

    Nothing is looked up in a vocabulary, so that nothing has to be stored.

    Args:
        attributes: ``form``, ``lower``, ``prefix``, ``suffix`` (three letters of the lower-cased form), ``shape``;
            ``upos``, ``xpos``, ``feats``; ``feats.Case`` and so on; others are those of ``function``.
        function: the path of a function that maps a `Sentence` to further attributes by name, each a string a word.
    """

    attributes: tuple[str, ...]
    function: str | None

    def __init__(self, attributes: Sequence[str], function: str | None = None) -> None:
        self.attributes, self.function = tuple(attributes), function
        self._columns = [column for column in COLUMNS if any(_column(each) == column for each in attributes)]
        self._own = [each for each in attributes if each not in OF_FORMS and _column(each) is None]
        if self._own and function is None:
            raise TreeparseError(
                f"There is no attribute {self._own[0]!r} of words: attributes are {', '.join(OF_FORMS)}, "
                f"{', '.join(COLUMNS)}, feats.NAME, and those of a function (model.scorer.attributes)."
            )
        self._call = None if function is None else _find_function(function)
        self._rows: dict[Key, bytes] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {"attributes": self.attributes, "function": self.function}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)

    def __call__(self, sentences: Sequence[Sentence]) -> dict[str, Tensor]:
        lengths = lengths_of(sentences)
        nodes = np.empty((len(sentences), int(lengths.max()) + 1, len(self.attributes)), np.uint32)
        nodes[:, 0] = [text_hash(f"{name} {ROOT}") for name in self.attributes]
        is_word = np.arange(1, nodes.shape[1]) <= lengths[:, np.newaxis]
        rows = b"".join([row for sentence in sentences for row in self._rows_of(sentence)])
        nodes[:, 1:][is_word] = np.frombuffer(rows, np.uint32).reshape(-1, len(self.attributes))
        return {NODES: torch.from_numpy(nodes.view(np.int32))}

    def values(self, sentence: Sentence) -> list[dict[str, str]]:
        """Return the attributes of each node, the root first, as text."""
        words = [dict(zip(self.attributes, self._values(key), strict=True)) for key in self._keys(sentence)]
        return [dict.fromkeys(self.attributes, ROOT), *words]

    def _rows_of(self, sentence: Sentence) -> list[bytes]:
        """Return the hashes of each word's attributes."""
        if len(self._rows) > MOST_ROWS:
            self._rows = {}
        known, keys = self._rows, self._keys(sentence)
        try:
            return [known[key] for key in keys]
        except KeyError:
            return [known.get(key) or known.setdefault(key, self._row(key)) for key in keys]

    def _row(self, key: Key) -> bytes:
        named = zip(self.attributes, self._values(key), strict=True)
        return np.array([text_hash(f"{name} {value}") for name, value in named], np.uint32).tobytes()

    def _keys(self, sentence: Sentence) -> list[Key]:
        """Return what the attributes of each word depend on: its form, the columns that are read, and its own ones."""
        columns = [COLUMNS[column].read(sentence) for column in self._columns]
        if self._call is not None:
            columns += _own_values(self._call(sentence), self._own, len(sentence), self.function)
        return list(zip(sentence.forms, *columns, strict=True))

    def _values(self, key: Key) -> list[str]:
        form, *values = key
        by_name = dict(zip([*self._columns, *self._own], values, strict=True))
        result = []
        for name in self.attributes:
            if name in OF_FORMS:
                result.append(OF_FORMS[name](form))
            elif name.startswith("feats."):
                result.append(entry(by_name["feats"], name.removeprefix("feats.")))
            else:
                result.append(by_name[name])
        return result

    def check(self, sentence: Sentence) -> None:
        for column in self._columns:
            COLUMNS[column].read(sentence)

    def extended(self, sentences: Sequence[Sentence], *, min_count: int = 2) -> Self:
        return self

    def tag_columns(self) -> Sequence[str]:
        return tuple(self._columns)

    def to_json(self) -> dict[str, Any]:
        return {"attributes": list(self.attributes)}


def _column(attribute: str) -> str | None:
    """Return the column that an attribute is read from, None if it is none of CoNLL-U's tags."""
    column = attribute.partition(".")[0]
    return column if column in COLUMNS and (column == "feats" or column == attribute) else None


def _shape(form: str) -> str:
    """Return a form with X for capitals, x for letters, 9 for digits, and repetitions left out."""
    shape = ""
    for letter in form:
        kind = "X" if letter.isupper() else "x" if letter.isalpha() else "9" if letter.isdigit() else letter
        shape += kind if shape[-1:] != kind else ""
    return shape


def _find_function(path: str) -> Callable[[Sentence], Mapping[str, Sequence[str]]]:
    """Return a function that has been imported; this imports nothing and runs nothing."""
    module, _, name = path.rpartition(".")
    if module not in sys.modules:
        raise TreeparseError(
            f"The module of the function {path!r:.100} is not imported, and loading a model imports no code. If you "
            f"trust it: import {module:.100} first; in commands, --import {module:.100}."
        )
    function = vars(sys.modules[module]).get(name)
    if not isinstance(function, FunctionType):
        raise TreeparseError(f"model.scorer.attributes must be the path of a function in a module, got {path!r:.100}.")
    return function


def _own_values(
    values: Mapping[str, Sequence[str]], names: Sequence[str], count: int, function: str | None
) -> list[Sequence[str]]:
    for name in names:
        if (
            name not in values
            or len(values[name]) != count
            or not all(isinstance(value, str) for value in values[name])
        ):
            raise TreeparseError(
                f"The function {function} must return one string a word as the attribute {name!r}, which a feature "
                "template reads."
            )
    return [values[name] for name in names]
