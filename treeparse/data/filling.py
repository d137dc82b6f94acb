"""Trees of parses added to sentences, in the form in which the sentences came."""

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

Held = TypeVar("Held", bound="Sentence | ConlluSentence | Sequence[Mapping[str, Any]] | Mapping[str, Any] | Doc")


def filled(held: Held, parses: Sequence[Parse]) -> Held:
    """Return a sentence with its tree, as `with_parse`; fill the trees into a spaCy ``Doc`` in place."""
    if is_doc(held):
        fill_doc(held, parses)
        return held
    [parse] = parses
    return with_parse(held, parse)


def with_parse(held: Held, parse: Parse) -> Held:
    """Return a copy of a sentence with the tree of its parse.

    Args:
        held: a `Sentence`; a `ConlluSentence`, whose words get HEAD and DEPREL, and DEPS ``_``; or a list of mappings,
            such as a ``TokenList`` of the ``conllu`` library, whose words get ``head``, ``deprel`` and ``deps`` None;
            or a row, a mapping with a column of words, which becomes a dict with the columns ``head`` and ``deprel``.
        parse: the parse of its words.

    Raises:
        ValueError: if the parse has another number of words.
        TypeError: if the sentence has another form, such as a list of words, which cannot hold a tree.
    """
    if isinstance(held, Sentence):
        return cast(Held, held.with_tree(parse.heads, parse.labels))
    if isinstance(held, ConlluSentence):
        return cast(Held, held.with_parse(parse.heads, parse.labels))
    if isinstance(held, Mapping):
        return cast(Held, _filled_row(held, parse))
    if isinstance(held, str) or not all(isinstance(token, Mapping) for token in held):
        raise TypeError(f"This has no place for a tree: {held!r:.100}. Lists of words are what Parser.parse is for.")
    copied: Any = copy.deepcopy(held)
    words = [token for token in copied if isinstance(token.get("id"), int)]
    for token, head, label in zip(words, parse.heads, parse.labels, strict=True):
        token.update(head=head, deprel=label, deps=None)
    return copied


def _filled_row(row: Mapping[str, Any], parse: Parse) -> dict[str, Any]:
    """A row with the columns of a tree in the place of its own; enhanced dependencies are of the old tree."""
    words = row_words(row) or ()
    if len(words) != len(parse.heads):
        raise ValueError(f"A row of {len(words)} words cannot have a tree of {len(parse.heads)}.")
    filled_row = {**row, "head": list(parse.heads), "deprel": list(parse.labels)}
    return filled_row | ({"deps": [None] * len(words)} if "deps" in row else {})
