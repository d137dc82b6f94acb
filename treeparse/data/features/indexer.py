"""Convert sentences to batches: features for the encoder, heads and label ids for the loss."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any, Self

import torch
from torch import Tensor

from treeparse.batch import Batch
from treeparse.data.columns import COLUMNS
from treeparse.data.features.padding import padded, padded_heads, padded_labels
from treeparse.data.features.root_label import RootLabelUse
from treeparse.data.features.vocabulary import Vocabulary
from treeparse.data.features.words import Features, LexicalFeatures
from treeparse.errors import TreeparseError
from treeparse.sentence import EMPTY, ROOT_LABEL, Sentence

PLAIN_LABELS = (ROOT_LABEL, "dep")
"""The labels of a parser that is trained without any tree."""
NO_TAGS: Mapping[str, Vocabulary] = MappingProxyType({})
# Characters that end a line or a column for some reader of CoNLL-U, and surrogates, which cannot be written.
_NOT_IN_COLUMNS = re.compile(r"[\t\n\v\f\r\x1c-\x1e\x85\u2028\u2029\ud800-\udfff]")


def known_tags(sentence: Sentence, column: str) -> Sequence[str | None]:
    """Return the tags of a sentence's words in a column, upos, xpos or feats; None for unknown tags.

    Unknown is ``_``. But in FEATS ``_`` says that a word has no features, if the word has a UPOS or an XPOS: then it
    was tagged. The features of a word are one tag.
    """
    tags: tuple[str, ...] | None = getattr(sentence, column)
    if tags is None:
        return [None] * len(sentence)
    if column != "feats":
        return [None if tag == EMPTY else tag for tag in tags]
    others = zip(*(side or [EMPTY] * len(sentence) for side in (sentence.upos, sentence.xpos)), strict=True)
    return [None if tag == EMPTY and set(other) == {EMPTY} else tag for tag, other in zip(tags, others, strict=True)]


def has_tags(sentences: Iterable[Sentence], column: str) -> bool:
    """Return whether some word of the sentences has a tag in a column, upos, xpos or feats."""
    return any(tag not in (None, EMPTY) for sentence in sentences for tag in known_tags(sentence, column))


def tag_vocabularies(
    sentences: Sequence[Sentence], columns: Iterable[str], earlier: Mapping[str, Vocabulary] = NO_TAGS
) -> dict[str, Vocabulary]:
    """Return vocabularies of training sentences' tags by column; they extend earlier vocabularies.

    Raises a ``TreeparseError`` if there is nothing to learn: every tag of a column is ``_``.
    """
    vocabularies = {}
    for column in columns:
        if column not in earlier and not has_tags(sentences, column):
            raise TreeparseError(
                f"There is no {COLUMNS[column].title} to learn: in every word of the training sentences it is _. Leave "
                f"out model.tags.{column}, or name files that are tagged."
            )
        tags = (tag for sentence in sentences for tag in known_tags(sentence, column) if tag is not None)
        vocabularies[column] = earlier.get(column, Vocabulary((), ())).extended(tags)
    return vocabularies


def check_unread(tags: Iterable[str], features: Features) -> None:
    """Raise if a predicted column does not exist, or the encoder reads it."""
    for column in tags:
        if column not in COLUMNS:
            raise TreeparseError(f"There are no tags {column!r}, only {', '.join(COLUMNS)}.")
        if column in features.tag_columns():
            raise TreeparseError(
                f"The model reads {COLUMNS[column].title}, so it cannot learn to predict it: take {column} out of "
                f"model.encoder.tags, or leave out model.tags.{column}."
            )


class Indexer:
    """Convert sentences to a ``Batch``. An indexer has vocabularies, no weights; it pickles.

    Args:
        features: converts sentences to the features that the encoder reads.
        labels: the vocabulary of labels.
        tags: the vocabularies of the columns that the model predicts; the encoder must read none of these.
        multiword_tokens: the multiword tokens of the training data, with their words; used for warnings only.
        treebanks: the labels of each treebank of the training data, by its name: others are impossible for its
            sentences. A treebank without any label but "root" may have all.
        reserves_root: whether arcs from the root, and no others, have the label "root", if there is one beside others.

    Attributes:
        root_label: the index of the label that is reserved for arcs from the root; -1 if none is.
    """

    features: Features
    labels: Vocabulary
    tags: dict[str, Vocabulary]

    def __init__(
        self,
        features: Features,
        labels: Vocabulary,
        tags: Mapping[str, Vocabulary] = NO_TAGS,
        multiword_tokens: Mapping[str, str] = MappingProxyType({}),
        treebanks: Mapping[str, Collection[str]] = MappingProxyType({}),
        *,
        reserves_root: bool = True,
    ) -> None:
        self.label_names: tuple[str, ...] = (*labels.specials, *labels.items)
        _check_writable("label", self.label_names)
        for vocabulary in tags.values():
            _check_writable("tag", vocabulary.items)
        check_unread(tags, features)
        self.features, self.labels, self.tags = features, labels, dict(tags)
        self.multiword_tokens: dict[str, str] = dict(multiword_tokens)
        self.reserves_root = reserves_root
        has_rule = reserves_root and ROOT_LABEL in labels and len(labels) > 1
        self.root_label: int = labels.index(ROOT_LABEL) if has_rule else -1
        self.treebanks: dict[str, list[str]] = {name: sorted(used) for name, used in treebanks.items()}
        self._possible: dict[str, list[bool]] = {name: self._mask(used) for name, used in self.treebanks.items()}

    @classmethod
    def build(cls, sentences: Sequence[Sentence], features: Features, tags: Iterable[str] = ()) -> Self:
        """Return the indexer of the training sentences, with `PLAIN_LABELS` if no head and no label is known.

        `RootLabelUse` says whether these sentences reserve the label "root".

        Raises:
            TreeparseError: there are no sentences; a sentence has no heads or labels; heads are known but no label; or
                no tag is known in one of the columns ``tags``, which the model predicts.
        """
        _check_trees(sentences)
        plain = Vocabulary(PLAIN_LABELS, [0] * len(PLAIN_LABELS))
        labels = Vocabulary.build(_labels(sentences)) if any_tree(sentences) else plain
        reserves_root = RootLabelUse.of(sentences).is_reserved
        treebanks = _treebank_labels(sentences)
        return cls(features, labels, tag_vocabularies(sentences, tags), {}, treebanks, reserves_root=reserves_root)

    def extended(self, sentences: Sequence[Sentence], features: Features, tags: Iterable[str] = ()) -> Self:
        """Return an indexer of new features, with this one's labels and tags, followed by new ones of the sentences.

        It has the columns ``tags`` and no others, and reserves the label "root" if this one does. Raises as ``build``.
        """
        _check_trees(sentences)
        vocabularies = tag_vocabularies(sentences, tags, self.tags)
        labels = self.labels.extended(_labels(sentences))
        treebanks, rule = _treebank_labels(sentences, self.treebanks), {"reserves_root": self.reserves_root}
        return type(self)(features, labels, vocabularies, self.multiword_tokens, treebanks, **rule)

    def with_features(self, features: Features) -> Self:
        """Return the indexer with other features."""
        rest = self.labels, self.tags, self.multiword_tokens, self.treebanks
        return type(self)(features, *rest, reserves_root=self.reserves_root)

    def collate(self, sentences: Sequence[Sentence], indices: Sequence[int] | None = None) -> Batch:
        """Return one batch of the sentences, on the CPU, with the known heads and labels.

        Missing heads and labels become -1. So do labels that training never saw, in the sentence's treebank if that is
        known, and labels that break the rule that arcs from the root, and no others, have the label that is reserved
        for them. A batch without any has the heads None. ``indices`` are the sentences' indices in a larger list, by
        default 0, 1, 2, ...
        """
        if not sentences:
            raise TreeparseError("A batch needs at least one sentence.")
        lengths = torch.tensor([len(sentence) for sentence in sentences])
        batch_indices = torch.arange(len(sentences)) if indices is None else torch.tensor(indices)
        features, tags = self.features(sentences), self._tags(sentences)
        names, root = self.label_names, self.root_label
        batch = Batch(
            lengths, batch_indices, features, sentences=tuple(sentences), label_names=names, root_label=root, tags=tags
        )
        if any(sentence.allowed for sentence in sentences):
            batch = replace(batch, allowed=allowed_arcs(sentences))
        if any(sentence.treebank in self._possible for sentence in sentences):
            batch = replace(batch, possible_labels=self._possible_labels(sentences))
        if all(sentence.heads is None and sentence.labels is None for sentence in sentences):
            return batch
        return replace(batch, **self._trees(sentences, batch.possible_labels))

    def _mask(self, used: Collection[str]) -> list[bool]:
        """Tell which labels are possible in a treebank that uses some, so that every arc has a possible label."""
        others = {*used} - ({ROOT_LABEL} if self.root_label >= 0 else set())
        return [index == self.root_label or not others or name in used for index, name in enumerate(self.label_names)]

    def _possible_labels(self, sentences: Sequence[Sentence]) -> Tensor:
        """Return the labels ``(B, L)`` bool that the sentences' treebanks allow."""
        every = [True] * len(self.label_names)
        return torch.tensor([self._possible.get(sentence.treebank or "", every) for sentence in sentences])

    def _tags(self, sentences: Sequence[Sentence]) -> dict[str, Tensor]:
        """Return the ids ``(B, n+1)`` of each predicted column in which some tag is known, -1 for other tags."""
        columns = {}
        for column, vocabulary in self.tags.items():
            tags = [[tag or "" for tag in known_tags(sentence, column)] for sentence in sentences]
            rows = [[-1, *vocabulary.indices(sentence_tags, missing=-1)] for sentence_tags in tags]
            if any(tag >= 0 for row in rows for tag in row):
                columns[column] = padded(rows, -1)
        return columns

    def _trees(self, sentences: Sequence[Sentence], possible: Tensor | None) -> dict[str, Tensor]:
        """Return heads and labels ``(B, n+1)``, -1 if missing or impossible for the model."""
        heads, labels = padded_heads(sentences), padded_labels(sentences, partial(self.labels.indices, missing=-1))
        if self.root_label >= 0:
            labels[(heads >= 0) & ((labels == self.root_label) != (heads == 0))] = -1
        if possible is not None:
            labels[(labels >= 0) & ~possible.gather(1, labels.clamp_min(0))] = -1
        return {"heads": heads, "labels": labels}

    def to_json(self) -> dict[str, Any]:
        """Return plain data from which ``from_json`` makes an equal indexer."""
        data: dict[str, Any] = {"features": self.features.to_json(), "labels": self.labels.to_json()}
        data["reserves_root"] = self.reserves_root
        tags = {column: vocabulary.to_json() for column, vocabulary in self.tags.items()}
        more = {"tags": tags, "multiword_tokens": self.multiword_tokens, "treebanks": self.treebanks}
        return data | {name: values for name, values in more.items() if values}

    @classmethod
    def from_json(
        cls, data: dict[str, Any], features: Callable[[dict[str, Any]], Features] = LexicalFeatures.from_json
    ) -> Self:
        """Return the indexer that ``to_json`` wrote; ``features`` makes the features from their data."""
        tags = {column: Vocabulary.from_json(table) for column, table in data.get("tags", {}).items()}
        multiword = {str(form): str(words) for form, words in data.get("multiword_tokens", {}).items()}
        labels, reserves_root = Vocabulary.from_json(data["labels"]), data.get("reserves_root")
        if not isinstance(reserves_root, bool):
            raise TreeparseError(
                'The vocabulary of a model must say whether the label "root" is reserved for arcs from the root '
                f"(reserves_root, true or false), got {reserves_root!r:.40}: an earlier treeparse wrote it; train the "
                "model again."
            )
        treebanks = data.get("treebanks", {})
        return cls(features(data["features"]), labels, tags, multiword, treebanks, reserves_root=reserves_root)


def has_tree(sentence: Sentence) -> bool:
    """Return whether any head, or possible head, of a sentence is known."""
    return any(head >= 0 for head in sentence.heads or ()) or any(sentence.allowed or ())


def any_tree(sentences: Sequence[Sentence]) -> bool:
    """Return whether any head or label of the sentences is known."""
    return any(map(has_tree, sentences)) or next(_labels(sentences), None) is not None


def with_plain_labels(sentence: Sentence) -> Sentence:
    """Return the sentence with `PLAIN_LABELS`."""
    heads = sentence.heads or (-1,) * len(sentence)
    return sentence.with_tree(heads, [PLAIN_LABELS[head != 0] for head in heads])


def allowed_arcs(sentences: Sequence[Sentence]) -> Tensor:
    """Return the arcs ``(B, n+1, n+1)`` bool that possible heads allow; a word without possible heads allows all."""
    nodes = max(map(len, sentences)) + 1
    allowed = torch.ones(len(sentences), nodes, nodes, dtype=torch.bool)
    for item, sentence in enumerate(sentences):
        for word, heads in enumerate(sentence.allowed or (), 1):
            if heads:
                allowed[item, :, word] = False
                allowed[item, list(heads), word] = True
    return allowed


def _check_trees(sentences: Sequence[Sentence]) -> None:
    """Raise for sentences from which no vocabularies can be built."""
    if not sentences:
        raise TreeparseError("Vocabularies need at least one sentence, got none.")
    if any(sentence.labels is None or sentence.heads is None for sentence in sentences):
        raise TreeparseError("A training sentence has no tree: training needs HEAD and DEPREL in every sentence.")
    if any_tree(sentences) and next(_labels(sentences), None) is None:
        raise TreeparseError("No training sentence has a label: training needs DEPREL, and every DEPREL is '_'.")


def _labels(sentences: Sequence[Sentence]) -> Iterator[str]:
    return (label for sentence in sentences for label in sentence.labels or () if label != EMPTY)


def _treebank_labels(
    sentences: Sequence[Sentence], earlier: Mapping[str, Collection[str]] = MappingProxyType({})
) -> dict[str, set[str]]:
    """Return the labels that each treebank of training sentences uses, and used in an earlier training."""
    used = {name: {*labels} for name, labels in earlier.items()}
    for sentence in sentences:
        if sentence.treebank is not None:
            used.setdefault(sentence.treebank, set()).update(_labels([sentence]))
    return used


def _check_writable(noun: str, names: Sequence[str]) -> None:
    """Raise for a label or a tag that CoNLL-U cannot hold."""
    for name in names:
        if not name or _NOT_IN_COLUMNS.search(name):
            raise TreeparseError(f"A {noun} must have a character, and no tab or line break, got {name!r}.")
