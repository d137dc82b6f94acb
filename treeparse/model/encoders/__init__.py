"""The kinds of encoders by their names. Another is a file beside these, and a line in ``KINDS`` and ``ENCODERS``."""

from collections.abc import Mapping
from typing import Any

from treeparse.data.features.indexer import Indexer
from treeparse.errors import TreeparseError
from treeparse.model.config import DEFAULT_ENCODER, ENCODERS, ParserConfig
from treeparse.model.encoders.bilstm import BiLSTM
from treeparse.model.encoders.kind import EncoderKind
from treeparse.model.encoders.own import Own
from treeparse.model.encoders.transformer import Transformer
from treeparse.nn.config import EncoderConfig
from treeparse.nn.size import ScorerSize

# By the ``type`` of their settings, as these in `ENCODERS`.
KINDS: Mapping[str, type[EncoderKind[Any]]] = {"bilstm": BiLSTM, "transformer": Transformer}


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
    name = data.get("type", DEFAULT_ENCODER)
    return ENCODERS.get(name) if isinstance(name, str) else None


def scorer_size(config: ParserConfig, indexer: Indexer | None = None) -> ScorerSize:
    """The size of the scorer that the config describes; without an indexer its least, whatever the vocabularies."""
    features, labels, tags = None, 1, 0
    if indexer is not None:
        features, labels, tags = indexer.features, len(indexer.labels), sum(map(len, indexer.tags.values()))
    return ScorerSize(
        config.encoder,
        lambda encoder: encoder_kind(encoder).size(features),
        lambda encoder: encoder_kind(encoder).smaller(),
        config.arc_size,
        config.label_size,
        labels,
        tags,
    )
