"""From sentences to batches: features for the encoder, heads and label ids for the loss."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from types import MappingProxyType
from typing import Any, Self

import torch
from torch import Tensor

from treeparse.batch import Batch
from treeparse.data.features.padding import filled, lengths_of, numbers, padded
from treeparse.data.features.tags import check_unread, tag_ids, tag_vocabularies
from treeparse.data.features.vocabulary import Vocabulary
from treeparse.data.features.words import Features, LexicalFeatures
from treeparse.errors import TreeparseError
from treeparse.sentence import EMPTY, ROOT_LABEL, Sentence

PLAIN_LABELS = (ROOT_LABEL, "dep")
"""The labels of a parser that is trained without any tree."""

NO_TAGS: Mapping[str, Vocabulary] = MappingProxyType({})

# What ends a line or a column to some reader of CoNLL-U, and halves of characters, which cannot be written.
_NOT_IN_COLUMNS = re.compile(r"[\t\n\v\f\r\x1c-\x1e\x85\u2028\u2029\ud800-\udfff]")


class Indexer:
    """Turns sentences into a :class:`~treeparse.batch.Batch`. Holds the vocabularies, no weights; it can be pickled.

    ``tags`` are the vocabularies of the columns that a model predicts. Raises where the encoder reads one of them.
    ``multiword_tokens`` of the training data, with their words, are only for warnings.
    """

    def __init__(
        self,
        features: Features,
        labels: Vocabulary,
        tags: Mapping[str, Vocabulary] = NO_TAGS,
        multiword_tokens: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.label_names = (*labels.specials, *labels.items)
        _check_writable("label", self.label_names)
        for vocabulary in tags.values():
            _check_writable("tag", vocabulary.items)
        check_unread(tags, features)
        self.features, self.labels, self.tags = features, labels, dict(tags)
        self.multiword_tokens = dict(multiword_tokens)
        self.root_label = labels.index(ROOT_LABEL) if ROOT_LABEL in labels else -1

    @classmethod
    def build(cls, sentences: Sequence[Sentence], features: Features, tags: Iterable[str] = ()) -> Self:
        """The indexer of the training sentences, with `PLAIN_LABELS` where no head and no label is known.

        Raises without sentences, without heads and labels, where heads are known but no label, and where nothing is
        known of one of the columns ``tags``, which are to be predicted.
        """
        _check_trees(sentences)
        plain = Vocabulary(PLAIN_LABELS, [0] * len(PLAIN_LABELS))
        labels = Vocabulary.build(_labels(sentences)) if any_tree(sentences) else plain
        return cls(features, labels, tag_vocabularies(sentences, tags))

    def extended(self, sentences: Sequence[Sentence], features: Features, tags: Iterable[str] = ()) -> Self:
        """The indexer of these features whose labels are this one's, and behind them the new ones of the sentences.

        So are its tags, of the columns ``tags`` and no others. Raises as :meth:`build`.
        """
        _check_trees(sentences)
        found = tag_vocabularies(sentences, tags, self.tags)
        return type(self)(features, self.labels.extended(_labels(sentences)), found, self.multiword_tokens)

    def collate(self, sentences: Sequence[Sentence], indices: Sequence[int] | None = None) -> Batch:
        """One batch of the sentences, on the CPU, with what is known of their trees.

        Heads and labels that are missing become -1, as do labels that training never saw and those that break the rule
        that "root" is for arcs from the root, and for no others. Without any, the batch has none. ``indices`` are the
        sentences' places in a larger list, by default 0, 1, 2, ...
        """
        if not sentences:
            raise TreeparseError("A batch needs at least one sentence.")
        lengths = torch.tensor([len(sentence) for sentence in sentences])
        places = torch.arange(len(sentences)) if indices is None else torch.tensor(indices)
        features, tags = self.features(sentences), self._tags(sentences)
        batch = Batch(lengths, places, features, sentences=tuple(sentences), label_names=self.label_names, tags=tags)
        if any(sentence.allowed for sentence in sentences):
            batch = replace(batch, allowed=allowed_arcs(sentences))
        if all(sentence.heads is None and sentence.labels is None for sentence in sentences):
            return batch
        return replace(batch, **self._trees(sentences))

    def _tags(self, sentences: Sequence[Sentence]) -> dict[str, Tensor]:
        """The columns of tags that are known of some word."""
        found = {}
        for column, vocabulary in self.tags.items():
            rows = [[-1, *tag_ids(sentence, column, vocabulary)] for sentence in sentences]
            if any(tag >= 0 for row in rows for tag in row):
                found[column] = padded(rows, -1)
        return found

    def _trees(self, sentences: Sequence[Sentence]) -> dict[str, Tensor]:
        """The heads and labels of the nodes, -1 for those that are missing or that no tree of the model has."""
        lengths = lengths_of(sentences)
        given = chain.from_iterable(sentence.heads or [-1] * len(sentence) for sentence in sentences)
        heads = numbers(given, lengths.sum())
        names = chain.from_iterable(sentence.labels or [EMPTY] * len(sentence) for sentence in sentences)
        labels = numbers(self.labels.indices(names, missing=-1), lengths.sum())
        if self.root_label >= 0 and len(self.labels) > 1:
            labels[(heads >= 0) & ((labels == self.root_label) != (heads == 0))] = -1
        found = {"heads": heads, "labels": labels}
        return {name: filled(ids, lengths, -1, first=-1) for name, ids in found.items()}

    def to_json(self) -> dict[str, Any]:
        """Plain data that :meth:`from_json` turns back into an equal indexer."""
        data = {"features": self.features.to_json(), "labels": self.labels.to_json()}
        tags = {column: vocabulary.to_json() for column, vocabulary in self.tags.items()}
        more = {"tags": tags, "multiword_tokens": self.multiword_tokens}
        return data | {name: values for name, values in more.items() if values}

    @classmethod
    def from_json(
        cls, data: dict[str, Any], features: Callable[[dict[str, Any]], Features] = LexicalFeatures.from_json
    ) -> Self:
        """The indexer that :meth:`to_json` wrote; ``features`` makes its features of their part of the data."""
        tags = {column: Vocabulary.from_json(table) for column, table in data.get("tags", {}).items()}
        multiword = {str(form): str(words) for form, words in data.get("multiword_tokens", {}).items()}
        return cls(features(data["features"]), Vocabulary.from_json(data["labels"]), tags, multiword)


def has_tree(sentence: Sentence) -> bool:
    """Whether anything is known of the heads of a sentence."""
    return any(head >= 0 for head in sentence.heads or ()) or any(sentence.allowed or ())


def any_tree(sentences: Sequence[Sentence]) -> bool:
    """Whether anything is known of the heads or labels of the sentences."""
    return any(map(has_tree, sentences)) or next(_labels(sentences), None) is not None


def with_plain_labels(sentence: Sentence) -> Sentence:
    """The same tree with `PLAIN_LABELS`."""
    heads = sentence.heads or (-1,) * len(sentence)
    return sentence.with_tree(heads, [PLAIN_LABELS[head != 0] for head in heads])


def allowed_arcs(sentences: Sequence[Sentence]) -> Tensor:
    """Which arcs possible heads allow: ``(B, n+1, n+1)`` bool, True where nothing is said."""
    nodes = max(map(len, sentences)) + 1
    allowed = torch.ones(len(sentences), nodes, nodes, dtype=torch.bool)
    for place, sentence in enumerate(sentences):
        for word, heads in enumerate(sentence.allowed or (), 1):
            if heads:
                allowed[place, :, word] = False
                allowed[place, list(heads), word] = True
    return allowed


def _check_trees(sentences: Sequence[Sentence]) -> None:
    """Raise for what vocabularies cannot be built from."""
    if not sentences:
        raise TreeparseError("There is no sentence to build the vocabularies from: give at least one.")
    if any(sentence.labels is None or sentence.heads is None for sentence in sentences):
        raise TreeparseError("A training sentence has no tree: training needs HEAD and DEPREL in every sentence.")
    if any_tree(sentences) and next(_labels(sentences), None) is None:
        raise TreeparseError("No training sentence has a label: training needs DEPREL, and every DEPREL is '_'.")


def _labels(sentences: Sequence[Sentence]) -> Iterator[str]:
    return (label for sentence in sentences for label in sentence.labels or () if label != EMPTY)


def _check_writable(noun: str, names: Sequence[str]) -> None:
    """Raise for a label or a tag that a prediction could not hold."""
    for name in names:
        if not name or _NOT_IN_COLUMNS.search(name):
            raise TreeparseError(
                f"The {noun} {name!r} cannot stand in CoNLL-U: a {noun} is not empty and has no tab or line break."
            )
