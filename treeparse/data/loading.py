"""Loaders of whole batches; apart from Lightning, so that a spawned worker process need not import it."""

from collections.abc import Callable, Sequence

import torch
from torch.utils.data import DataLoader, Dataset, Sampler

from treeparse.core import Batch, Sentence

Collate = Callable[[Sequence[Sentence], Sequence[int]], Batch]


class BatchDataset(Dataset[Batch]):
    """Batches by the list of their sentences' places; a worker process makes the whole batch."""

    def __init__(self, sentences: Sequence[Sentence], collate: Collate) -> None:
        self.sentences, self.collate = sentences, collate

    def __getitem__(self, places: list[int]) -> Batch:
        return self.collate([self.sentences[place] for place in places], places)


def batch_loader(
    dataset: BatchDataset, sampler: Sampler[list[int]], *, workers: int = 0, start_method: str | None = None
) -> DataLoader[Batch]:
    """Loads the batches whose places the sampler yields; leaves torch's default generator alone."""
    return DataLoader(
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
