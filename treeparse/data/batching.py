"""Batches of sentences of like length, bounded in words and in squared length, in an order fixed by (seed, epoch)."""

import random
from collections.abc import Iterator, Sequence

from torch.utils.data import Sampler

from treeparse.core import TreeparseError


class BucketBatchSampler(Sampler[list[int]]):
    """Yields the indices of each batch.

    A batch holds at most ``max_words`` nodes (words and roots, padding included) and at most ``max_squared`` cells of
    its score matrices, padding included; a longer sentence makes a batch of its own. With ``shuffle`` sentences are
    sorted by length with random noise, so that the batches of each epoch differ, and the batches come in random order;
    both depend on ``seed`` and the epoch only. Without, batches come by falling length: the largest is met first.
    """

    def __init__(
        self,
        lengths: Sequence[int],
        *,
        max_words: int,
        max_squared: int | None = None,
        shuffle: bool = False,
        seed: int = 0,
        noise: float = 0.1,
    ) -> None:
        if max_words < 1 or (max_squared is not None and max_squared < 1):
            raise TreeparseError("A batch needs room: max_words and max_squared must be 1 or more.")
        self.lengths, self.max_words, self.max_squared = list(lengths), max_words, max_squared
        self.shuffle, self.seed, self.noise = shuffle, seed, noise
        self.set_epoch(0)

    def set_epoch(self, epoch: int) -> None:
        """Fixes the batches of an epoch, counted from 0."""
        self.epoch = epoch
        # A string seeds through SHA-512 whatever the process's hash seed is.
        stream = random.Random(f"{self.seed}/{epoch}")
        self._batches = self._fill(self._order(stream))
        if self.shuffle:
            stream.shuffle(self._batches)

    def _order(self, stream: random.Random) -> list[int]:
        order = list(range(len(self.lengths)))
        if not self.shuffle:
            return sorted(order, key=lambda place: -self.lengths[place])
        noisy = [length * (1 + self.noise * stream.uniform(-1, 1)) + stream.random() for length in self.lengths]
        return sorted(order, key=noisy.__getitem__)

    def _fill(self, order: list[int]) -> list[list[int]]:
        batches: list[list[int]] = []
        longest = 0
        for place in order:
            longest_with = max(longest, self.lengths[place] + 1)
            if batches and self._fits(longest_with, len(batches[-1]) + 1):
                batches[-1].append(place)
                longest = longest_with
            else:
                batches.append([place])
                longest = self.lengths[place] + 1
        return batches

    def _fits(self, nodes: int, sentences: int) -> bool:
        if nodes * sentences > self.max_words:
            return False
        return self.max_squared is None or nodes * nodes * sentences <= self.max_squared

    def __iter__(self) -> Iterator[list[int]]:
        return iter(self._batches)

    def __len__(self) -> int:
        return len(self._batches)
