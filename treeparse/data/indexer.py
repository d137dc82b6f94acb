"""From sentences to batches: features for the encoder, heads and label ids for the loss."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Self

import torch
from torch import Tensor

from treeparse.core import EMPTY, ROOT_LABEL, Batch, Sentence, TreeparseError

from .features import Features, LexicalFeatures, padded
from .vocabulary import Vocabulary

PLAIN_LABELS = (ROOT_LABEL, "dep")
"""The labels of a parser that is trained without any tree."""

# What ends a line or a column to some reader of CoNLL-U, and halves of characters, which cannot be written.
_NOT_IN_LABELS = re.compile(r"[\t\n\v\f\r\x1c-\x1e\x85\u2028\u2029\ud800-\udfff]")


class Indexer:
    """Turns sentences into a :class:`~treeparse.core.Batch`. Holds the vocabularies, no weights; it can be pickled."""

    def __init__(self, features: Features, labels: Vocabulary) -> None:
        self.label_names = (*labels.specials, *labels.items)
        _check_labels(self.label_names)
        self.features, self.labels = features, labels
        self.root_label = labels.index(ROOT_LABEL) if ROOT_LABEL in labels else -1

    @classmethod
    def build(cls, sentences: Sequence[Sentence], features: Features) -> Self:
        """The indexer of the training sentences, with `PLAIN_LABELS` where no head and no label is known.

        Raises without sentences, without heads and labels, and where heads are known but no label.
        """
        _check_trees(sentences)
        plain = Vocabulary(PLAIN_LABELS, [0] * len(PLAIN_LABELS))
        return cls(features, Vocabulary.build(_labels(sentences)) if any_tree(sentences) else plain)

    def extended(self, sentences: Sequence[Sentence], features: Features) -> Self:
        """The indexer of these features whose labels are this one's, and behind them the new ones of the sentences.

        Raises as :meth:`build`.
        """
        _check_trees(sentences)
        return type(self)(features, self.labels.extended(_labels(sentences)))

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
        features = self.features(sentences)
        batch = Batch(lengths, places, features, sentences=tuple(sentences), label_names=self.label_names)
        if any(sentence.allowed for sentence in sentences):
            batch = replace(batch, allowed=_allowed_arcs(sentences))
        if all(sentence.heads is None and sentence.labels is None for sentence in sentences):
            return batch
        return replace(
            batch,
            heads=padded([[-1, *(sentence.heads or [-1] * len(sentence))] for sentence in sentences], -1),
            labels=padded([[-1, *self._label_ids(sentence)] for sentence in sentences], -1),
        )

    def _label_ids(self, sentence: Sentence) -> list[int]:
        """Ids of the labels, -1 for those that are missing or that no tree of the model has on such an arc."""
        if sentence.labels is None:
            return [-1] * len(sentence)
        found = self.labels.indices(sentence.labels, missing=-1)
        if sentence.heads is None or self.root_label < 0 or len(self.labels) == 1:
            return found
        pairs = zip(found, sentence.heads, strict=True)
        return [-1 if head >= 0 and (label == self.root_label) != (head == 0) else label for label, head in pairs]

    def to_json(self) -> dict[str, Any]:
        """Plain data that :meth:`from_json` turns back into an equal indexer."""
        return {"features": self.features.to_json(), "labels": self.labels.to_json()}

    @classmethod
    def from_json(
        cls, data: dict[str, Any], features: Callable[[dict[str, Any]], Features] = LexicalFeatures.from_json
    ) -> Self:
        """The indexer that :meth:`to_json` wrote; ``features`` makes its features of their part of the data."""
        return cls(features(data["features"]), Vocabulary.from_json(data["labels"]))


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


def _allowed_arcs(sentences: Sequence[Sentence]) -> Tensor:
    """Which arcs may be in the trees: ``(B, n+1, n+1)`` bool, True where nothing is said."""
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


def _check_labels(labels: Sequence[str]) -> None:
    """Raise for a label that a prediction could not hold."""
    for label in labels:
        if not label or _NOT_IN_LABELS.search(label):
            raise TreeparseError(
                f"The label {label!r} cannot stand in CoNLL-U: a label is not empty and has no tab or line break."
            )
