"""The training and dev data of a run as a LightningDataModule."""

from collections.abc import Callable, Mapping, Sequence

import torch
from pytorch_lightning import LightningDataModule

from treeparse.batch import Batch
from treeparse.data.batches.mixing import BucketBatchSampler, EpochSampler
from treeparse.data.batches.steps import (
    Collate,
    Item,
    Loader,
    ShareOfStep,
    StepDataset,
    StepSampler,
    WordsOf,
    batch_loader,
)
from treeparse.errors import DataError, TreeparseError
from treeparse.sentence import Sentence


class TreebankModule(LightningDataModule):
    """The batches of training and of the dev set, which depend on the seed and the epoch alone, not on workers.

    Each of the trainer's devices gets its share of every step. The trainer must have
    ``reload_dataloaders_every_n_epochs=1``, because the batches of an epoch are planned when the trainer asks for its
    loader, and ``use_distributed_sampler=False``.

    Args:
        train: the training sentences.
        dev: the sentences of the dev set.
        collate: makes a batch of sentences and their indices; with workers it must pickle.
        words_of_terms: returns the words that each term of the loss is the mean over, in a batch.
        sampler: plans the batches of training; those of the dev set have its bounds, and dropout its seed.
        workers: number of processes that make batches.
        start_method: how these processes start.
        check: raises for an unlabelled sentence that ``collate`` does not take.
        ahead: number of batches that a thread makes in advance where there are no workers.
    """

    def __init__(
        self,
        train: Sequence[Sentence],
        dev: Sequence[Sentence],
        collate: Collate,
        words_of_terms: Callable[[Batch], Mapping[str, int]],
        sampler: EpochSampler,
        *,
        workers: int = 0,
        start_method: str | None = None,
        check: Callable[[Sentence], None] | None = None,
        ahead: int = 0,
    ) -> None:
        super().__init__()
        self.train_data, self.dev_data = StepDataset(train, collate), StepDataset(dev, collate)
        self.words_of_terms, self.sampler, self.check = words_of_terms, sampler, check
        self.workers, self.start_method, self.ahead, self.seed = workers, start_method, ahead, sampler.seed
        bounds = {"max_words": sampler.max_words, "max_squared": sampler.max_squared}
        self.dev_sampler: BucketBatchSampler = BucketBatchSampler([*map(sampler.length, dev)], **bounds)
        self._loader: Loader | None = None
        self._words: dict[int, Mapping[str, int]] = {}  # of labelled sentences, by index

    def train_dataloader(self) -> Loader:
        """Return the loader of the trainer's current epoch: the same object every time, so that its workers stay."""
        if self.trainer is not None:
            # To overfit is to learn the same batches in every epoch.
            overfits = bool(self.trainer.overfit_batches)  # pyright: ignore[reportAttributeAccessIssue]
            self.sampler.set_epoch(0 if overfits else self.trainer.current_epoch)
        self._check_unlabelled()
        if self._loader is None:
            turns = 1 if self.trainer is None else self.trainer.accumulate_grad_batches
            self.plan = self._divided(self.sampler, self._words_of, turns)
            options = {"workers": self.workers, "start_method": self.start_method, "ahead": self.ahead}
            self._loader = batch_loader(self.train_data, self.plan, **options)
        self.plan.epoch = self.sampler.epoch
        return self._loader

    def val_dataloader(self) -> Loader:
        plan = self._divided(self.dev_sampler)
        plan.epoch = self.sampler.epoch
        return batch_loader(self.dev_data, plan, ahead=self.ahead)

    def transfer_batch_to_device(self, batch: ShareOfStep, device: torch.device, dataloader_idx: int) -> ShareOfStep:
        """Move the batch alone: Lightning would look for tensors in everything beside it."""
        return batch._replace(batch=batch.batch.to(device))

    def _divided(
        self, sampler: EpochSampler | BucketBatchSampler, words_of: WordsOf | None = None, accumulate: int = 1
    ) -> StepSampler:
        """Return the share of this device in the sampler's batches."""
        devices = {}
        if self.trainer is not None:
            devices = {"devices": self.trainer.world_size, "device": self.trainer.global_rank}
        return StepSampler(sampler, words_of, accumulate=accumulate, seed=self.seed, **devices)

    def _words_of(self, item: Item) -> Mapping[str, int]:
        """Count the words of a sentence that each term of the loss uses; cache the counts of labelled sentences."""
        if not isinstance(item, int):
            return self.words_of_terms(self.train_data.batch([item]))
        if item not in self._words:
            self._words[item] = self.words_of_terms(self.train_data.batch([item]))
        return self._words[item]

    def _check_unlabelled(self) -> None:
        """Raise for the first unlabelled sentence of the epoch that lacks what the encoder reads, and name its file."""
        if self.check is None:
            return
        for sentence in self.sampler.unlabelled:
            try:
                self.check(sentence.words)
            except TreeparseError as error:
                raise DataError(str(error), source=sentence.name) from error
