"""Trees that sentences have already, as lists of one tree: what a model thinks of them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

import torch

from treeparse.data.parses import Parse
from treeparse.errors import TreeparseError
from treeparse.model.inference.lists import ChosenTree, ListFinder, TreeLists
from treeparse.model.inference.ruled import RuledBatch
from treeparse.names import Decoder
from treeparse.sentence import Sentence, tree_problem
from treeparse.trees import LabeledCRF, LabeledDistribution


@dataclass(frozen=True)
class GivenTrees(ListFinder):
    """Lists of one tree, that of the sentence, by its place.

    Attributes:
        heads: of each sentence, as in CoNLL-U.
        labels: ids of labels, -1 for one that the model does not have.
    """

    holds_labels: ClassVar[bool] = False
    k: int = field(default=1, init=False)
    decoder: Decoder = field(default="best", init=False)
    heads: Sequence[Sequence[int]]
    labels: Sequence[Sequence[int]]

    @classmethod
    def of(cls, sentences: Sequence[Sentence], names: Sequence[str]) -> Self:
        """Those of the sentences, whose labels have these names; raises where one has no tree."""
        ids = {name: number for number, name in enumerate(names)}
        for number, sentence in enumerate(sentences, 1):
            if problem := _problem(sentence):
                raise TreeparseError(f"Sentence {number} has no tree: {problem}.")
        heads = [sentence.heads or () for sentence in sentences]
        return cls(heads, [[ids.get(label, -1) for label in sentence.labels or ()] for sentence in sentences])

    def __call__(self, p: LabeledDistribution, places: Sequence[int]) -> TreeLists:
        heads, labels = (
            _as_nodes((rows[place] for place in places), p.shape[-2]).to(p.device) for rows in (self.heads, self.labels)
        )
        return ChosenTree.listed(p, heads, labels)

    def ruled(self, p: LabeledCRF, places: Sequence[int], batch: RuledBatch) -> TreeLists:
        """As without rules: the trees are those that were given, whatever rules say of them."""
        return self(p, places)


def as_given(sentences: Iterable[Sentence], parses: Iterable[Parse]) -> list[Parse]:
    """The parses with the sentences' own labels, those that the model does not have too."""
    return [replace(parse, labels=s.labels or ()) for s, parse in zip(sentences, parses, strict=True)]


def _problem(sentence: Sentence) -> str | None:
    if sentence.heads is None or sentence.labels is None:
        return "it came without heads or labels"
    return tree_problem(sentence.heads, single_root=False)


def _as_nodes(rows: Iterable[Sequence[int]], nodes: int) -> torch.Tensor:
    """Values of words as those of nodes ``(B, nodes)``, -1 at the root and at padding."""
    return torch.tensor([[-1, *row, *[-1] * (nodes - 1 - len(row))] for row in rows])
