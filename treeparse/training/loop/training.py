"""What the epochs of a run need, and the arguments of Lightning's Trainer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from treeparse.data.batches.module import TreebankModule
from treeparse.model import Parser
from treeparse.sentence import Sentence
from treeparse.training.loop.module import ParserModule
from treeparse.training.loop.processes import Processes
from treeparse.training.settings.config import ResolvedConfig
from treeparse.training.settings.resolve import Workload
from treeparse.training.settings.trainer import trainer_arguments


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
    def parser(self) -> Parser:
        """The parser that learns."""
        return self.module.parser

    @property
    def train(self) -> Sequence[Sentence]:
        """The training sentences."""
        return self.data.train_data.sentences

    @property
    def trainer_options(self) -> dict[str, Any]:
        """The arguments that Lightning's Trainer needs for this run, with the objects that the settings name.

        The batches of an epoch are made when the trainer asks for its loader.
        """
        arguments = trainer_arguments(self.config.trainer)
        arguments["max_epochs"] = self.work.epochs
        arguments["check_val_every_n_epoch"] = self.config.optimization.dev_every
        if not self.work.dev_words:
            arguments["limit_val_batches"] = 0
        return arguments
