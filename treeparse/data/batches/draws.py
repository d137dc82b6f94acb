"""Which sentences of several treebanks an epoch takes, where small treebanks get more than their share."""

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class SmoothedDraw:
    """As many sentences an epoch as there are, a share of each treebank proportional to ``size ** (1 / temperature)``.

    Each treebank is gone through in random order, and in another one once it is used up, from epoch to epoch: none of
    its sentences comes a second time before all have come once. The sentences are treebank after treebank one list, of
    which an epoch is places; they depend on ``seed`` and the epoch alone.
    """

    sizes: Sequence[int]  # sentences of each treebank
    temperature: float  # more than 0; 1 leaves the shares as they are, above they are more even
    seed: int

    def counts(self) -> list[int]:
        """The sentences that an epoch takes of each treebank: whole numbers next to the shares, of the same sum."""
        logs = [math.log(size) / self.temperature if size else -math.inf for size in self.sizes]
        weights = [math.exp(log - max(logs)) for log in logs]
        shares = [weight / sum(weights) * sum(self.sizes) for weight in weights]
        counts = [math.floor(share) for share in shares]
        most_cut = sorted(range(len(shares)), key=lambda place: counts[place] - shares[place])
        for place in most_cut[: sum(self.sizes) - sum(counts)]:
            counts[place] += 1
        return counts

    def __call__(self, epoch: int) -> list[int]:
        """The places of an epoch's sentences, counted from 0, treebank after treebank."""
        places: list[int] = []
        before = 0
        for treebank, (size, count) in enumerate(zip(self.sizes, self.counts(), strict=True)):
            places += (
                before + place for place in self._taken(treebank, size, range(epoch * count, (epoch + 1) * count))
            )
            before += size
        return places

    def _taken(self, treebank: int, size: int, span: range) -> Iterator[int]:
        """The part ``span`` of the endless list of a treebank's places: one order after another."""
        for turn in range(span.start // size, -(-span.stop // size)) if span else ():
            order = list(range(size))
            random.Random(f"{self.seed}/{treebank}/{turn}").shuffle(order)
            yield from order[max(span.start - turn * size, 0) : span.stop - turn * size]
