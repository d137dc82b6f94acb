"""The kinds of encoders by name. To add one, add a file here and a line in ``KINDS`` and ``ENCODERS``."""

from collections.abc import Mapping
from typing import Any

from treeparse.errors import TreeparseError
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
