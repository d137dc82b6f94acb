"""Loaders of whole batches, in a module without Lightning, so that spawned worker processes need not import it."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch.utils.data import DataLoader, Dataset, Sampler

from treeparse.batch import Batch
from treeparse.data.batches.steps import Item, PlannedShare, ShareOfStep
from treeparse.data.prefetch import map_ahead
from treeparse.sentence import Sentence

Collate = Callable[[Sequence[Sentence], Sequence[int]], Batch]


class StepDataset(Dataset[ShareOfStep]):
    """Makes the batches of a plan from sentences, in worker processes if there are any.

    In a batch, the index of an unlabelled sentence is its index in the text plus the number of labelled sentences.
    """

    collate: "Collate"
    sentences: Sequence[Sentence]

    def __init__(self, sentences: Sequence[Sentence], collate: Collate) -> None:
        self.sentences, self.collate = sentences, collate

    def __getitem__(self, share: PlannedShare) -> ShareOfStep:
        return ShareOfStep(self.batch(share.items), share.seed, share.weights, share.counts)

    def batch(self, items: Sequence[Item]) -> Batch:
        """Make the batch of some sentences."""
        sentences = [self.sentences[item] if isinstance(item, int) else item.words for item in items]
        indices = [item if isinstance(item, int) else len(self.sentences) + item.index for item in items]
        return self.collate(sentences, indices)


class Loader(Protocol):
    """An iterable of an epoch's batches, as far as one device computes them."""

    def __iter__(self) -> Iterator[ShareOfStep]: ...

    def __len__(self) -> int: ...


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
