"""Training: settings, the loop, and runs that survive being killed."""

from treeparse.training.config import TrainConfig as TrainConfig
from treeparse.training.run import train as train
from treeparse.training.settings import load_config as load_config
