"""`Teacher`: saved parsers whose distributions another parser learns from."""

from collections.abc import Sequence

import torch

from treeparse.batch import Batch
from treeparse.errors import TreeparseError
from treeparse.model.parser import Parser, with_label_names
from treeparse.objectives import Reference, check_temperature
from treeparse.trees import LabeledCRF, TreeDistribution


class Teacher(Reference):
    """One or more saved parsers; they are neither trained nor saved with the parser that learns from them.

    Each teacher has its own vocabularies, and labels are matched by name: labels that the pupil lacks are removed, and
    labels that a teacher lacks have probability 0 under it.

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
        return p if self.temperature == 1 else p.tempered(self.temperature)
