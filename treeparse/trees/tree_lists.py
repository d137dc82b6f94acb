"""Named tuples of trees, and lists of trees: the best ones in order, or all that there are."""

import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from treeparse.kernels import FloatArray
from treeparse.trees.families import KBest

MAX_ENUMERATED_WORDS = 7
LabeledPair = tuple[Tensor, Tensor]  # heads and labels; methods take any pair for a `LabeledTree`


class LabeledTree(NamedTuple):
    """Labelled trees ``(..., n+1)``; -1 at node 0 and at padding."""

    heads: Tensor
    labels: Tensor


class TreeMarginals(NamedTuple):
    """Probabilities ``(*sample, *batch, n+1)`` of the arc into each word of a tree, float64."""

    arcs: Tensor  # of the head, whatever the label
    labeled: Tensor  # of the head and the label


class BestTrees(NamedTuple):
    """Trees ``(k, *batch, n+1)``, best first; past the last tree -1 and -inf. All columns are constants."""

    heads: Tensor
    scores: Tensor  # (k, *batch) unnormalised
    log_probs: Tensor  # (k, *batch) nats; NaN for trees without sums


class BestLabeledTrees(NamedTuple):
    """Labelled trees ``(k, *batch, n+1)``; otherwise as ``BestTrees``."""

    heads: Tensor
    labels: Tensor
    scores: Tensor
    log_probs: Tensor


class DrawnTrees(NamedTuple):
    """Different trees ``(k, *batch, n+1)`` in the order drawn, all constants; past the last tree -1, -inf and -inf."""

    heads: Tensor
    log_probs: Tensor  # (k, *batch) nats
    keys: Tensor  # (k, *batch) log probabilities plus Gumbel noise, descending


class DrawnLabeledTrees(NamedTuple):
    """Different labelled trees ``(k, *batch, n+1)``; otherwise as ``DrawnTrees``."""

    heads: Tensor
    labels: Tensor
    log_probs: Tensor
    keys: Tensor


def growing_indices(trees: KBest) -> Iterator[int]:
    """Yield the indices of a list up to the end of the longest item, and extend the list on the way."""
    for index in itertools.count():
        if index == trees.scores.shape[1]:
            trees.extend(max(1, 2 * index), threads=torch.get_num_threads())
        if (trees.scores[:, index] == -np.inf).all():
            return
        yield index


def pad_lists(items: Sequence[Tensor], like: Tensor) -> Tensor:
    """Pad the items' trees ``(trees, n+1)`` by -1 and stack them: ``(trees, *batch, n+1)``, as ``like`` without trees.

    For a batch of no items there are no trees.
    """
    if not items:
        return torch.empty(0, *like.shape, dtype=torch.int64, device=like.device)
    return torch.nn.utils.rnn.pad_sequence(list(items), padding_value=-1).reshape(-1, *like.shape)


def sort_by_score(scores: FloatArray, *columns: np.ndarray) -> list[np.ndarray]:
    """Sort scores ``(B, K)`` and columns ``(B, K, n+1)`` by descending score: rounding alone may have swapped trees."""
    if not (scores[:, 1:] > scores[:, :-1]).any():
        return [scores, *columns]
    order = (-scores).argsort(1, kind="stable")
    return [
        np.take_along_axis(scores, order, 1),
        *(np.take_along_axis(column, order[..., None], 1) for column in columns),
    ]


def head_lists(length: Tensor, size: int) -> Tensor:
    """Return all lists of heads of the first ``length`` ``(1,)`` words ``(lists, size)``, trees or not; -1 pads them.

    The order is by head of word 1, then of word 2, and so on.
    """
    words = int(length)
    choices = [[-1], *([head for head in range(words + 1) if head != word] for word in range(1, words + 1))]
    grid = torch.cartesian_prod(*map(torch.tensor, choices)).reshape(-1, words + 1)
    return torch.nn.functional.pad(grid, (0, size - 1 - words), value=-1).to(length.device)
