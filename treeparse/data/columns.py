"""The columns of words that a model may read: tags, single features, values in MISC, and the user's own."""

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from treeparse.errors import TreeparseError, name_among
from treeparse.sentence import EMPTY, Sentence


@dataclass(frozen=True)
class Column:
    """A value for each word.

    Attributes:
        name: in settings, model folders and batches.
        title: in messages.
        values: returns the values of a sentence's words, ``_`` for none; None if the sentence lacks the column.
        is_complete: whether a sentence with a word of the value ``_`` lacks the column.
        has_mean: whether words of the value ``_`` get the mean of the embeddings of all values, so that a sentence
            without the column can be parsed.
    """

    name: str
    title: str
    values: Callable[[Sentence], Sequence[str] | None]
    is_complete: bool = False
    has_mean: bool = False

    def read(self, sentence: Sentence) -> Sequence[str]:
        """Return the values of a sentence's words; raise if the sentence lacks the column."""
        values = self.values(sentence)
        if values is None or (self.is_complete and EMPTY in values):
            start = " ".join(sentence.forms[:5])
            raise TreeparseError(
                f"The model reads {self.title}, but the sentence that starts with '{start}' has words without it: "
                f"tag the file first, or train a model without {self.title}."
            )
        return values


TREEBANK = "treebank"  # the column of the name of the sentence's treebank
# "_" in FEATS means a word without features, which is common; a word without a part of speech was never tagged.
COLUMNS: Mapping[str, Column] = {
    "upos": Column("upos", "UPOS", lambda sentence: sentence.upos, is_complete=True),
    "xpos": Column("xpos", "XPOS", lambda sentence: sentence.xpos, is_complete=True),
    "feats": Column("feats", "FEATS", lambda sentence: sentence.feats),
    TREEBANK: Column(
        TREEBANK, "treebank", lambda sentence: [sentence.treebank or EMPTY] * len(sentence), has_mean=True
    ),
}
"""The columns by name. ``feats.Case`` and ``misc.Gloss``, of any feature and any key of MISC, are columns, too."""


@functools.cache
def column_named(name: str, setting: str = "") -> Column:
    """Return the column of a name; raise if there is none, with the ``setting`` that named it."""
    section, _, key = name.partition(".")
    if key and section == "feats":
        return Column(name, f"{key} in FEATS", lambda sentence: _entries(sentence.feats, key))
    if key and section == "misc":
        return Column(name, f"{key} in MISC", lambda sentence: _entries(sentence.misc, key))
    named = f" in {setting}" if setting else ""
    problem = f"Unknown column {name!r:.60}{named}, which is no feats.NAME or misc.NAME"
    return COLUMNS[name_among(name, (*COLUMNS,), problem)]


def _entries(texts: Sequence[str] | None, key: str) -> Sequence[str] | None:
    """Return the value of ``key=value`` in each of the texts, ``_`` where there is none."""
    return None if texts is None else [entry(text, key) or EMPTY for text in texts]


def entry(text: str, key: str) -> str:
    """Return the value of ``key=value`` among the entries of FEATS or MISC; empty if there is none."""
    pairs = (pair.partition("=") for pair in text.split("|"))
    return next((value for name, _, value in pairs if name == key), "")


def titles_of(names: Iterable[str]) -> str:
    """Return the titles of the columns that input must have, as a list in a sentence; an empty string for none."""
    titles = [column.title for column in map(column_named, names) if not column.has_mean]
    return " and ".join(filter(None, [", ".join(titles[:-1]), *titles[-1:]]))
