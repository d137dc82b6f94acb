"""Linear models: feature templates as text, ``h.form d.upos distance``, and the hashed attributes that these read."""

import hashlib
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import FunctionType
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from treeparse.data.columns import COLUMNS, entry
from treeparse.data.features.padding import lengths_of
from treeparse.data.features.words import Features
from treeparse.errors import TreeparseError
from treeparse.sentence import Sentence

ROLES = {"h": 0, "d": 1, "s": 2, "g": 2}  # head, dependent, sibling, grandparent; b is any node between h and d
BETWEEN, DISTANCE = "b", "distance"
MOST_SLOTS, FARTHEST = 8, 5
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

# Templates of arcs by McDonald et al. (2005) and [Lec]; chosen on the dev set of EWT.
ARCS = (
    "h.form distance",
    "h.upos distance",
    "h.form h.upos distance",
    "d.form distance",
    "d.upos distance",
    "d.form d.upos distance",
    "h.form h.upos d.form d.upos",
    "h.upos d.form d.upos",
    "h.form d.form d.upos",
    "h.form h.upos d.upos",
    "h.form h.upos d.form",
    "h.form d.form",
    "h.upos d.upos",
    "h.upos d.upos distance",
    "h.form d.upos distance",
    "h.upos d.form distance",
    "h.form d.form distance",
    "h.upos h+1.upos d-1.upos d.upos",
    "h-1.upos h.upos d-1.upos d.upos",
    "h.upos h+1.upos d.upos d+1.upos",
    "h-1.upos h.upos d.upos d+1.upos",
    "h.upos h+1.upos d-1.upos d.upos distance",
    "h-1.upos h.upos d-1.upos d.upos distance",
    "h.upos h+1.upos d.upos d+1.upos distance",
    "h-1.upos h.upos d.upos d+1.upos distance",
    "h.upos b.upos d.upos",
)
SIBLINGS = (
    "h.upos d.upos s.upos",
    "d.upos s.upos",
    "d.form s.form",
    "d.form s.upos",
    "d.upos s.form",
    "h.upos d.upos s.upos distance",
    "h.form d.upos s.upos",
    "d.upos s.upos distance",
)
GRANDPARENTS = (
    "h.upos d.upos g.upos",
    "d.upos g.upos",
    "h.form d.upos g.upos",
    "h.upos d.form g.upos",
    "h.upos d.upos g.form",
    "d.form g.form",
    "h.upos d.upos g.upos distance",
)
LABELS = (
    "h.upos d.upos",
    "h.upos d.upos distance",
    "h.form d.upos",
    "h.upos d.form",
    "h.form d.form",
    "d.form",
    "d.upos",
    "d.lower h.lower",
    "h.upos d.suffix",
    "h.upos d-1.upos d.upos",
    "h.upos d.upos d+1.upos",
    "h-1.upos h.upos d.upos",
    "h.upos h+1.upos d.upos",
    "h.upos d.upos d-1.form",
    "h.upos b.upos d.upos",
)
_SLOT = re.compile(r"(?P<role>[hdsgb])(?P<offset>[+-]\d+)?\.(?P<attribute>[a-z]\w*(\.\w+)?)")


@dataclass(frozen=True)
class Slot:
    """One attribute that a template reads: that of the word ``offset`` positions after the node of a role."""

    role: str
    offset: int
    attribute: str

    def __str__(self) -> str:
        return f"{self.role}{self.offset or '':+}.{self.attribute}" if self.offset else f"{self.role}.{self.attribute}"


@dataclass(frozen=True)
class Template:
    """A feature template: the attributes that make one feature of a part. Every feature includes the direction.

    Attributes:
        slots: what is read, with the role ``h`` for the head, ``d`` the dependent, ``s`` the sibling, ``g`` the
            grandparent, ``b`` for a feature of every distinct value between head and dependent.
        distance: whether the distance of head and dependent, or of dependent and third node, is read too.
    """

    slots: tuple[Slot, ...]
    distance: bool

    @classmethod
    def read(cls, text: str, roles: str) -> "Template":
        """Read a template that may have these roles.

        Raises:
            TreeparseError: the text is no such template.
        """
        slots, distance = [], False
        for part in text.split():
            match = _SLOT.fullmatch(part)
            if part == DISTANCE:
                distance = True
            elif match is None or match["role"] not in roles:
                raise TreeparseError(
                    f"The feature template {text!r:.100} has a part {part!r:.50}: parts are {DISTANCE} and attributes "
                    f"of {', '.join(roles)} such as {roles[0]}.form, {roles[-1]}.upos or {roles[0]}+1.upos."
                )
            elif abs(offset := int(match["offset"] or 0)) > FARTHEST or (offset and match["role"] == BETWEEN):
                raise TreeparseError(
                    f"The feature template {text!r:.100} reads {part}: offsets are from -{FARTHEST} to +{FARTHEST}, "
                    f"and {BETWEEN} has none."
                )
            else:
                slots.append(Slot(match["role"], offset, match["attribute"]))
        if not 1 <= len(slots) <= MOST_SLOTS or sum(slot.role == BETWEEN for slot in slots) > 1:
            raise TreeparseError(
                f"The feature template {text!r:.100} must read 1 to {MOST_SLOTS} attributes, at most one of them of "
                f"{BETWEEN}."
            )
        return cls(tuple(slots), distance)

    def __str__(self) -> str:
        return " ".join([*map(str, self.slots), *([DISTANCE] if self.distance else [])])


@cache
def read_templates(texts: tuple[str, ...], roles: str) -> tuple[Template, ...]:
    """Read templates that may have these roles; raise for two equal ones."""
    templates = tuple(Template.read(text, roles) for text in texts)
    if repeated := [str(each) for index, each in enumerate(templates) if each in templates[:index]]:
        raise TreeparseError(f"The feature template {repeated[0]!r} occurs twice: leave one out.")
    return templates


def attributes_of(templates: Iterable[Template]) -> tuple[str, ...]:
    """Return the attributes that templates read, sorted."""
    return tuple(sorted({slot.attribute for template in templates for slot in template.slots}))


def text_hash(text: str) -> int:
    """Return a hash of 32 bits that is the same on every machine."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=4).digest(), "little")


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
