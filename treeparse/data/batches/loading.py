"""Loaders of whole batches; apart from Lightning, so that a spawned worker process need not import it."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch.utils.data import DataLoader, Dataset, Sampler

from treeparse.batch import Batch
from treeparse.data.prefetch import prefetched
from treeparse.data.text.unlabelled import UnlabelledSentence
from treeparse.sentence import Sentence

Item = int | UnlabelledSentence
"""A sentence on its way into a batch: its place in the list that workers have, or itself."""

Collate = Callable[[Sequence[Sentence], Sequence[int]], Batch]


class BatchDataset(Dataset[Batch]):
    """Batches by the list of their sentences; a worker process makes the whole batch.

    The place of an unlabelled sentence, in its batch, is that behind all others that it has in its text.
    """

    def __init__(self, sentences: Sequence[Sentence], collate: Collate) -> None:
        self.sentences, self.collate = sentences, collate

    def __getitem__(self, items: Sequence[Item]) -> Batch:
        sentences = [self.sentences[item] if isinstance(item, int) else item.words for item in items]
        places = [item if isinstance(item, int) else len(self.sentences) + item.place for item in items]
        return self.collate(sentences, places)


class Loader(Protocol):
    """What gives the batches of an epoch."""

    def __iter__(self) -> Iterator[Batch]: ...

    def __len__(self) -> int: ...


@dataclass(frozen=True)
class AheadLoader:
    """A loader whose batches are made by a thread, so many ahead of the one that is asked for."""

    loader: Loader
    ahead: int

    def __iter__(self) -> Iterator[Batch]:
        return prefetched(self.loader, self.ahead)

    def __len__(self) -> int:
        return len(self.loader)


def batch_loader(
    dataset: BatchDataset,
    sampler: Sampler[Any],
    *,
    workers: int = 0,
    start_method: str | None = None,
    ahead: int = 0,
) -> Loader:
    """Loads the batches whose items the sampler yields; leaves torch's default generator alone.

    Without workers, a thread makes so many batches ahead; none for 0. They are the same.
    """
    loader = DataLoader(
        dataset,
        # As `sampler` with batch_size=None, not as `batch_sampler`: each of its items asks the dataset for one batch.
        batch_size=None,
        sampler=sampler,
        num_workers=workers,
        persistent_workers=workers > 0,
        multiprocessing_context=start_method if workers else None,
        # Every iterator draws the seed of its workers: not from torch's default generator, which dropout reads.
        generator=torch.Generator(),
    )
    return AheadLoader(loader, ahead) if ahead and not workers else loader
