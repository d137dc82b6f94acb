"""Batches of sentences of similar length, bounded in words and squared length, in an order by (seed, epoch)."""

import random
from collections.abc import Iterator, Sequence

from torch.utils.data import Sampler

from treeparse.errors import TreeparseError


class BucketBatchSampler(Sampler[list[int]]):
    """Yields the indices of each batch.

    A sentence's nodes (its words and the root) count as the next multiple of ``step``. A batch holds at most
    ``max_words`` nodes and at most ``max_squared`` cells of score matrices, padding to its longest sentence included; a
    longer sentence makes a batch of its own. With ``shuffle`` the sampler mixes sentences of the same multiple and
    orders the batches at random, by ``seed`` and the epoch only. Without, batches come by falling length, so that the
    largest one comes first.

    The sizes of an epoch's batches are the same in every epoch. A ``step`` above 1 leaves few different sizes, because
    fused kernels are compiled for each shape.
    """

    max_words: int
    max_squared: int | None
    shuffle: bool
    seed: int

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
            raise TreeparseError(
                f"max_words, max_squared and step must be at least 1, got {max_words}, {max_squared} and {step}."
            )
        self.nodes: list[int] = counted_nodes(lengths, step)
        self.max_words, self.max_squared = max_words, max_squared
        self.shuffle, self.seed = shuffle, seed
        self.set_epoch(0)

    def set_epoch(self, epoch: int) -> None:
        """Fix the batches of an epoch, counted from 0."""
        self.epoch = epoch
        order = list(range(len(self.nodes)))
        if self.shuffle:
            # A string seeds through SHA-512 whatever the process's hash seed is.
            stream = random.Random(f"{self.seed}/{epoch}")
            stream.shuffle(order)
            self._batches = self._fill(sorted(order, key=self.nodes.__getitem__))
            stream.shuffle(self._batches)
        else:
            self._batches = self._fill(sorted(order, key=lambda index: -self.nodes[index]))

    def _fill(self, order: list[int]) -> list[list[int]]:
        return cut_into_batches(order, self.nodes, max_words=self.max_words, max_squared=self.max_squared)

    def __iter__(self) -> Iterator[list[int]]:
        return iter(self._batches)

    def __len__(self) -> int:
        return len(self._batches)


def counted_nodes(lengths: Sequence[int], step: int = 4) -> list[int]:
    """Return the nodes that each sentence counts for: its words and the root, rounded up to a multiple of ``step``."""
    return [-(-(length + 1) // step) * step for length in lengths]


def cut_into_batches(
    order: Sequence[int], nodes: Sequence[int], *, max_words: float, max_squared: float | None = None
) -> list[list[int]]:
    """Cut indices, in this order, into batches as large as the bounds of `BucketBatchSampler` allow.

    ``nodes`` holds the nodes of the sentence of each index.
    """
    batches: list[list[int]] = []
    longest = 0
    for index in order:
        longest = max(longest, nodes[index])
        padded = longest * (len(batches[-1]) + 1) if batches else 0
        if batches and padded <= max_words and (max_squared is None or longest * padded <= max_squared):
            batches[-1].append(index)
        else:
            batches.append([index])
            longest = nodes[index]
    return batches
