"""Lists of labelled trees: `TreeLists`, the interface `ListFinder`, and finders of one tree and of the best k."""

import itertools
import math
import operator
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, NamedTuple, Self

import numpy as np
import torch
from torch import Tensor

from treeparse.batch import fetched
from treeparse.data.parses import Parse
from treeparse.errors import TreeparseError
from treeparse.model.inference.ruled import ItemList, Row, RuledBatch, mended_lists
from treeparse.names import Decoder, listing_decoder_named
from treeparse.rules import Rules
from treeparse.sentence import Sentence, tree_problem
from treeparse.trees import LabeledCRF, LabeledDistribution
from treeparse.trees.parts import arcs_of

LONGEST_LIST = 2**27  # words in the list of one sentence


class TreeLists(NamedTuple):
    """The labelled trees of a batch, up to K for each item, in order; -1 and -inf pad shorter lists."""

    heads: Tensor  # (K, B, n+1)
    labels: Tensor  # (K, B, n+1)
    scores: Tensor  # (K, B) sums over the labelled arcs
    log_probs: Tensor  # (K, B) nats

    @classmethod
    def of(cls, lists: Sequence[ItemList], log_partition: Tensor, nodes: int) -> Self:
        """Return the lists of trees of ``nodes`` nodes, with log probabilities from the log partition ``(B,)``."""
        longest = max(len(each.rows) for each in lists)
        columns = ([row[part] for each in lists for row in _filled(each.rows, longest, nodes)] for part in range(2))
        shape, device = (len(lists), longest, nodes), log_partition.device
        heads, labels = (torch.tensor([*rows], device=device).reshape(shape).transpose(0, 1) for rows in columns)
        scores = [[*each.scores, *[-math.inf] * (longest - len(each.scores))] for each in lists]
        values = torch.tensor(scores, dtype=torch.float64, device=device).T
        return cls(heads, labels, values, values - log_partition)

    def items(self) -> list[ItemList]:
        """The trees of each item."""
        heads, labels, scores = (column.transpose(0, 1) for column in fetched(*self[:3]))
        counts = (heads[..., 1] >= 0).sum(-1)
        columns = zip(*(column.tolist() for column in (counts, heads, labels, scores)), strict=True)
        return [
            ItemList(list(itertools.islice(zip(heads, labels, strict=True), n)), scores[:n])
            for n, heads, labels, scores in columns
        ]

    def parses(self, sentences: Sequence[Sentence], names: Sequence[str]) -> list[list[Parse]]:
        """The trees of each sentence as parses; ``names`` are the labels by their ids."""
        heads, labels, *values = (column.transpose(0, 1).numpy() for column in fetched(*self))
        real = heads[..., 1] >= 0
        # Convert all items at once, because that is faster. Leave out the padding, because the longest list may be
        # hundreds of times as long as others.
        named = np.array(names, dtype=object)[labels[real]]
        rows = zip(*(column.tolist() for column in (heads[real], named, *(each[real] for each in values))), strict=True)
        return [
            [_parse(sentence, *row) for row in itertools.islice(rows, count)]
            for sentence, count in zip(sentences, real.sum(-1).tolist(), strict=True)
        ]


@dataclass(frozen=True)
class ListFinder(ABC):
    """The interface of a way to find lists of trees.

    Attributes:
        k: the greatest number of trees of a sentence.
        decoder: names the trees to choose from.
        holds_labels: whether the scores of all labels of a batch are in memory at once.
    """

    holds_labels: ClassVar[bool] = True
    k: int
    decoder: Decoder

    def __post_init__(self) -> None:
        if self.k < 1:
            raise TreeparseError(f"k must be 1 or more, not {self.k}.")

    def check_for(self, sentences: int) -> None:
        """Raise if the finder cannot make lists for this number of sentences."""
        return

    def under(self, rules: Rules) -> "ListFinder":
        """Return the finder of trees that satisfy the rules; raise if there is none."""
        return replace(self, decoder="projective") if rules.trees == "projective" else self

    def arcs(self, indices: Sequence[int], device: torch.device) -> Tensor | None:
        """Return the arcs ``(B, n+1, n+1)`` bool of known trees, for pruning; None if no tree is known."""
        return None

    def ruled(self, p: LabeledCRF, indices: Sequence[int], batch: RuledBatch) -> TreeLists:
        """Return the lists of a batch whose trees satisfy rules; call it on the result of ``under``.

        A search replaces lists with a tree that breaks a rule.
        """
        best = self(p, indices)
        before = best.items()
        lists = mended_lists(before, p.for_decoder(self.decoder), self.k, batch)
        if all(map(operator.is_, lists, before)):
            return best
        return TreeLists.of(lists, p.log_partition, best.heads.shape[-1])

    @abstractmethod
    def __call__(self, p: LabeledDistribution, indices: Sequence[int]) -> TreeLists:
        """Return the lists of a batch.

        Args:
            p: the distribution of labelled trees, in float64.
            indices: those of the batch's sentences in the whole list.

        Raises:
            TreeparseError: if the lists are too long for the memory.
        """


@dataclass(frozen=True)
class ChosenTree(ListFinder):
    """Lists of one tree, chosen by the decoder. Log probabilities are among all trees."""

    holds_labels: ClassVar[bool] = False
    k: int = field(default=1, init=False)

    def __call__(self, p: LabeledDistribution, indices: Sequence[int] = ()) -> TreeLists:
        return self.listed(p, *p.decode(self.decoder))

    @staticmethod
    def listed(p: LabeledDistribution, heads: Tensor, labels: Tensor) -> TreeLists:
        """Return lists of one tree from heads and labels ``(B, n+1)``."""
        scores = p.score(heads, labels)
        log_probs = p.log_prob_of_scored(heads, labels, scores)
        return TreeLists(*(column.unsqueeze(0) for column in (heads, labels, scores, log_probs)))

    def under(self, rules: Rules) -> ListFinder:
        if self.decoder == "minimum_risk":
            raise TreeparseError(
                "Rules choose the best tree that satisfies them, so that the decoder minimum_risk cannot keep "
                "them: choose best, nonprojective or projective."
            )
        return super().under(rules)


@dataclass(frozen=True)
class BestLists(ListFinder):
    """The k best labelled trees, best first; log probabilities are among all trees, whatever the decoder."""

    def __post_init__(self) -> None:
        listing_decoder_named(self.decoder)
        super().__post_init__()

    def __call__(self, p: LabeledDistribution, indices: Sequence[int]) -> TreeLists:
        crf = as_crf(p, "Lists of the best trees")
        heads, labels, scores, _ = crf.for_decoder(self.decoder).topk(list_length(self.k, p, different=True))
        return TreeLists(heads, labels, scores, crf.log_prob_of_scored(heads, labels, scores))


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

    def arcs(self, indices: Sequence[int], device: torch.device) -> Tensor:
        rows = [self.heads[index] for index in indices]
        return arcs_of(_as_nodes(rows, 1 + max(map(len, rows))).to(device))

    def __call__(self, p: LabeledDistribution, indices: Sequence[int]) -> TreeLists:
        heads, labels = (
            _as_nodes((rows[index] for index in indices), p.shape[-2]).to(p.device)
            for rows in (self.heads, self.labels)
        )
        return ChosenTree.listed(p, heads, labels)

    def ruled(self, p: LabeledCRF, indices: Sequence[int], batch: RuledBatch) -> TreeLists:
        """Return the sentences' own trees, because rules change no tree that a sentence has."""
        return self(p, indices)


def as_crf(p: LabeledDistribution, purpose: str) -> LabeledCRF:
    """Return a distribution in which a tree's score is a sum over its parts.

    Raises:
        TreeparseError: for another distribution; ``purpose``, a plural, begins the message.
    """
    if isinstance(p, LabeledCRF):
        return p
    raise TreeparseError(
        f"{purpose} need a tree's log probability to be a sum over its arcs, got a mixture, as of models combined by "
        "marginals: combine them by scores or log_probs."
    )


def list_length(k: int, p: LabeledDistribution, *, different: bool) -> int:
    """Return ``k``; if trees must be different, at most the number of labelled trees of the longest sentence."""
    words, labels = p.shape[1] - 1, p.shape[3]
    if different:
        k = min(k, (words + 1) ** (words - 1) * labels**words)
    if k * words > LONGEST_LIST:
        raise TreeparseError(f"{k} trees of {words} words are too many: ask for {LONGEST_LIST // words} or fewer.")
    return k


def _parse(sentence: Sentence, heads: list[int], labels: list[str], score: float, log_prob: float) -> Parse:
    end = len(sentence.forms) + 1
    return Parse(sentence.forms, tuple(heads[1:end]), tuple(labels[1:end]), log_prob, score)


def _filled(rows: Sequence[Row], count: int, nodes: int) -> Iterator[Row]:
    """Yield the trees, then trees of -1 up to ``count``."""
    nothing = [-1] * nodes
    return itertools.chain(rows, itertools.repeat((nothing, nothing), count - len(rows)))


def _problem(sentence: Sentence) -> str | None:
    if sentence.heads is None or sentence.labels is None:
        return "it came without heads or labels"
    return tree_problem(sentence.heads, single_root=False)


def _as_nodes(rows: Iterable[Sequence[int]], nodes: int) -> torch.Tensor:
    """Pad values of words to ``(B, nodes)``: -1 at the root and at padding."""
    return torch.tensor([[-1, *row, *[-1] * (nodes - 1 - len(row))] for row in rows])
