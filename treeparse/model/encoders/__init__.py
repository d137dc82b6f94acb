"""The kinds of encoders by their names. Another is a file beside these, and a line in ``KINDS`` and ``ENCODERS``."""

from collections.abc import Mapping
from typing import Any

from treeparse.errors import TreeparseError
from treeparse.model.config import DEFAULT_ENCODER, ENCODERS
from treeparse.model.encoders.bilstm import BiLSTM
from treeparse.model.encoders.kind import EncoderKind
from treeparse.model.encoders.own import CustomEncoderKind
from treeparse.model.encoders.transformer import Transformer
from treeparse.nn.config import EncoderConfig

# By the ``type`` of their settings, as these in `ENCODERS`.
KINDS: Mapping[str, type[EncoderKind[Any]]] = {"bilstm": BiLSTM, "transformer": Transformer}


def encoder_kind(config: EncoderConfig) -> EncoderKind[Any]:
    """The encoder that the settings describe."""
    own: type[EncoderKind[Any]] = CustomEncoderKind
    for kind in [*KINDS.values(), own]:
        if isinstance(config, kind.settings):
            return kind(config)
    raise TreeparseError(f"{type(config).__name__} are not the settings of any encoder.")


def settings_class(data: Mapping[str, Any]) -> type[EncoderConfig] | None:
    """The class of the settings that plain data are of, by their ``class_path`` or ``type``; None for no type known."""
    if "class_path" in data:
        return CustomEncoderKind.settings
    name = data.get("type", DEFAULT_ENCODER)
    return ENCODERS.get(name) if isinstance(name, str) else None
