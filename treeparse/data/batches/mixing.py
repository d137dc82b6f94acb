"""The batches of an epoch of training: all labelled sentences or a draw of them, and unlabelled sentences."""

import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from torch.utils.data import Sampler

from treeparse.data.batches.steps import Item
from treeparse.data.batches.unlabelled import UnlabelledSentence, UnlabelledText
from treeparse.errors import TreeparseError
from treeparse.names import Mixing
from treeparse.sentence import Sentence


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


@dataclass(frozen=True)
class SmoothedDraw:
    """Draws as many sentences an epoch as there are, in shares proportional to ``weight * size ** (1 / temperature)``.

    A treebank's sentences come in random order, and in another order once all have come, also across epochs: no
    sentence comes a second time before all have come once. Indices run through all treebanks, one after the other. They
    depend on ``seed`` and the epoch alone.

    Attributes:
        sizes: number of sentences of each treebank.
        temperature: more than 0; 1 leaves the shares as they are, higher temperatures make them more even.
        seed: seed of the random orders.
        weights: a factor of each treebank's share; none for 1.
    """

    sizes: Sequence[int]
    temperature: float
    seed: int
    weights: Sequence[float] = ()

    def counts(self) -> list[int]:
        """Return the number of sentences that an epoch takes of each treebank, rounded so that the sum stays."""
        logs = [math.log(size) / self.temperature if size else -math.inf for size in self.sizes]
        logs = [log + math.log(weight) for log, weight in zip(logs, self.weights or [1.0] * len(logs), strict=True)]
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
            span = range(epoch * count, (epoch + 1) * count)
            indices += (offset + index for index in self._taken(treebank, size, span))
            offset += size
        return indices

    def _taken(self, treebank: int, size: int, span: range) -> Iterator[int]:
        """Yield the part ``span`` of the endless list of a treebank's indices: one order after another."""
        for turn in range(span.start // size, -(-span.stop // size)) if span else ():
            order = list(range(size))
            random.Random(f"{self.seed}/{treebank}/{turn}").shuffle(order)
            yield from order[max(span.start - turn * size, 0) : span.stop - turn * size]


@dataclass(frozen=True)
class TrainingMix:
    """What an epoch consists of; by default all labelled sentences, once.

    Attributes:
        draw: returns the indices of an epoch's labelled sentences; None for all.
        unlabelled: the text to mix in; None for none.
        mixing: ``together`` for batches of both kinds of sentences, ``turns`` for batches of one kind, by turns.
        ratio: words of unlabelled text for each word of labelled sentences. Batches of both may be larger by this.
    """

    draw: Callable[[int], Sequence[int]] | None = None
    unlabelled: UnlabelledText | None = None
    mixing: Mixing = "together"
    ratio: float = 1.0


ALL_LABELLED = TrainingMix()


class EpochSampler(Sampler[list[Item]]):
    """Yields the sentences of each batch: indices of labelled sentences, and unlabelled sentences themselves.

    Batches of one kind of sentences are those of a shuffling `BucketBatchSampler`; turns are spread evenly over the
    epoch. Batches of both kinds may hold ``1 + ratio`` times the bounds, in the ratio of the whole epoch as far as
    whole sentences allow. All depend on ``seed`` and the epoch alone.

    Args:
        lengths: what each labelled sentence counts for: words, or subwords.
        max_words: see `BucketBatchSampler`.
        max_squared: see `BucketBatchSampler`.
        seed: seed of the order.
        mix: what an epoch consists of.
        length: returns what an unlabelled sentence counts for.
    """

    def __init__(
        self,
        lengths: Sequence[int],
        *,
        max_words: int,
        max_squared: int | None = None,
        seed: int = 0,
        mix: TrainingMix = ALL_LABELLED,
        length: Callable[[Sentence], int] = len,
    ) -> None:
        self.length = length
        self.lengths, self.seed, self.mix = lengths, seed, mix
        self.max_words, self.max_squared = max_words, max_squared
        self.set_epoch(0)

    def set_epoch(self, epoch: int) -> None:
        """Fix the batches of an epoch, counted from 0."""
        self.epoch = epoch
        draw, text = self.mix.draw, self.mix.unlabelled
        self.labelled: Sequence[int] = range(len(self.lengths)) if draw is None else draw(epoch)
        self.unlabelled: Sequence[UnlabelledSentence] = [] if text is None else text.share(epoch)
        first = [self.lengths[index] for index in self.labelled]
        second = [self.length(sentence.words) for sentence in self.unlabelled]
        if not second:
            batches = self._alone(first)
        elif self.mix.mixing == "turns":
            shifted = [[len(first) + index for index in batch] for batch in self._alone(second)]
            batches = spread_evenly(self._alone(first), shifted)
        else:
            batches = self._together(first, second)
        chosen: list[Item] = [*self.labelled, *self.unlabelled]
        self._batches = [[chosen[index] for index in batch] for batch in batches]

    def _alone(self, lengths: Sequence[int]) -> list[list[int]]:
        bounds = {"max_words": self.max_words, "max_squared": self.max_squared}
        sampler = BucketBatchSampler(lengths, **bounds, shuffle=True, seed=self.seed)
        sampler.set_epoch(self.epoch)
        return list(sampler)

    def _together(self, first: Sequence[int], second: Sequence[int]) -> list[list[int]]:
        """Return batches of both kinds, as runs of one list by length; indices of the second follow the first.

        Each stretch of that list has the ratio of the whole, so that the lengths in a batch are as similar as both
        kinds allow.
        """
        nodes, stream = counted_nodes([*first, *second]), random.Random(f"{self.seed}/{self.epoch}")
        orders = [list(range(len(first))), list(range(len(first), len(nodes)))]
        for order in orders:
            stream.shuffle(order)
            order.sort(key=nodes.__getitem__)
        factor = 1 + self.mix.ratio
        squared = None if self.max_squared is None else factor * self.max_squared
        order = merged_evenly(*orders, weights=[*first, *second])
        batches = cut_into_batches(order, nodes, max_words=factor * self.max_words, max_squared=squared)
        stream.shuffle(batches)
        return batches

    def __iter__(self) -> Iterator[list[Item]]:
        return iter(self._batches)

    def __len__(self) -> int:
        return len(self._batches)


def merged_evenly(first: Sequence[int], second: Sequence[int], weights: Sequence[int]) -> list[int]:
    """Interleave two lists of indices so that every prefix holds about the same share of each list's weight."""
    middles: list[tuple[float, int]] = []
    for order in (first, second):
        total, before = sum(weights[index] for index in order), 0
        for index in order:
            middles.append(((2 * before + weights[index]) / (2 * total), index))
            before += weights[index]
    return [index for _, index in sorted(middles, key=lambda middle: middle[0])]


def spread_evenly(first: list[list[int]], second: list[list[int]]) -> list[list[int]]:
    """Interleave two lists of batches, each in its order, with the shorter list spread evenly."""
    indices = range(len(first) + len(second))
    merged = merged_evenly(indices[: len(first)], indices[len(first) :], [1] * len(indices))
    return [[*first, *second][index] for index in merged]
