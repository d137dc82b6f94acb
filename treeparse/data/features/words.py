"""Convert sentences to the tensors that an encoder reads: ids of words, characters and tags."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from treeparse.data.columns import Column, column_named
from treeparse.data.features.padding import Numbers, filled, lengths_of, numbers
from treeparse.data.features.vocabulary import Vocabulary
from treeparse.sentence import EMPTY, Sentence

PADDING, UNKNOWN, ROOT, BEGIN, END = "<pad>", "<unk>", "<root>", "<begin>", "<end>"
SPECIALS = (PADDING, UNKNOWN, ROOT)  # the first ids of words and tags
SPELLED_END = 16  # characters of a long form that are read at either end


class Features(ABC):
    """Maps sentences to the tensors that an encoder reads. It has vocabularies, no weights, and can be pickled."""

    @abstractmethod
    def __call__(self, sentences: Sequence[Sentence]) -> dict[str, Tensor]:
        """Return the features of the sentences, for ``Batch``."""

    @abstractmethod
    def extended(self, sentences: Sequence[Sentence], *, min_count: int = 2) -> Self:
        """Return these features with the same ids, followed by the new ones of more training sentences.

        New items with a count below ``min_count`` are unknown.
        """

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """Return plain data from which the encoder's kind makes equal features."""

    def check(self, sentence: Sentence) -> None:
        """Raise if the sentence lacks what the encoder reads, before it is in a batch."""
        return

    def length(self, sentence: Sentence) -> int:
        """Return the length of the sentence in the bounds of a batch: the vectors that the encoder computes."""
        return len(sentence)

    def known_words(self) -> Vocabulary | None:
        """The lower-cased words of the training sentences with their counts; None if they are not stored."""
        return None

    def tag_columns(self) -> Sequence[str]:
        """The columns that the encoder reads besides forms, see `treeparse.data.columns`."""
        return ()

    def sizes(self) -> Mapping[str, int]:
        """The number of ids of each feature that an encoder looks up in an embedding."""
        return {}

    def vocabularies(self) -> Mapping[str, Vocabulary]:
        """The vocabularies that grow with training sentences, by the noun for their items: ``word``."""
        return {}


class LexicalFeatures(Features):
    """Ids of words, characters and tags over vocabularies of the training sentences.

    The features of ``B`` sentences, the longest of ``n`` words (node 0 is the root, padding is id 0):

    - ``words`` (B, n+1): lower-cased forms;
    - ``vectors`` (B, n+1): rows of a pretrained vector table, if there is one;
    - ``characters`` (U, L): the characters of every distinct form of the batch;
    - ``forms`` (B, n+1): the row of ``characters`` of each node;
    - ``upos``, ``feats.Case`` and so on (B, n+1): the columns in ``tags``.
    """

    words: Vocabulary
    characters: Vocabulary
    tags: dict[str, Vocabulary]
    vectors: Vocabulary | None

    def __init__(
        self,
        words: Vocabulary,
        characters: Vocabulary,
        tags: dict[str, Vocabulary],
        vectors: Vocabulary | None = None,
    ) -> None:
        self.words, self.characters, self.tags, self.vectors = words, characters, tags, vectors

    @classmethod
    def build(
        cls,
        sentences: Sequence[Sentence],
        *,
        min_count: int = 2,
        tags: Sequence[str] = (),
        vectors: Vocabulary | None = None,
    ) -> Self:
        """Return features of the training sentences; items with a count below ``min_count`` are unknown."""
        none, no_characters = (
            Vocabulary((), (), specials=names, unknown=UNKNOWN) for names in (SPECIALS, (*SPECIALS, BEGIN, END))
        )
        empty = cls(none, no_characters, dict.fromkeys(tags, none), vectors)
        return empty.extended(sentences, min_count=min_count)

    def extended(self, sentences: Sequence[Sentence], *, min_count: int = 2) -> Self:
        """Return these features with the same ids, followed by the new ones of more training sentences.

        Pretrained vectors do not change. New items with a count below ``min_count`` are unknown.
        """
        forms = [form for sentence in sentences for form in sentence.forms]
        return type(self)(
            self.words.extended(map(str.lower, forms), min_count=min_count),
            self.characters.extended(chain.from_iterable(forms), min_count=min_count),
            {name: table.extended(_known_values(column_named(name), sentences)) for name, table in self.tags.items()},
            self.vectors,
        )

    def known_words(self) -> Vocabulary:
        return self.words

    def tag_columns(self) -> Sequence[str]:
        return tuple(self.tags)

    def vocabularies(self) -> dict[str, Vocabulary]:
        tags = {f"{column_named(name).title} tag": table for name, table in self.tags.items()}
        return {"word": self.words, "character": self.characters, **tags}

    def sizes(self) -> dict[str, int]:
        sizes = {"words": len(self.words), "characters": len(self.characters)}
        sizes |= {name: len(table) for name, table in self.tags.items()}
        return sizes if self.vectors is None else sizes | {"vectors": len(self.vectors)}

    def __call__(self, sentences: Sequence[Sentence]) -> dict[str, Tensor]:
        """Return the features of the sentences; raise if a tag that the model reads is missing."""
        lengths, forms = lengths_of(sentences), [*chain.from_iterable(sentence.forms for sentence in sentences)]
        distinct = {form: index for index, form in enumerate(dict.fromkeys(forms))}  # each is looked up once
        indices = numbers(map(distinct.__getitem__, forms), len(forms))

        def of_forms(ids: Iterable[int]) -> Numbers:
            return numbers(ids, len(distinct))[indices]

        def nodes(ids: Numbers, table: Vocabulary) -> Tensor:
            return filled(ids, lengths, first=table.special(ROOT))

        features = {
            "words": nodes(of_forms(self.words.indices(map(str.lower, distinct))), self.words),
            "forms": filled(indices + 1, lengths, first=0),
            "characters": self._spell(distinct),
        }
        if self.vectors is not None:
            spelled = (form if form in self.vectors else form.lower() for form in distinct)
            features["vectors"] = nodes(of_forms(self.vectors.indices(spelled)), self.vectors)
        for name, table in self.tags.items():
            tags = chain.from_iterable(map(column_named(name).read, sentences))
            features[name] = nodes(numbers(table.indices(tags), len(forms)), table)
        return features

    def check(self, sentence: Sentence) -> None:
        """Raise if a tag that the model reads is missing, before the sentence is in a batch."""
        for name in self.tags:
            column_named(name).read(sentence)

    def _spell(self, forms: Iterable[str]) -> Tensor:
        """Return the characters ``(U, L)`` of the root, in row 0, and of the forms, in order."""
        shortened = [*map(_shortened, forms)]
        lengths = np.concatenate([[1], lengths_of(shortened)])
        root, others = self.characters.special(ROOT), self.characters.indices("".join(shortened))
        ids = numbers(chain([root], others), lengths.sum())
        spelled = functional.pad(filled(ids, lengths, first=self.characters.special(BEGIN)), (0, 1))
        spelled[torch.arange(len(spelled)), torch.from_numpy(lengths) + 1] = self.characters.special(END)
        return spelled

    def to_json(self) -> dict[str, Any]:
        """Return plain data from which ``from_json`` makes equal features."""
        return {
            "words": self.words.to_json(),
            "characters": self.characters.to_json(),
            "tags": {name: table.to_json() for name, table in self.tags.items()},
            "vectors": None if self.vectors is None else self.vectors.to_json(),
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """Return the features that ``to_json`` wrote."""
        return cls(
            Vocabulary.from_json(data["words"]),
            Vocabulary.from_json(data["characters"]),
            {name: Vocabulary.from_json(table) for name, table in data["tags"].items()},
            None if data["vectors"] is None else Vocabulary.from_json(data["vectors"]),
        )


def _known_values(column: Column, sentences: Sequence[Sentence]) -> Iterator[str]:
    """Yield the values of the words of sentences; ``_`` is none where it stands for the mean of all values."""
    values = chain.from_iterable(map(column.read, sentences))
    return (value for value in values if not (column.has_mean and value == EMPTY))


def vector_vocabulary(words: Sequence[str]) -> Vocabulary:
    """Return the vocabulary of a table of pretrained vectors; its first rows are padding, unknown and root."""
    return Vocabulary(words, [0] * len(words), specials=SPECIALS, unknown=UNKNOWN)


def _shortened(form: str) -> str:
    """Return the form, or the two ends of a very long one, because one URL would pad all forms of its batch."""
    return form if len(form) <= 2 * SPELLED_END else form[:SPELLED_END] + form[-SPELLED_END:]
