"""Convert rows of integers of different lengths to one tensor, padded on the right.

Numpy converts all rows together, because a Python object or a tensor for each row would take most of a batch's time.
"""

from collections.abc import Callable, Iterable, Sequence, Sized
from itertools import chain

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from treeparse.sentence import EMPTY, Sentence

Numbers = NDArray[np.int64]


def padded(rows: Sequence[Sequence[int]], fill: int = 0) -> Tensor:
    """Return the rows as one int64 tensor."""
    lengths = lengths_of(rows)
    return filled(numbers(chain.from_iterable(rows), lengths.sum()), lengths, fill)


def lengths_of(rows: Sequence[Sized]) -> Numbers:
    """Return the length of each row."""
    return numbers(map(len, rows), len(rows))


def numbers(values: Iterable[int], count: int) -> Numbers:
    """Return ``count`` values as an array."""
    return np.fromiter(values, np.int64, count)


def filled(values: Numbers, lengths: Numbers, fill: int = 0, *, first: int | None = None) -> Tensor:
    """Return rows of these lengths from their concatenated values, with ``first`` before each."""
    start = 0 if first is None else 1
    width = int(lengths.max())
    result = np.full((len(lengths), start + width), fill)
    result[:, start:][np.arange(width) < lengths[:, np.newaxis]] = values
    if first is not None:
        result[:, 0] = first
    return torch.from_numpy(result)


def padded_heads(sentences: Sequence[Sentence]) -> Tensor:
    """Return the heads ``(B, n+1)`` of the sentences; -1 at the root, at padding and where unknown."""
    lengths = lengths_of(sentences)
    heads = chain.from_iterable(sentence.heads or [-1] * len(sentence) for sentence in sentences)
    return filled(numbers(heads, lengths.sum()), lengths, -1, first=-1)


def padded_labels(sentences: Sequence[Sentence], indices: Callable[[Iterable[str]], Iterable[int]]) -> Tensor:
    """Return the ids ``(B, n+1)`` of the sentences' labels, by ``indices``; -1 at the root and at padding."""
    lengths = lengths_of(sentences)
    labels = chain.from_iterable(sentence.labels or [EMPTY] * len(sentence) for sentence in sentences)
    return filled(numbers(indices(labels), lengths.sum()), lengths, -1, first=-1)
