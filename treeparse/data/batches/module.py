"""The training and dev data of a run as a LightningDataModule."""

from collections.abc import Callable, Sequence

from pytorch_lightning import LightningDataModule

from treeparse.data.batches.batching import BucketBatchSampler
from treeparse.data.batches.loading import BatchDataset, Collate, Loader, batch_loader
from treeparse.data.batches.mixing import PLAIN, EpochSampler, Mixture
from treeparse.errors import DataError, TreeparseError
from treeparse.sentence import Sentence


class TreebankModule(LightningDataModule):
    """Batches of like length; those of an epoch depend on ``seed`` and the epoch alone, not on the workers.

    ``collate`` makes a batch of sentences and their places; with workers it must pickle. ``mixture`` says which of the
    training sentences an epoch has, and what unlabelled text besides; ``check`` raises for a sentence of it that
    ``collate`` would not take; ``length`` is what a sentence counts for in the bounds of a batch; without workers a
    thread makes ``ahead`` batches ahead. The trainer must be made with ``reload_dataloaders_every_n_epochs=1``: an
    epoch's batches, and their number, are set when it asks for the loader.
    """

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
        mixture: Mixture = PLAIN,
        check: Callable[[Sentence], None] | None = None,
        length: Callable[[Sentence], int] = len,
        ahead: int = 0,
    ) -> None:
        super().__init__()
        self.train_data, self.dev_data = BatchDataset(train, collate), BatchDataset(dev, collate)
        self.workers, self.start_method, self.ahead = workers, start_method, ahead
        bounds = {"max_words": batch_words, "max_squared": batch_squared}
        self.sampler = EpochSampler([*map(length, train)], **bounds, seed=seed, mixture=mixture, length=length)
        self.check = check
        self.dev_sampler = BucketBatchSampler([*map(length, dev)], **bounds)
        self._train_loader: Loader | None = None

    def train_dataloader(self) -> Loader:
        """The loader of the trainer's current epoch; the same object every time, so that its workers stay."""
        if self.trainer is not None:
            self.sampler.set_epoch(self.trainer.current_epoch)
        self._check_unlabelled()
        if self._train_loader is None:
            self._train_loader = batch_loader(
                self.train_data,
                self.sampler,
                workers=self.workers,
                start_method=self.start_method,
                ahead=self.ahead,
            )
        return self._train_loader

    def val_dataloader(self) -> Loader:
        return batch_loader(self.dev_data, self.dev_sampler, ahead=self.ahead)

    def _check_unlabelled(self) -> None:
        """Raise for the first unlabelled sentence of the epoch that lacks what the encoder reads, with its place."""
        if self.check is None:
            return
        for sentence in self.sampler.unlabelled:
            try:
                self.check(sentence.words)
            except TreeparseError as error:
                raise DataError(str(error), source=sentence.name) from error
