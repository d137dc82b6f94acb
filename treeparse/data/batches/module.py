"""The training and dev data of a run as a LightningDataModule."""

from collections.abc import Callable, Sequence

from pytorch_lightning import LightningDataModule

from treeparse.data.batches.batching import BucketBatchSampler
from treeparse.data.batches.loading import Collate, Loader, StepDataset, batch_loader
from treeparse.data.batches.mixing import ALL_LABELLED, EpochSampler, TrainingMix
from treeparse.data.batches.steps import StepSampler
from treeparse.errors import DataError, TreeparseError
from treeparse.sentence import Sentence


class TreebankModule(LightningDataModule):
    """The steps of training, whose batches depend on ``seed`` and the epoch alone, not on workers or devices.

    Each of the trainer's devices gets its share of every step. The trainer must have
    ``reload_dataloaders_every_n_epochs=1``, because the loader sets an epoch's batches, and their number, when the
    trainer asks for it, and ``use_distributed_sampler=False``.

    Args:
        train: the training sentences.
        dev: the sentences of the dev set.
        collate: makes a batch of sentences and their indices; with workers it must pickle.
        batch_words: see `BucketBatchSampler`.
        batch_squared: see `BucketBatchSampler`.
        workers: number of processes that make batches.
        start_method: how these processes start.
        seed: seed of the order.
        mix: the training sentences and the unlabelled text of an epoch.
        check: raises for an unlabelled sentence that ``collate`` does not take.
        length: returns what a sentence counts for in the bounds of a batch.
        ahead: number of steps whose batches a thread makes in advance where there are no workers.
        accumulate: number of batches that a device computes in a step.
    """

    train_data: StepDataset
    dev_data: StepDataset
    workers: int
    start_method: str | None
    ahead: int

    def __init__(
        self,
        train: Sequence[Sentence],
        dev: Sequence[Sentence],
        collate: Collate,
        *,
        batch_words: int,
        batch_squared: int | None = None,
        workers: int = 0,
        start_method: str | None = None,
        seed: int = 0,
        mix: TrainingMix = ALL_LABELLED,
        check: Callable[[Sentence], None] | None = None,
        length: Callable[[Sentence], int] = len,
        ahead: int = 0,
        accumulate: int = 1,
    ) -> None:
        super().__init__()
        self.train_data, self.dev_data = StepDataset(train, collate), StepDataset(dev, collate)
        self.accumulate = accumulate
        self.workers, self.start_method, self.ahead = workers, start_method, ahead
        bounds = {"max_words": batch_words, "max_squared": batch_squared}
        self.sampler: EpochSampler = EpochSampler([*map(length, train)], **bounds, seed=seed, mix=mix, length=length)
        self.check = check
        self.dev_sampler: BucketBatchSampler = BucketBatchSampler([*map(length, dev)], **bounds)
        self._train_loader: Loader | None = None

    def train_dataloader(self) -> Loader:
        """Return the loader of the trainer's current epoch: the same object every time, so that its workers stay."""
        if self.trainer is not None:
            self.sampler.set_epoch(self.trainer.current_epoch)
        self._check_unlabelled()
        if self._train_loader is None:
            self._train_loader = batch_loader(
                self.train_data,
                self._divided(self.sampler, self.accumulate),
                workers=self.workers,
                start_method=self.start_method,
                ahead=self.ahead,
            )
        return self._train_loader

    def val_dataloader(self) -> Loader:
        return batch_loader(self.dev_data, self._divided(self.dev_sampler), ahead=self.ahead)

    def _divided(self, sampler: EpochSampler | BucketBatchSampler, accumulate: int = 1) -> StepSampler:
        """Return the share of this device in the sampler's batches."""
        if self.trainer is None:
            return StepSampler(sampler, accumulate=accumulate)
        devices, device = self.trainer.world_size, self.trainer.global_rank
        return StepSampler(sampler, accumulate=accumulate, devices=devices, device=device)

    def _check_unlabelled(self) -> None:
        """Raise for the first unlabelled sentence of the epoch that lacks what the encoder reads, and name its file."""
        if self.check is None:
            return
        for sentence in self.sampler.unlabelled:
            try:
                self.check(sentence.words)
            except TreeparseError as error:
                raise DataError(str(error), source=sentence.name) from error
