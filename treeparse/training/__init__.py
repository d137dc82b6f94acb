"""Training: settings, the loop, and runs that survive being killed."""

from typing import TYPE_CHECKING

from treeparse.lazy import names_on_demand

if TYPE_CHECKING:
    from treeparse.training.run import train
    from treeparse.training.settings.config import TrainConfig
    from treeparse.training.settings.reading import load_config

__all__ = [
    "TrainConfig",
    "load_config",
    "train",
]


_MODULES = {
    "treeparse.training.run": "train",
    "treeparse.training.settings.config": "TrainConfig",
    "treeparse.training.settings.reading": "load_config",
}
__getattr__, __dir__ = names_on_demand(__name__, _MODULES)
