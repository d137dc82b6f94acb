"""Batches of sentences of like length, bounded in words and in squared length, in an order fixed by (seed, epoch)."""

import random
from collections.abc import Iterator, Sequence

from torch.utils.data import Sampler

from treeparse.errors import TreeparseError


class BucketBatchSampler(Sampler[list[int]]):
    """Yields the indices of each batch.

    A sentence's nodes (its words and the root) count as the next multiple of ``step``. A batch holds at most
    ``max_words`` nodes and at most ``max_squared`` cells of score matrices, padding to its longest sentence included; a
    longer sentence makes a batch of its own. With ``shuffle`` sentences of the same multiple are mixed and the batches
    come in random order, by ``seed`` and the epoch only. Without, batches come by falling length: the largest is met
    first.

    The sizes of an epoch's batches are the same in every epoch, and a ``step`` above 1 leaves few different ones: fused
    kernels are compiled for each shape that they meet.
    """

    def __init__(
        self,
        lengths: Sequence[int],
        *,
        max_words: int,
        max_squared: int | None = None,
        step: int = 4,
        shuffle: bool = False,
        seed: int = 0,
    ) -> None:
        if min(max_words, step, 1 if max_squared is None else max_squared) < 1:
            raise TreeparseError("A batch needs room: max_words, max_squared and step must be 1 or more.")
        self.nodes = counted_nodes(lengths, step)
        self.max_words, self.max_squared = max_words, max_squared
        self.shuffle, self.seed = shuffle, seed
        self.set_epoch(0)

    def set_epoch(self, epoch: int) -> None:
        """Fixes the batches of an epoch, counted from 0."""
        self.epoch = epoch
        order = list(range(len(self.nodes)))
        if self.shuffle:
            # A string seeds through SHA-512 whatever the process's hash seed is.
            stream = random.Random(f"{self.seed}/{epoch}")
            stream.shuffle(order)
            self._batches = self._fill(sorted(order, key=self.nodes.__getitem__))
            stream.shuffle(self._batches)
        else:
            self._batches = self._fill(sorted(order, key=lambda place: -self.nodes[place]))

    def _fill(self, order: list[int]) -> list[list[int]]:
        return cut_into_batches(order, self.nodes, max_words=self.max_words, max_squared=self.max_squared)

    def __iter__(self) -> Iterator[list[int]]:
        return iter(self._batches)

    def __len__(self) -> int:
        return len(self._batches)


def counted_nodes(lengths: Sequence[int], step: int = 4) -> list[int]:
    """What sentences of so many words count as: their nodes, rounded up to a multiple of ``step``."""
    return [-(-(length + 1) // step) * step for length in lengths]


def cut_into_batches(
    order: Sequence[int], nodes: Sequence[int], *, max_words: float, max_squared: float | None = None
) -> list[list[int]]:
    """Places in this order, cut into batches as large as the bounds of `BucketBatchSampler` allow.

    ``nodes`` are those of each place.
    """
    batches: list[list[int]] = []
    longest = 0
    for place in order:
        longest = max(longest, nodes[place])
        padded = longest * (len(batches[-1]) + 1) if batches else 0
        if batches and padded <= max_words and (max_squared is None or longest * padded <= max_squared):
            batches[-1].append(place)
        else:
            batches.append([place])
            longest = nodes[place]
    return batches
