"""`Ensemble`: several parsers that parse by their combined distribution; `Teacher`: such a one in an objective."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Self

import torch
from torch import Tensor

from treeparse.batch import Batch
from treeparse.data.mapping import Words, as_sentences
from treeparse.data.raw_text import RawTextCheck
from treeparse.errors import TreeparseError
from treeparse.model.inference.any_parser import AnyParser
from treeparse.model.parser import Parser, with_label_names
from treeparse.model.tagging import Tagging, TagNames, mean_tagging, shared_tags
from treeparse.names import Combination, Precision, combination_named
from treeparse.objectives import Reference, check_temperature
from treeparse.sentence import ROOT_LABEL
from treeparse.trees import LabeledCRF, LabeledDistribution, TreeDistribution, combined


class Ensemble(AnyParser):
    """Several parsers that parse by their combined distribution, exactly.

    The parsers may differ in everything but their trees: each has its own vocabularies, and labels are matched by name.
    ``combine`` is one of:

    - "scores": the mean of arc scores, and of log P(label | arc). The probability of a labelled tree is proportional to
      the geometric mean of its probabilities under the models (a product of experts).
    - "log_probs": arcs are scored by the mean of the models' log marginals of labelled arcs.
    - "marginals": the mean of the marginals of labelled arcs. Every decoder returns the tree of the highest expected
      LAS (Kuncoro et al. 2016), projective or not as the decoder's trees are. The probability of a tree is its mean
      over the models; samples are exact. `kbest`, rules and temperatures other than 1 raise; parses have no entropy
      and no ``expected_gradient``. A ``score`` is the expected number of words with the right head and label.

    A label or tree that one model does not know is impossible under the first two; under "marginals" it has probability
    0 in that model alone. The default decoder is the first model's. Predicted tags are those of the highest mean log
    probability, of the tags that all models know.

    Args:
        parsers: one or more, on one device.
        combine: as above.

    Attributes:
        parsers: in order.
        combine: as above.

    Raises:
        TreeparseError: without parsers; if their ``trees`` or ``single_root`` differ; and if they have no label in
            common for some arcs, unless ``combine`` is "marginals".
    """

    def __init__(self, parsers: Sequence[Parser], combine: Combination | str = "scores") -> None:
        self.parsers: tuple[Parser, ...] = tuple(parsers)
        self.combine: Combination = combination_named(combine)
        _check_same_trees(self.parsers)
        if self.combine != "marginals":
            _check_common_labels(self.parsers)
        names = (name for parser in self.parsers for name in parser.label_names)
        self._label_names = tuple(dict.fromkeys(names))
        self._tag_names = shared_tags([parser.tag_names for parser in self.parsers])
        self.raw_text: RawTextCheck = RawTextCheck(self.known_words(), self.multiword_tokens())

    @classmethod
    def from_pretrained(cls, directories: Sequence[str | Path], combine: Combination | str = "scores") -> Self:
        """Load each parser by ``Parser.from_pretrained`` and return their ensemble."""
        if isinstance(directories, str | Path):
            raise TreeparseError(f"{directories} is one folder; put it into a list of folders.")
        return cls([Parser.from_pretrained(directory) for directory in directories], combine)

    @property
    def label_names(self) -> tuple[str, ...]:
        """The first model's labels by their ids, then the labels that only others have."""
        return self._label_names

    @property
    def root_label(self) -> int:
        """The id of the label that arcs from the root, and no others, have; -1 if none is reserved for them.

        A mixture of marginals has the trees of every model; otherwise a tree must be possible under all.
        """
        reserved = [parser.root_label >= 0 for parser in self.parsers]
        is_reserved = all(reserved) if self.combine == "marginals" else any(reserved)
        return self.label_names.index(ROOT_LABEL) if is_reserved else -1

    @property
    def tag_names(self) -> TagNames:
        """The tags that all models know of the columns that all predict."""
        return self._tag_names

    @property
    def networks(self) -> tuple[Parser, ...]:
        """The networks that score sentences."""
        return self.parsers

    @property
    def device(self) -> torch.device:
        """The device of the weights."""
        return self.parsers[0].device

    def to(self, device: torch.device | str) -> Self:
        """Move the parsers to a device and return the ensemble."""
        for parser in self.parsers:
            parser.to(device)
        return self

    def use_precision(self, name: Precision | str) -> Self:
        """Call `Parser.use_precision` of each parser and return the ensemble."""
        for parser in self.parsers:
            parser.use_precision(name)
        return self

    def collate(self, sentences: Iterable[Words], indices: Sequence[int] | None = None) -> tuple[Batch, ...]:
        """A batch of the sentences for each model; ``indices`` are theirs in a treebank."""
        sentences = as_sentences(sentences)
        return tuple(parser.collate(sentences, indices) for parser in self.parsers)

    def distribution(self, batches: Sequence[Batch]) -> LabeledDistribution:
        """The combined distribution of each sentence's labelled trees, in float64, from a batch of each model."""
        return self.distribution_and_tags(batches)[0]

    def distribution_and_tags(
        self, batches: Sequence[Batch], *, keep: Tensor | None = None
    ) -> tuple[LabeledDistribution, Tagging]:
        """``distribution``, and the combined probabilities of the tags that all models predict.

        No arcs are pruned, whatever the arcs ``keep``, because arcs that one model prunes may be likely under another.
        """
        pairs = [
            parser.distribution_and_tags(batch, prune=False)
            for parser, batch in zip(self.parsers, batches, strict=True)
        ]
        distributions = [
            with_label_names(p, parser.label_names, self.label_names)
            for parser, (p, _) in zip(self.parsers, pairs, strict=True)
        ]
        return combined(distributions, self.combine), mean_tagging([tagging for _, tagging in pairs], self.tag_names)


def _check_same_trees(parsers: Sequence[Parser]) -> None:
    """Raise if there are no parsers, or if their trees differ."""
    if not parsers:
        raise TreeparseError("An ensemble needs at least one model: name its folder.")
    settings = [f"trees: {p.config.trees}, single_root: {str(p.config.single_root).lower()}" for p in parsers]
    for number, text in enumerate(settings, 1):
        if text != settings[0]:
            raise TreeparseError(
                f"The models have different trees: the first has {settings[0]}, model {number} has {text}. Combine "
                "models that were trained with the same model.trees and model.single_root."
            )


def _check_common_labels(parsers: Sequence[Parser]) -> None:
    """Raise if no label is common to all models, for arcs from the root or for arcs between words."""
    for from_root, arcs in ((True, "arcs from the root"), (False, "arcs between words")):
        if not set.intersection(*(_labels(parser, from_root) for parser in parsers)):
            some = "; ".join(f"model {n}: {_shown(parser)}" for n, parser in enumerate(parsers, 1))
            raise TreeparseError(
                f"The models have no label in common for {arcs} ({some}), so that every tree is impossible under one "
                "of them: combine them by marginals."
            )


def _labels(parser: Parser, from_root: bool) -> set[str]:
    """The labels that arcs from the root, or arcs between words, may have."""
    names = set(parser.label_names)
    if parser.root_label < 0:
        return names
    reserved = {parser.label_names[parser.root_label]}
    return reserved if from_root else names - reserved


def _shown(parser: Parser) -> str:
    names = parser.label_names
    return ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")


class Teacher(Reference):
    """One or more saved parsers; they are neither trained nor saved with the parser that learns from them.

    Each teacher has its own vocabularies, and labels are matched by name: labels that the pupil lacks are removed, and
    labels that a teacher lacks have probability 0 under it. If the pupil reserves a label for arcs from the root, other
    uses of it are removed, too.

    Args:
        models: the teachers' folders.
        temperature: a temperature above 1 makes the teachers' distributions flatter, one below 1 makes them sharper.
    """

    def __init__(self, models: list[str], temperature: float = 1.0) -> None:
        if not models:
            raise TreeparseError("A teacher needs at least one model: name its folder.")
        self.temperature: float = check_temperature(temperature)
        self.parsers: list[Parser] = [Parser.from_pretrained(model).requires_grad_(False) for model in models]

    @torch.no_grad()
    def distributions(self, own: LabeledCRF, batch: Batch) -> Sequence[TreeDistribution]:
        """The distribution of each teacher over the labelled trees of the batch."""
        return [self._distribution(parser.to(own.scores.device), batch) for parser in self.parsers]

    def _distribution(self, parser: Parser, batch: Batch) -> LabeledCRF:
        names = parser.indexer.label_names
        if not set(names) & set(batch.label_names):
            raise TreeparseError(
                f"The teacher and its pupil have no label in common; the teacher's are {', '.join(names)}."
            )
        p = parser.distribution(parser.collate(batch.sentences))
        p = with_label_names(p, names, batch.label_names)
        if batch.root_label >= 0 > parser.root_label:
            if (name := batch.label_names[batch.root_label]) not in names:
                raise TreeparseError(
                    f"The pupil reserves the label {name} for arcs from the root, but the teacher does not know this "
                    "label: train the pupil on trees with the teacher's labels."
                )
            p = p.reserving(batch.root_label)
        return p if self.temperature == 1 else p.tempered(self.temperature)
