"""The batches of each step of training, divided among devices."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from torch.utils.data import Sampler

from treeparse.batch import Batch
from treeparse.data.text.unlabelled import UnlabelledSentence

Item = int | UnlabelledSentence
"""A sentence of a batch: its index in the list that workers have, or, if unlabelled, the sentence itself."""


class ShareOfStep(NamedTuple):
    """What one device computes of a step.

    Attributes:
        batches: its batches, one after the other; at least one.
        counts: False if the step has fewer batches than there are devices. The device then computes a copy of another
            one's batch, which has no weight, because all devices must take part in every step.
    """

    batches: Sequence[Batch]
    counts: bool = True

    @property
    def num_words(self) -> int:
        """The number of words that count."""
        return sum(batch.num_words for batch in self.batches) if self.counts else 0


class PlannedShare(NamedTuple):
    """A `ShareOfStep` before its batches are made."""

    batches: Sequence[Sequence[Item]]
    counts: bool


class StepSampler(Sampler[PlannedShare]):
    """Yields what one device computes of each step, by dividing the batches of a sampler.

    Steps take ``accumulate * devices`` batches each, in the sampler's order, whatever the device; the last one takes
    what is left. A step's batches go to the devices in turns.

    Args:
        batches: yields the items of each batch, the same on every device.
        accumulate: number of batches that a device computes in a step.
        devices: number of devices.
        device: the number of this one, from 0.
    """

    batches: Sampler[Any]
    accumulate: int
    devices: int
    device: int

    def __init__(self, batches: Sampler[Any], *, accumulate: int = 1, devices: int = 1, device: int = 0) -> None:
        self.batches, self.accumulate, self.devices, self.device = batches, accumulate, devices, device

    @property
    def batches_per_step(self) -> int:
        """The number of batches of all devices in a step."""
        return self.accumulate * self.devices

    def __iter__(self) -> Iterator[PlannedShare]:
        batches = list(self.batches)
        for start in range(0, len(batches), self.batches_per_step):
            step = batches[start : start + self.batches_per_step]
            own = step[self.device :: self.devices]
            yield PlannedShare(own or step[:1], bool(own))

    def __len__(self) -> int:
        return steps_of(len(self.batches), self.batches_per_step)  # pyright: ignore[reportArgumentType]


def steps_of(batches: int, batches_per_step: int) -> int:
    """Return the number of steps that take so many batches."""
    return -(-batches // batches_per_step)
