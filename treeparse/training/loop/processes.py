"""The processes that train together, one on each device: who is first, and what they wait for.

Lightning starts them, or torchrun or Slurm did. All run the same command. The first one writes the run's files; the
others only compute.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import torch.distributed as dist
from lightning_fabric.plugins.environments.lightning import LightningEnvironment

from treeparse.errors import TreeparseError
from treeparse.training.settings.trainer import TrainerSettings, new_trainer, on_one_device, trainer_arguments

T = TypeVar("T")


@dataclass(frozen=True)
class Processes:
    """The processes of a run, as one of them sees them.

    Attributes:
        rank: the number of this process, from 0.
        count: the number of all.
    """

    rank: int = 0
    count: int = 1

    @property
    def is_first(self) -> bool:
        """Whether this process writes the files of the run."""
        return self.rank == 0

    def after_first(self, function: Callable[[], T]) -> T:
        """Call a function in the first process, then in the others, which find the files that it wrote."""
        if not self.is_first:
            self.wait()
        result = function()
        if self.is_first:
            self.wait()
        return result

    def in_first(self, function: Callable[[], object]) -> None:
        """Call a function in the first process alone, while the others wait."""
        if self.is_first:
            function()
        self.wait()

    def wait(self) -> None:
        """Wait for all processes. Those that Lightning starts wait for the first one without this, before it fits."""
        if self.count > 1 and dist.is_initialized():
            dist.barrier()


ALONE = Processes()


def join(settings: TrainerSettings) -> Processes:
    """Join the processes of a run; what torchrun or Slurm started can talk from now on.

    Raises:
        TreeparseError: several machines, but neither torchrun nor Slurm started the process.
    """
    if on_one_device(settings):
        return ALONE
    names = "accelerator", "devices", "num_nodes", "strategy"
    options = {name: value for name, value in trainer_arguments(settings).items() if name in names}
    trainer = new_trainer(**options, logger=False, enable_checkpointing=False)
    environment: Any = getattr(trainer.strategy, "cluster_environment", None)
    if not isinstance(environment, LightningEnvironment):
        trainer.strategy.setup_environment()
    elif trainer.num_nodes > 1:
        raise TreeparseError(
            f"trainer.num_nodes is {trainer.num_nodes}, but this process does not know the other machines: start the "
            "same command on each by torchrun or by Slurm's srun, or set trainer.num_nodes to 1."
        )
    return Processes(trainer.global_rank, trainer.world_size)
