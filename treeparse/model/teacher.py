"""Saved parsers as references for the training of another."""

from collections.abc import Sequence

import torch

from treeparse.batch import Batch
from treeparse.errors import TreeparseError
from treeparse.model.parser import Parser, with_label_names
from treeparse.objectives import Reference, check_temperature
from treeparse.trees import LabeledCRF, TreeDistribution


class Teacher(Reference):
    """One saved parser or several, frozen: neither trained nor saved with the parser that learns from them.

    Each scores the sentences by its own vocabularies. Labels go by their names: what a teacher says of labels that the
    pupil does not have is left out, and labels that a teacher does not have are impossible to it.

    Args:
        models: their folders.
        temperature: above 1 the teachers are less sure than they are, below 1 surer.
    """

    def __init__(self, models: list[str], temperature: float = 1.0) -> None:
        if not models:
            raise TreeparseError("A teacher needs at least one model: name its folder.")
        self.temperature = check_temperature(temperature)
        self.parsers = [Parser.from_pretrained(model).requires_grad_(False) for model in models]

    @torch.no_grad()
    def distributions(self, own: LabeledCRF, batch: Batch) -> Sequence[TreeDistribution]:
        """One of each parser, labelled."""
        return [self._distribution(parser.to(own.scores.device), batch) for parser in self.parsers]

    def _distribution(self, parser: Parser, batch: Batch) -> LabeledCRF:
        names = parser.indexer.label_names
        if not set(names) & set(batch.label_names):
            raise TreeparseError(
                f"The teacher and its pupil have no label in common; the teacher's are {', '.join(names)}."
            )
        p = parser.distribution(parser.collate(batch.sentences))
        p = with_label_names(p, names, batch.label_names)
        return p if self.temperature == 1 else p.tempered(self.temperature)
