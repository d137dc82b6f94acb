"""`Tagging`: probabilities of the tags of a batch, their loss, and parses with tags."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from treeparse.batch import Batch
from treeparse.data.columns import COLUMNS
from treeparse.data.parses import Parse
from treeparse.model.parser_config import TagWeights
from treeparse.objectives import Term

TagNames = Mapping[str, Sequence[str]]  # the tags of each column by their ids


@dataclass(frozen=True)
class Tagging:
    """Log probabilities of the tags of a batch.

    ``log_probs`` are ``(B, n+1, tags)`` by column. Those of the root and of padding have no meaning.
    """

    log_probs: Mapping[str, Tensor]
    names: TagNames

    def terms(self, batch: Batch, weights: TagWeights) -> list[Term]:
        """Return a loss term for each column: the mean over the words of the batch whose gold tag is known."""
        return [_term(column, weight, self.log_probs[column], batch) for column, weight in weights.columns().items()]

    def likeliest(self, column: str) -> list[Sequence[str]] | None:
        """The likeliest tags of each item's nodes, the root first, with padding; None for a column without tags."""
        if column not in self.log_probs:
            return None
        names = self.names[column]
        return [tuple(names[int(tag)] for tag in row) for row in self.log_probs[column].argmax(-1).tolist()]

    def add_to(self, lists: list[list[Parse]]) -> list[list[Parse]]:
        """Return the parses of each sentence of the batch with its likeliest tags."""
        if not self.log_probs:
            return lists
        tags = {column: self.likeliest(column) or () for column in self.log_probs}
        return [
            [replace(p, **{c: rows[item][1 : len(p.tokens) + 1] for c, rows in tags.items()}) for p in parses]
            for item, parses in enumerate(lists)
        ]

    def restrict_to(self, names: TagNames) -> "Tagging":
        """Return the log probabilities of these columns and tags alone, without normalising them again."""
        ids = {column: {tag: index for index, tag in enumerate(self.names[column])} for column in names}
        log_probs = {
            column: self.log_probs[column][..., [ids[column][tag] for tag in tags]] for column, tags in names.items()
        }
        return Tagging(log_probs, names)


def words_of_tag_terms(batch: Batch, weights: TagWeights) -> dict[str, int]:
    """Count the words that each of `Tagging.terms` is the mean over, by its name."""
    return {COLUMNS[column].title: _tagged_words(column, batch) for column in weights.columns()}


def _tagged_words(column: str, batch: Batch) -> int:
    """Count the words of a batch whose gold tag is known; causes no device sync."""
    gold = batch.on_cpu.tags.get(column)
    return 0 if gold is None else int((gold >= 0).sum())


def _term(column: str, weight: float, log_probs: Tensor, batch: Batch) -> Term:
    gold = batch.tags.get(column)
    if gold is None:
        return Term(COLUMNS[column].title, weight, None, 0)
    known, values = gold >= 0, log_probs.gather(-1, gold.clamp_min(0).unsqueeze(-1)).squeeze(-1).double()
    words = _tagged_words(column, batch)
    return Term(COLUMNS[column].title, weight, -values.masked_fill(~known, 0.0).sum() / words, words)


def shared_tags(models: Sequence[TagNames]) -> dict[str, list[str]]:
    """The tags that all models know of the columns that all predict, in the first one's order."""
    first, *others = models
    shared = {
        column: [tag for tag in tags if all(tag in o.get(column, ()) for o in others)] for column, tags in first.items()
    }
    return {column: tags for column, tags in shared.items() if tags}


def mean_tagging(taggings: Sequence[Tagging], names: TagNames) -> Tagging:
    """Return the mean of the models' log probabilities of the tags that all know."""
    models = [tagging.restrict_to(names).log_probs for tagging in taggings]
    return Tagging({column: torch.stack([model[column] for model in models]).mean(0) for column in names}, names)
