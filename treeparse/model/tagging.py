"""Tags beside trees: which are predicted and how much they count, their loss, and parses that have them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import torch
from torch import Tensor

from treeparse.batch import Batch
from treeparse.data.features.words import TAG_COLUMNS
from treeparse.data.parses import Parse
from treeparse.errors import TreeparseError
from treeparse.model.config import TagWeights
from treeparse.objectives import Term

TagNames = Mapping[str, Sequence[str]]  # the tags of each column by their ids


@dataclass(frozen=True)
class Tagging:
    """What a model says of the tags of a batch.

    ``log_probs`` are ``(B, n+1, tags)`` by column, of words; the root and padding have some, too.
    """

    log_probs: Mapping[str, Tensor]
    names: TagNames

    def terms(self, batch: Batch, weights: TagWeights) -> list[Term]:
        """Their part of the loss: for each column the mean over the words of the batch whose tag is known."""
        return [_term(column, weight, self.log_probs[column], batch) for column, weight in weights.columns().items()]

    def likeliest(self, column: str) -> list[Sequence[str]] | None:
        """The likeliest tags of all nodes of each item, the root first, with padding; None without such a column."""
        if column not in self.log_probs:
            return None
        names = self.names[column]
        return [tuple(names[int(tag)] for tag in row) for row in self.log_probs[column].argmax(-1).tolist()]

    def given_to(self, lists: list[list[Parse]]) -> list[list[Parse]]:
        """The parses of each sentence of the batch, with its likeliest tags."""
        if not self.log_probs:
            return lists
        found = {column: self.likeliest(column) or () for column in self.log_probs}
        return [
            [replace(p, **{c: rows[place][1 : len(p.tokens) + 1] for c, rows in found.items()}) for p in parses]
            for place, parses in enumerate(lists)
        ]

    def among(self, names: TagNames) -> "Tagging":
        """The same of some of the columns, and some of their tags, under other ids."""
        places = {column: {tag: place for place, tag in enumerate(self.names[column])} for column in names}
        chosen = {
            column: self.log_probs[column][..., [places[column][tag] for tag in tags]] for column, tags in names.items()
        }
        return Tagging(chosen, names)


def _term(column: str, weight: float, log_probs: Tensor, batch: Batch) -> Term:
    gold = batch.tags.get(column)
    if gold is None:
        return Term(TAG_COLUMNS[column], weight, None, 0)
    known, values = gold >= 0, log_probs.gather(-1, gold.clamp_min(0).unsqueeze(-1)).squeeze(-1).double()
    words = int((batch.near.tags[column] >= 0).sum())
    return Term(TAG_COLUMNS[column], weight, -values.masked_fill(~known, 0.0).sum() / words, words)


def shared_tags(models: Sequence[TagNames]) -> dict[str, list[str]]:
    """The tags that all models know of the columns that all predict, in the first one's order."""
    first, *others = models
    found = {
        column: [tag for tag in tags if all(tag in o.get(column, ()) for o in others)] for column, tags in first.items()
    }
    return {column: tags for column, tags in found.items() if tags}


def mean_tagging(taggings: Sequence[Tagging], names: TagNames) -> Tagging:
    """The mean of the models' log probabilities of the tags that all know."""
    same = [tagging.among(names).log_probs for tagging in taggings]
    return Tagging({column: torch.stack([each[column] for each in same]).mean(0) for column in names}, names)


class Tagger(Protocol):
    """What may predict tags."""

    @property
    def tag_names(self) -> TagNames:
        """The tags of each column that it predicts, by their ids."""
        ...


def check_tags(model: Tagger) -> None:
    """Raise for a model, or several as one, that predicts no tags."""
    if not model.tag_names:
        raise TreeparseError(
            "The model predicts no tags, or several as one have none in common: train with weights of tags, such as "
            "--model.tags.upos 1, or do without tags."
        )
