"""Lists of trees, best first or all there are, as distributions hand them out."""

import itertools
from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from treeparse.kernels.arrays import FloatArray
from treeparse.trees.families import KBest


def places(found: KBest) -> Iterator[int]:
    """The places of a list one by one, the list made longer as they are asked for, to the end of the longest."""
    for place in itertools.count():
        if place == found.scores.shape[1]:
            found.extend(max(1, 2 * place), threads=torch.get_num_threads())
        if (found.scores[:, place] == -np.inf).all():
            return
        yield place


def side_by_side(items: Sequence[Tensor], like: Tensor) -> Tensor:
    """The trees ``(trees, n+1)`` of the batch items, padded by -1: ``(trees, *batch, n+1)``, as ``like`` without trees.

    Of no items there are no trees.
    """
    if not items:
        return torch.empty(0, *like.shape, dtype=torch.int64, device=like.device)
    return torch.nn.utils.rnn.pad_sequence(list(items), padding_value=-1).reshape(-1, *like.shape)


def in_order(scores: FloatArray, *columns: np.ndarray) -> list[np.ndarray]:
    """Scores ``(B, K)`` and columns ``(B, K, n+1)`` by descending score: by rounding alone, trees may change places."""
    if not (scores[:, 1:] > scores[:, :-1]).any():
        return [scores, *columns]
    order = (-scores).argsort(1, kind="stable")
    return [
        np.take_along_axis(scores, order, 1),
        *(np.take_along_axis(column, order[..., None], 1) for column in columns),
    ]
