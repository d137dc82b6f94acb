"""The kinds of scorers by name. To add one, add a file here and a line in ``KINDS`` and ``SCORERS``."""

from collections.abc import Mapping
from typing import Any

from treeparse.model.config import DEFAULT_SCORER, SCORERS, ParserConfig, ScorerConfig
from treeparse.model.scorers.biaffine import Biaffine
from treeparse.model.scorers.kind import ScorerKind
from treeparse.model.scorers.own import CustomScorerKind

# By the ``type`` of their settings, like `SCORERS`.
KINDS: Mapping[str, type[ScorerKind]] = {"biaffine": Biaffine}


def scorer_kind(config: ParserConfig) -> ScorerKind:
    """Return the kind of scorer that the settings of a parser describe."""
    kinds = (*KINDS.values(), CustomScorerKind)
    return next(kind for kind in kinds if isinstance(config.scorer, kind.settings)).of(config)


def settings_class(data: Mapping[str, Any]) -> type[ScorerConfig] | None:
    """Return the class of a scorer's settings, by their ``class_path`` or ``type``; None for an unknown type."""
    if "class_path" in data:
        return CustomScorerKind.settings
    name = data.get("type", DEFAULT_SCORER)
    return SCORERS.get(name) if isinstance(name, str) else None
