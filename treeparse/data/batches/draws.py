"""The sentences of several treebanks that an epoch takes, where small treebanks get more than their share."""

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class SmoothedDraw:
    """Draws as many sentences an epoch as there are, in shares proportional to ``size ** (1 / temperature)``.

    A treebank's sentences come in random order, and in another order once all have come, also across epochs: no
    sentence comes a second time before all have come once. Indices run through all treebanks, one after the other. They
    depend on ``seed`` and the epoch alone.

    Attributes:
        sizes: number of sentences of each treebank.
        temperature: more than 0; 1 leaves the shares as they are, higher temperatures make them more even.
        seed: seed of the random orders.
    """

    sizes: Sequence[int]
    temperature: float
    seed: int

    def counts(self) -> list[int]:
        """Return the number of sentences that an epoch takes of each treebank, rounded so that the sum stays."""
        logs = [math.log(size) / self.temperature if size else -math.inf for size in self.sizes]
        weights = [math.exp(log - max(logs)) for log in logs]
        shares = [weight / sum(weights) * sum(self.sizes) for weight in weights]
        counts = [math.floor(share) for share in shares]
        most_cut = sorted(range(len(shares)), key=lambda treebank: counts[treebank] - shares[treebank])
        for treebank in most_cut[: sum(self.sizes) - sum(counts)]:
            counts[treebank] += 1
        return counts

    def __call__(self, epoch: int) -> list[int]:
        """Return the indices of an epoch's sentences, treebank after treebank; epochs count from 0."""
        indices: list[int] = []
        offset = 0
        for treebank, (size, count) in enumerate(zip(self.sizes, self.counts(), strict=True)):
            indices += (
                offset + index for index in self._taken(treebank, size, range(epoch * count, (epoch + 1) * count))
            )
            offset += size
        return indices

    def _taken(self, treebank: int, size: int, span: range) -> Iterator[int]:
        """Yield the part ``span`` of the endless list of a treebank's indices: one order after another."""
        for turn in range(span.start // size, -(-span.stop // size)) if span else ():
            order = list(range(size))
            random.Random(f"{self.seed}/{treebank}/{turn}").shuffle(order)
            yield from order[max(span.start - turn * size, 0) : span.stop - turn * size]
