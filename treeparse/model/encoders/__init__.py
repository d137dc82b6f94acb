"""The kinds of encoders by name. To add one, add a file here and a line in ``KINDS`` and ``ENCODERS``."""

from collections.abc import Mapping
from typing import Any

from treeparse.errors import TreeparseError
from treeparse.model.config import DEFAULT_ENCODER, ENCODERS
from treeparse.model.encoders.bilstm import BiLSTM
from treeparse.model.encoders.kind import EncoderKind
from treeparse.model.encoders.own import CustomEncoderKind
from treeparse.model.encoders.transformer import Transformer
from treeparse.nn.config import EncoderConfig

# By the ``type`` of their settings, like `ENCODERS`.
KINDS: Mapping[str, type[EncoderKind[Any]]] = {"bilstm": BiLSTM, "transformer": Transformer}


def encoder_kind(config: EncoderConfig) -> EncoderKind[Any]:
    """Return the kind of encoder that the settings describe."""
    own: type[EncoderKind[Any]] = CustomEncoderKind
    for kind in [*KINDS.values(), own]:
        if isinstance(config, kind.settings):
            return kind(config)
    raise TreeparseError(f"The settings of an encoder must be of a known class, got {type(config).__name__}.")


def settings_class(data: Mapping[str, Any]) -> type[EncoderConfig] | None:
    """Return the class of an encoder's settings, by their ``class_path`` or ``type``; None for an unknown type."""
    if "class_path" in data:
        return CustomEncoderKind.settings
    name = data.get("type", DEFAULT_ENCODER)
    return ENCODERS.get(name) if isinstance(name, str) else None
