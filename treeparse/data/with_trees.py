"""Add the trees of parses to sentences of users' types; the sentences keep their types."""

import copy
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

from treeparse.data.conllu import ConlluSentence
from treeparse.data.docs import fill_doc, is_doc
from treeparse.data.mapping import row_words
from treeparse.data.parses import Parse
from treeparse.sentence import Sentence

if TYPE_CHECKING:
    from spacy.tokens import Doc

Parsed = TypeVar("Parsed", bound="Sentence | ConlluSentence | Sequence[Mapping[str, Any]] | Mapping[str, Any] | Doc")


def with_trees(sentence: Parsed, parses: Sequence[Parse]) -> Parsed:
    """Return a copy of a sentence with the tree of its one parse; a spaCy ``Doc`` gets its trees in place.

    The words of a `Sentence` or `ConlluSentence` get heads and labels; DEPS becomes ``_``. In a list of mappings, such
    as a ``TokenList`` of the ``conllu`` library, they get ``head``, ``deprel``, and ``deps`` None. A row, which is a
    mapping with a column of words, becomes a dict with the columns ``head`` and ``deprel``.

    Raises:
        ValueError: if the parse has another number of words.
        TypeError: if the sentence has another type, such as a list of words, which cannot hold a tree.
    """
    if is_doc(sentence):
        fill_doc(sentence, parses)
        return sentence
    [parse] = parses
    if isinstance(sentence, Sentence):
        return cast(Parsed, sentence.with_tree(parse.heads, parse.labels))
    if isinstance(sentence, ConlluSentence):
        return cast(Parsed, sentence.with_parse(parse.heads, parse.labels))
    if isinstance(sentence, Mapping):
        return cast(Parsed, _row_with_tree(sentence, parse))
    if isinstance(sentence, str) or not all(isinstance(token, Mapping) for token in sentence):
        raise TypeError(f"A tree needs a sentence that can hold it, got {sentence!r:.100}: use Parser.parse instead.")
    copied: Any = copy.deepcopy(sentence)
    words = [token for token in copied if isinstance(token.get("id"), int)]
    for token, head, label in zip(words, parse.heads, parse.labels, strict=True):
        token.update(head=head, deprel=label, deps=None)
    return copied


def _row_with_tree(row: Mapping[str, Any], parse: Parse) -> dict[str, Any]:
    """Return a row with the columns of a tree; enhanced dependencies go, because they belong to the old tree."""
    words = row_words(row) or ()
    if len(words) != len(parse.heads):
        raise ValueError(f"A row of {len(words)} words cannot have a tree of {len(parse.heads)}.")
    new_row = {**row, "head": list(parse.heads), "deprel": list(parse.labels)}
    return new_row | ({"deps": [None] * len(words)} if "deps" in row else {})
