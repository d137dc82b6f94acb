"""`GivenTrees`: the trees that sentences have, as lists of one tree, to be scored by a model."""

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
    """Lists of one tree: that of each sentence.

    Attributes:
        heads: the heads of each sentence, as in CoNLL-U.
        labels: ids of its labels; -1 for a label that the model does not have.
    """

    holds_labels: ClassVar[bool] = False
    k: int = field(default=1, init=False)
    decoder: Decoder = field(default="best", init=False)
    heads: Sequence[Sequence[int]]
    labels: Sequence[Sequence[int]]

    @classmethod
    def of(cls, sentences: Sequence[Sentence], names: Sequence[str]) -> Self:
        """Return the trees of the sentences; ``names`` are the model's labels. Raise if a sentence has no tree."""
        ids = {name: number for number, name in enumerate(names)}
        for number, sentence in enumerate(sentences, 1):
            if problem := _problem(sentence):
                raise TreeparseError(f"Sentence {number} has no tree: {problem}.")
        heads = [sentence.heads or () for sentence in sentences]
        return cls(heads, [[ids.get(label, -1) for label in sentence.labels or ()] for sentence in sentences])

    def __call__(self, p: LabeledDistribution, indices: Sequence[int]) -> TreeLists:
        heads, labels = (
            _as_nodes((rows[index] for index in indices), p.shape[-2]).to(p.device)
            for rows in (self.heads, self.labels)
        )
        return ChosenTree.listed(p, heads, labels)

    def ruled(self, p: LabeledCRF, indices: Sequence[int], batch: RuledBatch) -> TreeLists:
        """Return the sentences' own trees, because rules change no tree that a sentence has."""
        return self(p, indices)


def as_given(sentences: Iterable[Sentence], parses: Iterable[Parse]) -> list[Parse]:
    """Give the parses the sentences' own labels, including labels that the model does not have."""
    return [replace(parse, labels=s.labels or ()) for s, parse in zip(sentences, parses, strict=True)]


def _problem(sentence: Sentence) -> str | None:
    if sentence.heads is None or sentence.labels is None:
        return "it came without heads or labels"
    return tree_problem(sentence.heads, single_root=False)


def _as_nodes(rows: Iterable[Sequence[int]], nodes: int) -> torch.Tensor:
    """Pad values of words to ``(B, nodes)``: -1 at the root and at padding."""
    return torch.tensor([[-1, *row, *[-1] * (nodes - 1 - len(row))] for row in rows])
