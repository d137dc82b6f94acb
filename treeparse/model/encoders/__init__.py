"""The kinds of encoders. To add one, add a file here, a line in ``ENCODERS`` and one in ``KINDS``."""

from collections.abc import Mapping
from typing import Any

from treeparse.errors import TreeparseError
from treeparse.model.encoders.bilstm import BiLSTM
from treeparse.model.encoders.kind import EncoderKind
from treeparse.model.encoders.own import CustomEncoderKind
from treeparse.nn.config import EncoderConfig, TransformerConfig

# By the ``type`` of their settings, like `ENCODERS`; `encoder_kind` imports the transformer.
KINDS: Mapping[str, type[EncoderKind[Any]]] = {"bilstm": BiLSTM}


def encoder_kind(config: EncoderConfig) -> EncoderKind[Any]:
    """Return the kind of encoder that the settings describe."""
    if isinstance(config, TransformerConfig):
        # Other parsers do not need the library transformers.
        from treeparse.model.encoders.transformer import Transformer

        return Transformer(config)
    own: type[EncoderKind[Any]] = CustomEncoderKind
    for kind in [*KINDS.values(), own]:
        if isinstance(config, kind.settings):
            return kind(config)
    raise TreeparseError(f"The settings of an encoder must be of a known class, got {type(config).__name__}.")
