"""The kinds of encoders by their names. Another one is a file beside these, and a line in ``KINDS``."""

from collections.abc import Mapping
from typing import Any

from treeparse.errors import TreeparseError
from treeparse.model.encoders.bilstm import BiLSTM
from treeparse.model.encoders.kind import EncoderKind
from treeparse.model.encoders.own import Own
from treeparse.model.encoders.transformer import Transformer
from treeparse.nn import EncoderConfig

# By the ``type`` of their settings.
KINDS: Mapping[str, type[EncoderKind[Any]]] = {"bilstm": BiLSTM, "transformer": Transformer}
DEFAULT = "bilstm"


def encoder_kind(config: EncoderConfig) -> EncoderKind[Any]:
    """The encoder that the settings describe."""
    own: type[EncoderKind[Any]] = Own
    for kind in [*KINDS.values(), own]:
        if isinstance(config, kind.settings):
            return kind(config)
    raise TreeparseError(f"{type(config).__name__} are not the settings of any encoder.")


def settings_class(data: Mapping[str, Any]) -> type[EncoderConfig] | None:
    """The class of the settings that plain data are of, by their ``class_path`` or ``type``; None for no type known."""
    if "class_path" in data:
        return Own.settings
    name = data.get("type", DEFAULT)
    return KINDS[name].settings if isinstance(name, str) and name in KINDS else None


def default_encoder() -> EncoderConfig:
    """The settings of the encoder that a config has which names none."""
    return KINDS[DEFAULT].settings()
