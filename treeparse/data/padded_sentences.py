"""`pad`: sentences as tensors, for networks that are no treeparse parser."""

from collections.abc import Iterable
from functools import partial
from itertools import chain
from typing import NamedTuple

import torch
from torch import Tensor

from treeparse.data.features.padding import filled, lengths_of, numbers, padded_heads, padded_labels
from treeparse.data.features.vocabulary import Vocabulary
from treeparse.data.features.words import PADDING, ROOT, UNKNOWN
from treeparse.data.mapping import Words, as_sentences
from treeparse.errors import TreeparseError
from treeparse.sentence import EMPTY, Sentence

SPECIALS = (PADDING, UNKNOWN, ROOT)  # with the ids 0, 1 and 2


class Vocabularies(NamedTuple):
    """The ids of words, tags and labels; ``len`` of one is the number of rows of an embedding.

    Attributes:
        words: forms in lower case; 0 is padding, 1 an unknown word and 2 the root.
        tags: UPOS, with the same three ids.
        labels: labels of arcs, from 0.
    """

    words: Vocabulary
    tags: Vocabulary
    labels: Vocabulary

    @classmethod
    def of(cls, sentences: Iterable[Words], *, min_count: int = 1) -> "Vocabularies":
        """Return the vocabularies of training sentences; words with a count below ``min_count`` are unknown."""
        converted = as_sentences(sentences)
        forms = (form.lower() for sentence in converted for form in sentence.forms)
        labels = (label for sentence in converted for label in sentence.labels or () if label != EMPTY)
        tags = chain.from_iterable(map(_tags, converted))
        return cls(
            Vocabulary.build(forms, min_count=min_count, specials=SPECIALS, unknown=UNKNOWN),
            Vocabulary.build((tag for tag in tags if tag != EMPTY), specials=SPECIALS, unknown=UNKNOWN),
            Vocabulary.build(labels),
        )


class PaddedSentences(NamedTuple):
    """B sentences as tensors of int64; the longest has ``n`` words, node 0 is the root.

    Attributes:
        words: ids ``(B, n+1)``.
        tags: ids ``(B, n+1)`` of UPOS.
        heads: nodes ``(B, n+1)``; -1 at the root, at padding and where unknown, as distributions over trees take them.
        labels: ids ``(B, n+1)``; -1 as in ``heads``, and for labels that the vocabulary lacks.
        lengths: words ``(B,)``, without the root.
        vocabularies: give the ids.
    """

    words: Tensor
    tags: Tensor
    heads: Tensor
    labels: Tensor
    lengths: Tensor
    vocabularies: Vocabularies


def pad(sentences: Iterable[Words], vocabularies: Vocabularies | None = None) -> PaddedSentences:
    """Return sentences as padded tensors.

    Args:
        sentences: of `treeparse.data.load_treebank`, or of another type that ``Parser.parse`` takes.
        vocabularies: of the training sentences; None makes them of these.

    Raises:
        TreeparseError: there are no sentences.
    """
    converted = as_sentences(sentences)
    if not converted:
        raise TreeparseError("There is no sentence to pad.")
    words, tags, labels = vocabularies = vocabularies or Vocabularies.of(converted)
    lengths = lengths_of(converted)

    def nodes(table: Vocabulary, values: Iterable[str]) -> Tensor:
        return filled(numbers(table.indices(values), lengths.sum()), lengths, first=table.special(ROOT))

    forms = (form.lower() for sentence in converted for form in sentence.forms)
    return PaddedSentences(
        nodes(words, forms),
        nodes(tags, chain.from_iterable(map(_tags, converted))),
        padded_heads(converted),
        padded_labels(converted, partial(labels.indices, missing=-1)),
        torch.from_numpy(lengths),
        vocabularies,
    )


def _tags(sentence: Sentence) -> tuple[str, ...]:
    return sentence.upos or (EMPTY,) * len(sentence)
