"""What a run reads, checked by its settings alone, before torch is loaded."""

from importlib.util import find_spec
from pathlib import Path

from treeparse.data.files import expand_paths
from treeparse.errors import TreeparseError
from treeparse.model.hub import check_local_model
from treeparse.nn.config import EncoderConfig
from treeparse.nn.transformer_config import TransformerConfig, no_adapters
from treeparse.training.config import TrainConfig


def check_inputs(config: TrainConfig) -> None:
    """Raise for files and models that do not exist, and for a library that is not installed."""
    for patterns in (config.data.train, config.data.dev, config.data.unlabelled):
        expand_paths([patterns] if isinstance(patterns, str) else patterns or [])
    if config.data.vectors is not None and not Path(config.data.vectors).exists():
        raise TreeparseError(f"There is no file {config.data.vectors}, which data.vectors names.")
    if config.init_from is not None:
        check_local_model(config.init_from)
    _check_libraries(config.model.encoder)


def _check_libraries(encoder: EncoderConfig) -> None:
    if isinstance(encoder, TransformerConfig) and encoder.lora_rank and find_spec("peft") is None:
        raise no_adapters(encoder, "No module named 'peft'")
