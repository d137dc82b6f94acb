"""Read the words of a spaCy Doc, and write trees into it. This module does not import spaCy.

A Doc without sentence boundaries is one sentence. Tokens of white space are no words: as in spaCy's parsers, each hangs
from the token before it, or the first from the word after it, with the label "dep". The root is its own head, with the
label "ROOT".
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np

from treeparse.data.parses import Parse
from treeparse.errors import TreeparseError
from treeparse.sentence import EMPTY, ROOT_LABEL, Sentence

if TYPE_CHECKING:
    from spacy.tokens import Doc, Span, Token

ROOT_IN_DOCS, SPACE_LABEL = "ROOT", "dep"


def is_doc(value: object) -> "TypeGuard[Doc]":
    """Return whether a value is a spaCy ``Doc``."""
    return _is_a(value, "spacy.tokens.doc", "Doc")


def is_span(value: object) -> "TypeGuard[Span]":
    """Return whether a value is a spaCy ``Span``, such as a sentence of a Doc."""
    return _is_a(value, "spacy.tokens.span", "Span")


def _is_a(value: object, module: str, name: str) -> bool:
    return any((kind.__module__, kind.__name__) == (module, name) for kind in type(value).__mro__)


def doc_sentences(doc: "Doc") -> "list[Span]":
    """Return the spans of a Doc's sentences that have words."""
    return [span for span in _spans(doc) if word_tokens(span)]


def word_tokens(span: "Span") -> "list[Token]":
    """Return the tokens of a sentence that are words, not white space."""
    return [token for token in span if token.text.strip()]


def span_words(span: "Span") -> Sentence:
    """Return the words of a sentence with their tags."""
    words = word_tokens(span)
    upos, xpos, feats = (
        _column(tags)
        for tags in ([word.pos_ for word in words], [word.tag_ for word in words], [str(word.morph) for word in words])
    )
    return Sentence(tuple(word.text for word in words), upos, xpos, feats)


def doc_arcs(span: "Span", parse: Parse) -> list[tuple[int, str]]:
    """Return the head and label of each token of a sentence from the parse of its words.

    Heads are indices of tokens in the Doc; the head of the root is the root.
    """
    indices = [word.i for word in word_tokens(span)]
    if len(indices) != len(parse.heads):
        raise TreeparseError(f"A sentence of {len(indices)} words cannot have a tree of {len(parse.heads)}.")
    of_words = {
        index: (index if head == 0 else indices[head - 1], ROOT_IN_DOCS if (head, label) == (0, ROOT_LABEL) else label)
        for index, head, label in zip(indices, parse.heads, parse.labels, strict=True)
    }
    of_space = [indices[0], *range(span.start, span.end - 1)]
    return [of_words.get(index) or (head, SPACE_LABEL) for index, head in enumerate(of_space, span.start)]


def fill_doc(doc: "Doc", parses: Sequence[Parse]) -> None:
    """Write the trees of the sentences with words into a Doc, in place; its sentences do not change.

    Raises a ``TreeparseError`` if the parses are not of these sentences; the Doc then does not change.
    """
    if (count := len(doc_sentences(doc))) != len(parses):
        raise TreeparseError(f"A Doc of {count} sentences with words cannot have {len(parses)} trees.")
    remaining, arcs, starts = iter(parses), list[tuple[int, str]](), set[int]()
    for span in _spans(doc):
        starts.add(span.start)
        if word_tokens(span):
            arcs += doc_arcs(span, next(remaining))
        else:  # a chain of white space
            arcs += [(span.start, ROOT_IN_DOCS), *((head, SPACE_LABEL) for head in range(span.start, span.end - 1))]
    if not arcs:
        return
    heads = [head - index for index, (head, _) in enumerate(arcs)]
    labels = [doc.vocab.strings.add(label) for _, label in arcs]
    doc.from_array(["HEAD", "DEP"], _as_array(heads, labels))
    # spaCy has guessed the sentences from the trees, wrongly where arcs cross much or there are several roots.
    doc.from_array(["SENT_START"], _as_array([1 if index in starts else -1 for index in range(len(doc))]))


def _as_array(*columns: Sequence[int]) -> Any:
    """Return values of tokens as spaCy stores them: 64-bit patterns, negative ones too."""
    return np.array([[value % 2**64 for value in column] for column in columns], dtype=np.uint64).T


def _spans(doc: "Doc") -> "list[Span]":
    if not len(doc):
        return []
    return list(doc.sents) if doc.has_annotation("SENT_START") else [doc[:]]


def _column(tags: Iterable[str]) -> tuple[str, ...] | None:
    """Return a column of tags; None if no word has one."""
    column = tuple(tag or EMPTY for tag in tags)
    return None if set(column) == {EMPTY} else column
