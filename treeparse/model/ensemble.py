"""Several parsers as one."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Self

import torch

from treeparse.batch import Batch
from treeparse.data.features.vocabulary import Vocabulary
from treeparse.data.mapping import Words, as_sentences
from treeparse.data.text.rawtext import RawTextCheck
from treeparse.errors import TreeparseError
from treeparse.model.inference.any_parser import AnyParser
from treeparse.model.parser import Parser, with_label_names
from treeparse.model.tagging import Tagging, mean_tagging, shared_tags
from treeparse.names import Combination, Decoder, Precision, combination_named
from treeparse.sentence import ROOT_LABEL, Sentence
from treeparse.trees import LabeledDistribution, combined


class Ensemble(AnyParser):
    """Several parsers that parse as one, exactly: what is found is best, or drawn, under their combined distribution.

    They may differ in everything but their trees: each reads sentences by its own vocabularies, and labels go by their
    names. ``combine`` is one of:

    - "scores": the mean of the scores of arcs, and of the log probabilities of labels given their arcs. A labelled
      tree's probability is proportional to the geometric mean of those under the models, a product of experts; one
      model alone is itself.
    - "log_probs": the mean of the log probabilities of labelled arcs, so of the logs of the models' marginals, in the
      place of scores. A tree's score is what it would be if its arcs were independent.
    - "marginals": the mean of the probabilities of labelled arcs. The parse is the tree of the highest expected LAS
      under it, whichever the decoder, which still says among which trees (Kuncoro et al. 2016). A tree's probability is
      the mean of those under the models; samples are exact; `kbest`, rules and temperatures other than 1 raise; parses
      have no entropy and no ``expected_gradient``. A ``score`` is the expected number of right words, head and label.

    Under the first two a label or a tree that one model does not know is impossible; under the last it is to that model
    alone. The decoder is by default the first model's. Tags that all models predict are the likeliest by the mean of
    their log probabilities, of those tags that all know. In written probabilities of labels, P(label | arc) gets the
    power temperature / label_temperature: by marginals each model's own, otherwise the geometric mean of the models'.

    Args:
        parsers: one or more, on one device.
        combine: as above.

    Attributes:
        parsers: in order.
        combine: as above.
        label_names: the first model's labels by their ids, and behind them those that the others have besides.
        tag_names: the tags that all models know of the columns that all predict.

    Raises:
        TreeparseError: without parsers; where their ``trees`` or ``single_root`` differ; and where they have no label
            in common for some arcs, unless they are combined by marginals.
    """

    def __init__(self, parsers: Sequence[Parser], combine: Combination | str = "scores") -> None:
        self.parsers = tuple(parsers)
        self.combine: Combination = combination_named(combine)
        _check_same_trees(self.parsers)
        if self.combine != "marginals":
            _check_common_labels(self.parsers)
        names = (name for parser in self.parsers for name in parser.label_names)
        self._label_names = tuple(dict.fromkeys(names))
        self.tag_names = shared_tags([parser.tag_names for parser in self.parsers])
        self.raw_text = RawTextCheck(self.known_words(), self.multiword_tokens())

    @classmethod
    def from_pretrained(cls, directories: Sequence[str | Path], combine: Combination | str = "scores") -> Self:
        """The ensemble of saved parsers, as :meth:`Parser.from_pretrained` loads them."""
        if isinstance(directories, str | Path):
            raise TreeparseError(f"{directories} is one folder, but a list of folders is wanted: put it into a list.")
        return cls([Parser.from_pretrained(directory) for directory in directories], combine)

    @property
    def label_names(self) -> tuple[str, ...]:
        """The first model's labels by their ids, then the labels that only others have."""
        return self._label_names

    @property
    def networks(self) -> tuple[Parser, ...]:
        """What scores the sentences."""
        return self.parsers

    @property
    def label_powers(self) -> tuple[float, ...]:
        """As `Parser.label_powers`, of each of the parsers."""
        return tuple(parser.config.label_power for parser in self.parsers)

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.parsers[0].device

    def to(self, device: torch.device | str) -> Self:
        """The ensemble itself, moved to a device."""
        for parser in self.parsers:
            parser.to(device)
        return self

    def use_precision(self, name: Precision | str) -> Self:
        """As `Parser.use_precision`, each of the parsers."""
        for parser in self.parsers:
            parser.use_precision(name)
        return self

    @property
    def default_decoder(self) -> Decoder:
        return self.parsers[0].config.decoder

    def known_words(self) -> Vocabulary | None:
        """The words of the first model that has a list of those of its training data."""
        found = (parser.known_words() for parser in self.parsers)
        return next((words for words in found if words is not None), None)

    def multiword_tokens(self) -> Mapping[str, str]:
        """As `Parser.multiword_tokens`, of the first model that knows some."""
        return next((found for parser in self.parsers if (found := parser.multiword_tokens())), {})

    def check(self, sentence: Sentence) -> None:
        """Raise where one of the models reads tags that the sentence lacks."""
        for parser in self.parsers:
            parser.check(sentence)

    def length(self, sentence: Sentence) -> int:
        """What the sentence counts for in the bounds of a batch: what it does for the model for which it is longest."""
        return max(parser.length(sentence) for parser in self.parsers)

    def collate(self, sentences: Iterable[Words], indices: Sequence[int] | None = None) -> tuple[Batch, ...]:
        """The sentences as a batch of each model; ``indices`` are their places."""
        given = as_sentences(sentences)
        return tuple(parser.collate(given, indices) for parser in self.parsers)

    def distribution(self, batches: Sequence[Batch]) -> LabeledDistribution:
        """The combined distribution of each sentence's labelled trees, in float64, from a batch of each model."""
        return self.distribution_and_tags(batches)[0]

    def distribution_and_tags(self, batches: Sequence[Batch]) -> tuple[LabeledDistribution, Tagging]:
        """:meth:`distribution`, and the combined probabilities of the tags that all models predict."""
        found = [parser.distribution_and_tags(batch) for parser, batch in zip(self.parsers, batches, strict=True)]
        trees, taggings = zip(*found, strict=True)
        named = zip(self.parsers, trees, strict=True)
        same = [with_label_names(p, parser.label_names, self.label_names) for parser, p in named]
        return combined(same, self.combine), mean_tagging(taggings, self.tag_names)


def _check_same_trees(parsers: Sequence[Parser]) -> None:
    """Raise unless there are parsers, and all of the same trees."""
    if not parsers:
        raise TreeparseError("An ensemble needs at least one model: name its folder.")
    settings = [f"trees: {p.config.trees}, single_root: {str(p.config.single_root).lower()}" for p in parsers]
    for number, text in enumerate(settings, 1):
        if text != settings[0]:
            raise TreeparseError(
                f"The models are of different trees: the first has {settings[0]}, model {number} has {text}. Combine "
                "models that were trained with the same model.trees and model.single_root."
            )


def _check_common_labels(parsers: Sequence[Parser]) -> None:
    """Raise where all labels of some arcs are impossible, each to some model."""
    for from_root, arcs in ((True, "arcs from the root"), (False, "arcs between words")):
        if not set.intersection(*(_labels(parser, from_root) for parser in parsers)):
            some = "; ".join(f"model {n}: {_shown(parser)}" for n, parser in enumerate(parsers, 1))
            raise TreeparseError(
                f"The models have no label in common for {arcs} ({some}), so that every tree is impossible to one of "
                "them: combine them by marginals."
            )


def _labels(parser: Parser, from_root: bool) -> set[str]:
    """The labels that arcs can have: "root" is for those from the root, and for no others."""
    names = set(parser.label_names)
    if ROOT_LABEL not in names or len(names) == 1:
        return names
    return {ROOT_LABEL} if from_root else names - {ROOT_LABEL}


def _shown(parser: Parser) -> str:
    names = parser.label_names
    return ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
