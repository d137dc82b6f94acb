"""The arguments of Lightning's Trainer as settings, their defaults here, and the processes that they start."""

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

import pytorch_lightning as pl
import torch
import torch.distributed as dist
from jsonargparse import ArgumentParser, Namespace
from lightning_fabric.plugins.environments.lightning import LightningEnvironment
from lightning_fabric.utilities.exceptions import MisconfigurationException

from treeparse.batch import pick_device
from treeparse.errors import TreeparseError

TrainerSettings = Mapping[str, Any]
"""Arguments of the Trainer as plain data, where they differ from the defaults."""

# The batches of a run rely on these.
FIXED = {"use_distributed_sampler": False, "reload_dataloaders_every_n_epochs": 1}
DEFAULTS = {"devices": 1, "gradient_clip_val": 5.0, "num_sanity_val_steps": 0, "log_every_n_steps": 1}
SHOWN = ("accelerator", "devices", "precision", "gradient_clip_val")  # in every config file
# What a run's outcome depends on, besides its batches, the epochs and the number of batches of a step.
BINDING = (
    *("precision", "gradient_clip_val", "gradient_clip_algorithm", "max_steps", "overfit_batches"),
    *("limit_train_batches", "val_check_interval"),
)
FIND_UNUSED = "ddp_find_unused_parameters_true"  # a batch may lack a term of the loss, whose weights it leaves unused
T = TypeVar("T")


def add_trainer_arguments(parser: ArgumentParser) -> None:
    """Declare all arguments of the Trainer but those that are fixed."""
    parser.add_class_arguments(pl.Trainer, "trainer", instantiate=False, skip={*FIXED})
    parser.set_defaults({f"trainer.{name}": value for name, value in DEFAULTS.items()})


def trainer_settings(values: Namespace) -> dict[str, Any]:
    """Return the settings among all parsed arguments of the Trainer: what differs from the defaults, and `SHOWN`."""
    usual, chosen = _parser().get_defaults().trainer.as_dict(), values.as_dict()
    return {name: value for name, value in chosen.items() if name in SHOWN or value != usual[name]}


def trainer_arguments(settings: TrainerSettings) -> dict[str, Any]:
    """Return arguments for the Trainer, with the loggers, callbacks and so on that the settings name."""
    parser = _parser()
    # A copy, because jsonargparse changes nested settings in place.
    values = parser.instantiate(parser.parse_object({"trainer": deepcopy(dict(settings))})).trainer.as_dict()
    arguments = {name: values[name] for name in {**DEFAULTS, **settings}} | FIXED
    device = training_device(settings)
    arguments["accelerator"] = device.type
    if on_one_device(settings):
        arguments["devices"] = 1 if device.index is None else [device.index]
    else:
        arguments.setdefault("strategy", FIND_UNUSED)
    # With 64-true the weights are float64 from the start; Lightning would convert batches, too.
    if settings.get("precision") == "64-true":
        arguments["precision"] = "32-true"
    return arguments


def new_trainer(**arguments: Any) -> pl.Trainer:
    """Return the Trainer of these arguments; raise for those that it does not take."""
    try:
        return pl.Trainer(**arguments)
    except (MisconfigurationException, ValueError) as error:
        raise TreeparseError(f"Lightning's Trainer does not take these arguments: {error}") from error


def training_device(settings: TrainerSettings) -> torch.device:
    """Return the kind of device that trains, and its index if one is named.

    Raises:
        TreeparseError: no such device exists on this machine, or it cannot compute in float64.
    """
    name, devices = settings.get("accelerator", "auto"), settings.get("devices", 1)
    name = "cuda" if name == "gpu" else name
    return pick_device(f"{name}:{devices[0]}" if isinstance(devices, list) and len(devices) == 1 else name)


def on_one_device(settings: TrainerSettings) -> bool:
    """Return whether a single process trains."""
    devices = settings.get("devices", 1)
    count = len(devices) if isinstance(devices, list) else devices
    return settings.get("num_nodes", 1) == 1 and count in (1, "1")


@cache
def _parser() -> ArgumentParser:
    parser = ArgumentParser(exit_on_error=False, add_help=False)
    add_trainer_arguments(parser)
    return parser


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
