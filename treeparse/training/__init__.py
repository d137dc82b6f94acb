"""Training: settings, the loop, and runs that survive being killed.

``train`` is what ``treeparse train`` does. Other loops can train a parser, too; ``scripts/recipes`` has one of each::

    plain_loop.py        torch alone: Parser.build, Parser.collate, Parser.loss
    lightning_loop.py    a Trainer of one's own over the module and the batches of ``prepare``
    accelerate_loop.py   Accelerate, which wraps the parser for several devices
    transformers_loop.py the Trainer of transformers
"""

from typing import TYPE_CHECKING

from treeparse.lazy import names_on_demand

if TYPE_CHECKING:
    from treeparse.training.parser_module import Training
    from treeparse.training.reading import load_config
    from treeparse.training.run import prepare, train
    from treeparse.training.train_config import TrainConfig

__all__ = [
    "TrainConfig",
    "Training",
    "load_config",
    "prepare",
    "train",
]


_MODULES = {
    "treeparse.training.parser_module": "Training",
    "treeparse.training.run": "prepare train",
    "treeparse.training.train_config": "TrainConfig",
    "treeparse.training.reading": "load_config",
}
__getattr__, __dir__ = names_on_demand(__name__, _MODULES)
