"""`pad`: sentences as tensors, for networks that are no treeparse parser."""

from collections.abc import Iterable
from itertools import chain
from typing import NamedTuple

import torch
from torch import Tensor

from treeparse.data.features.padding import filled, lengths_of, numbers
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

    def nodes(ids: Iterable[int], *, root: int, fill: int = 0) -> Tensor:
        return filled(numbers(ids, lengths.sum()), lengths, fill, first=root)

    forms = (form.lower() for sentence in converted for form in sentence.forms)
    heads = chain.from_iterable(sentence.heads or (-1,) * len(sentence) for sentence in converted)
    names = chain.from_iterable(sentence.labels or (EMPTY,) * len(sentence) for sentence in converted)
    return PaddedSentences(
        nodes(words.indices(forms), root=words.special(ROOT)),
        nodes(tags.indices(chain.from_iterable(map(_tags, converted))), root=tags.special(ROOT)),
        nodes(heads, root=-1, fill=-1),
        nodes(labels.indices(names, missing=-1), root=-1, fill=-1),
        torch.from_numpy(lengths),
        vocabularies,
    )


def _tags(sentence: Sentence) -> tuple[str, ...]:
    return sentence.upos or (EMPTY,) * len(sentence)
