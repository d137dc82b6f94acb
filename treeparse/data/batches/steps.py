"""What each device computes of every step of training, planned before any batch is made, and loaders of the batches.

Without Lightning, so that worker processes that are spawned need not import it.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, Sampler, SequentialSampler

from treeparse.batch import Batch
from treeparse.data.batches.unlabelled import UnlabelledSentence
from treeparse.data.prefetch import map_ahead
from treeparse.sentence import Sentence

Item = int | UnlabelledSentence
"""A sentence of a batch: its index in the list that workers have, or, if unlabelled, the sentence itself."""

WordsOf = Callable[[Item], Mapping[str, int]]
"""Returns the words of a sentence that each term of the loss is the mean over, by the term's name."""


class ShareOfStep(NamedTuple):
    """What a device computes at once: a batch, and how it counts in its step.

    Attributes:
        batch: the batch.
        seed: the seed of its dropout and draws.
        weights: what a word counts in each term of the loss, by its name, so that Lightning's means over accumulated
            batches and devices are means over words; None if the step has one batch, whose mean is the step's.
        counts: False if the step has fewer batches than there are devices. The device then computes another device's
            batch, which has no weight, because all devices must take part in every step.
    """

    batch: Batch
    seed: int
    weights: Mapping[str, float] | None = None
    counts: bool = True

    @property
    def num_words(self) -> int:
        """The number of words that count."""
        return self.batch.num_words if self.counts else 0


class PlannedShare(NamedTuple):
    """A `ShareOfStep` before its batch is made."""

    items: Sequence[Item]
    seed: int
    weights: Mapping[str, float] | None
    counts: bool


class StepSampler(SequentialSampler):
    """Yields what one device computes of an epoch, by dividing the batches of a sampler.

    Steps take ``accumulate * devices`` batches each, in the sampler's order; the last one takes what is left. A step's
    batches go to the devices in turns. It is a `SequentialSampler`, because Lightning would replace any other one where
    the trainer overfits a few batches.

    Args:
        batches: yields the items of each batch, the same on every device.
        words_of: the words of a sentence; None if nothing is learned from the batches.
        accumulate: number of batches that a device computes in a step.
        devices: number of devices.
        device: the number of this one, from 0.
        seed: seed of the run.
    """

    def __init__(
        self,
        batches: Sampler[Any],
        words_of: WordsOf | None = None,
        *,
        accumulate: int = 1,
        devices: int = 1,
        device: int = 0,
        seed: int = 0,
    ) -> None:
        self.batches, self.words_of, self.seed = batches, words_of, seed
        self.accumulate, self.devices, self.device = accumulate, devices, device
        self.epoch = 0

    def __iter__(self) -> Iterator[Any]:
        batches, size = list(self.batches), self.accumulate * self.devices
        for start in range(0, len(batches), size):
            step = batches[start : start + size]
            weights = self._weights(step) if size > 1 else None
            for turn in range(-(-len(step) // self.devices)):
                number = turn * self.devices + self.device
                counts = number < len(step)
                of_dev = self.words_of is None
                place = (0, start + number) if of_dev else (start // size, number)
                seed = batch_seed(self.seed, self.epoch, *place, of_dev=of_dev)
                yield PlannedShare(step[number if counts else 0], seed, weights, counts)

    def _weights(self, step: Sequence[Sequence[Item]]) -> Mapping[str, float] | None:
        """Return the weights of the words of a step: Lightning takes the mean over turns, then over devices."""
        if self.words_of is None:
            return None
        words = Counter[str]()
        for batch in step:
            for item in batch:
                words.update(self.words_of(item))
        return {name: self.accumulate * self.devices / max(count, 1) for name, count in words.items()}

    def __len__(self) -> int:
        batches: int = len(self.batches)  # pyright: ignore[reportArgumentType]
        steps, rest = divmod(batches, self.accumulate * self.devices)
        return steps * self.accumulate + -(-rest // self.devices)


def batch_seed(seed: int, epoch: int, step: int, number: int, *, of_dev: bool = False) -> int:
    """Return the seed of torch's generators for a batch, by its step in the epoch and its number in the step, 64 bits.

    It does not depend on the device that computes the batch. Batches of the dev set have seeds of their own.
    """
    return int(np.random.SeedSequence((seed, epoch, step, number, of_dev)).generate_state(1, np.uint64)[0])


def steps_of(batches: int, batches_per_step: int) -> int:
    """Return the number of steps that take so many batches."""
    return -(-batches // batches_per_step)


Collate = Callable[[Sequence[Sentence], Sequence[int]], Batch]


class StepDataset(Dataset[ShareOfStep]):
    """Makes the batches of a plan from sentences, in worker processes if there are any.

    In a batch, the index of an unlabelled sentence is its index in the text plus the number of labelled sentences.
    """

    def __init__(self, sentences: Sequence[Sentence], collate: Collate) -> None:
        self.sentences, self.collate = sentences, collate

    def __getitem__(self, share: PlannedShare) -> ShareOfStep:
        return ShareOfStep(self.batch(share.items), share.seed, share.weights, share.counts)

    def batch(self, items: Sequence[Item]) -> Batch:
        """Make the batch of some sentences."""
        sentences = [self.sentences[item] if isinstance(item, int) else item.words for item in items]
        indices = [item if isinstance(item, int) else len(self.sentences) + item.index for item in items]
        return self.collate(sentences, indices)


@dataclass(frozen=True)
class PlainLoader:
    """A loader without worker processes, whose thread makes ``ahead`` batches in advance; with 0 there is no thread."""

    dataset: StepDataset
    plan: Sampler[Any]
    ahead: int = 0

    def __iter__(self) -> Iterator[ShareOfStep]:
        return map_ahead(self.dataset.__getitem__, self.plan, self.ahead)

    def __len__(self) -> int:
        return len(self.plan)  # pyright: ignore[reportArgumentType]


Loader = DataLoader[ShareOfStep] | PlainLoader
"""An iterable of an epoch's batches, as far as one device computes them."""


def batch_loader(
    dataset: StepDataset,
    sampler: Sampler[Any],
    *,
    workers: int = 0,
    start_method: str | None = None,
    ahead: int = 0,
) -> Loader:
    """Return a loader of the batches that the sampler plans; it draws nothing from torch's default generator.

    Without workers, a thread makes ``ahead`` batches in advance. The batches are the same either way.
    """
    if not workers:
        return PlainLoader(dataset, sampler, ahead)
    return DataLoader(
        dataset,
        # As `sampler` with batch_size=None, not as `batch_sampler`: each of its items asks the dataset for one batch.
        batch_size=None,
        sampler=sampler,
        num_workers=workers,
        persistent_workers=True,
        multiprocessing_context=start_method,
        # Every iterator draws a seed for its workers, which must not come from the generator that dropout reads.
        generator=torch.Generator(),
    )
