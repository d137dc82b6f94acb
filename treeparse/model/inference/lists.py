"""Lists of the labelled trees of a batch: one chosen tree, the best k, or the sentences' own."""

import itertools
import math
import operator
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Self

import numpy as np
import torch
from torch import Tensor

from treeparse.batch import fetched, moved
from treeparse.data.parses import Parse
from treeparse.errors import TreeparseError
from treeparse.model.inference.given import known_heads, known_labels
from treeparse.model.inference.ruled import ItemList, Row, RuledBatch, mended_lists
from treeparse.names import Decoder, listing_decoder_named
from treeparse.sentence import Sentence, tree_problem
from treeparse.trees import LabeledCRF, LabeledDistribution

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


def chosen_trees(p: LabeledDistribution, decoder: Decoder) -> TreeLists:
    """Return lists of one tree, which the decoder chooses; log probabilities are among all trees."""
    return _lists_of_one(p, *p.decode(decoder))


def own_trees(p: LabeledDistribution, sentences: Sequence[Sentence], label_names: Sequence[str]) -> TreeLists:
    """Return lists of one tree, the sentence's own; a label that is none of ``label_names`` is impossible."""
    trees = known_heads(sentences), known_labels(sentences, label_names)
    return _lists_of_one(p, *(moved(part, p.device) for part in trees))


def check_own_trees(sentences: Sequence[Sentence]) -> None:
    """Raise if a sentence has no tree."""
    for number, sentence in enumerate(sentences, 1):
        problem = "it came without heads or labels"
        if sentence.heads is not None and sentence.labels is not None:
            problem = tree_problem(sentence.heads, single_root=False)
        if problem:
            raise TreeparseError(f"Sentence {number} has no tree: {problem}.")


def best_trees(p: LabeledDistribution, k: int, decoder: Decoder) -> TreeLists:
    """Return the k best labelled trees, best first; log probabilities are among all trees, whatever the decoder."""
    crf = as_crf(p, "Lists of the best trees")
    k = list_length(k, p, different=True)
    heads, labels, scores, _ = crf.for_decoder(listing_decoder_named(decoder)).topk(k)
    return TreeLists(heads, labels, scores, crf.log_prob_of_scored(heads, labels, scores))


def mended_trees(best: TreeLists, p: LabeledDistribution, k: int, decoder: Decoder, batch: RuledBatch) -> TreeLists:
    """Return lists of the k best trees that satisfy rules: a search replaces lists with a tree that breaks one."""
    crf, before = as_crf(p, "Rules"), best.items()
    lists = mended_lists(before, crf.for_decoder(decoder), k, batch)
    if all(map(operator.is_, lists, before)):
        return best
    return TreeLists.of(lists, crf.log_partition, best.heads.shape[-1])


def _lists_of_one(p: LabeledDistribution, heads: Tensor, labels: Tensor) -> TreeLists:
    """Return lists of one tree from heads and labels ``(B, n+1)``."""
    scores = p.score(heads, labels)
    log_probs = p.log_prob_of_scored(heads, labels, scores)
    return TreeLists(*(column.unsqueeze(0) for column in (heads, labels, scores, log_probs)))


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
