"""The batches of an epoch of training: of all labelled sentences or of some, alone or mixed with unlabelled ones."""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from torch.utils.data import Sampler

from treeparse.data.batches.batching import BucketBatchSampler, counted_nodes, cut_into_batches
from treeparse.data.batches.loading import Item
from treeparse.data.text.unlabelled import UnlabelledSentence, UnlabelledText
from treeparse.names import Mixing
from treeparse.sentence import Sentence


@dataclass(frozen=True)
class Mixture:
    """What an epoch is made of; by default all labelled sentences, once.

    Attributes:
        draw: the places of an epoch's labelled sentences; None for all.
        unlabelled: the text that is mixed in; None for none.
        mixing: how.
        ratio: the words of unlabelled text for each of labelled sentences, by which batches of both may be larger.
    """

    draw: Callable[[int], Sequence[int]] | None = None
    unlabelled: UnlabelledText | None = None
    mixing: Mixing = "together"
    ratio: float = 1.0


PLAIN = Mixture()


class EpochSampler(Sampler[list[Item]]):
    """Yields the sentences of each batch: labelled ones by their places, unlabelled ones themselves.

    Batches of labelled sentences, and those of unlabelled ones where they take turns, are those of a shuffling
    `BucketBatchSampler`. The turns are spread evenly. Batches of both have room for ``1 + ratio`` times as much, and as
    near as whole sentences allow the ratio of the whole epoch. All depend on ``seed`` and the epoch alone. ``lengths``
    are what the labelled sentences count for, and ``length`` says it of unlabelled ones.
    """

    def __init__(
        self,
        lengths: Sequence[int],
        *,
        max_words: int,
        max_squared: int | None = None,
        seed: int = 0,
        mixture: Mixture = PLAIN,
        length: Callable[[Sentence], int] = len,
    ) -> None:
        self.length = length
        self.lengths, self.seed, self.mixture = lengths, seed, mixture
        self.max_words, self.max_squared = max_words, max_squared
        self.set_epoch(0)

    def set_epoch(self, epoch: int) -> None:
        """Fixes the batches of an epoch, counted from 0."""
        self.epoch = epoch
        draw, text = self.mixture.draw, self.mixture.unlabelled
        self.labelled: Sequence[int] = range(len(self.lengths)) if draw is None else draw(epoch)
        self.unlabelled: Sequence[UnlabelledSentence] = [] if text is None else text.share(epoch)
        first = [self.lengths[place] for place in self.labelled]
        second = [self.length(sentence.words) for sentence in self.unlabelled]
        if not second:
            batches = self._alone(first)
        elif self.mixture.mixing == "turns":
            behind = [[len(first) + place for place in batch] for batch in self._alone(second)]
            batches = spread_evenly(self._alone(first), behind)
        else:
            batches = self._together(first, second)
        chosen: list[Item] = [*self.labelled, *self.unlabelled]
        self._batches = [[chosen[place] for place in batch] for batch in batches]

    def _alone(self, lengths: Sequence[int]) -> list[list[int]]:
        bounds = {"max_words": self.max_words, "max_squared": self.max_squared}
        sampler = BucketBatchSampler(lengths, **bounds, shuffle=True, seed=self.seed)
        sampler.set_epoch(self.epoch)
        return list(sampler)

    def _together(self, first: Sequence[int], second: Sequence[int]) -> list[list[int]]:
        """Batches of both, places of the second behind those of the first: runs of one list that is sorted by length.

        Each stretch of that list has the ratio of the whole, so that the lengths in a batch are alike as far as those
        of both are.
        """
        nodes, stream = counted_nodes([*first, *second]), random.Random(f"{self.seed}/{self.epoch}")
        orders = [list(range(len(first))), list(range(len(first), len(nodes)))]
        for order in orders:
            stream.shuffle(order)
            order.sort(key=nodes.__getitem__)
        room = 1 + self.mixture.ratio
        squared = None if self.max_squared is None else room * self.max_squared
        order = merged_evenly(*orders, weights=[*first, *second])
        batches = cut_into_batches(order, nodes, max_words=room * self.max_words, max_squared=squared)
        stream.shuffle(batches)
        return batches

    def __iter__(self) -> Iterator[list[Item]]:
        return iter(self._batches)

    def __len__(self) -> int:
        return len(self._batches)


def merged_evenly(first: Sequence[int], second: Sequence[int], weights: Sequence[int]) -> list[int]:
    """Both lists as one, each in its order, so that everywhere as large a share of the weight of either is behind."""
    middles: list[tuple[float, int]] = []
    for order in (first, second):
        total, before = sum(weights[place] for place in order), 0
        for place in order:
            middles.append(((2 * before + weights[place]) / (2 * total), place))
            before += weights[place]
    return [place for _, place in sorted(middles, key=lambda middle: middle[0])]


def spread_evenly(first: list[list[int]], second: list[list[int]]) -> list[list[int]]:
    """Both lists of batches as one, each in its order, the fewer ones evenly among the others."""
    places = range(len(first) + len(second))
    merged = merged_evenly(places[: len(first)], places[len(first) :], [1] * len(places))
    return [[*first, *second][place] for place in merged]
