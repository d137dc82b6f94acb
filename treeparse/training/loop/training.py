"""What the epochs of a run need, and the arguments of Lightning's Trainer."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from treeparse.data.batches.module import TreebankModule
from treeparse.training.loop.module import ParserModule
from treeparse.training.loop.processes import Processes, device_options
from treeparse.training.settings.config import ResolvedConfig
from treeparse.training.settings.resolve import Workload


@dataclass(frozen=True)
class Training:
    """Everything that the epochs of a run need."""

    config: ResolvedConfig
    work: Workload
    module: ParserModule
    data: TreebankModule
    identity: Mapping[str, Any]
    processes: Processes

    @property
    def trainer_options(self) -> dict[str, Any]:
        """The arguments that Lightning's Trainer needs for this run: devices, epochs and precision.

        The batches of an epoch are made when the trainer asks for its loader.
        """
        trainer = self.config.trainer
        return {
            **device_options(trainer),
            # With 64-true the weights are float64 from the start; Lightning would convert batches, too.
            "precision": "32-true" if trainer.precision == "64-true" else trainer.precision,
            "max_epochs": self.work.epochs,
            "accumulate_grad_batches": trainer.accumulate,
            "gradient_clip_val": self.config.optimization.clip_norm,
            "check_val_every_n_epoch": self.config.optimization.dev_every,
            "limit_val_batches": 1.0 if self.work.dev_words else 0,
            "num_sanity_val_steps": 0,
            "reload_dataloaders_every_n_epochs": 1,
        }
