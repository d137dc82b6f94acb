"""The kinds of scorers by name. To add one, add a file here and a line in ``KINDS`` and ``SCORERS``."""

from collections.abc import Mapping

from treeparse.model.config import ParserConfig
from treeparse.model.scorers.biaffine import Biaffine
from treeparse.model.scorers.kind import ScorerKind
from treeparse.model.scorers.linear import Linear
from treeparse.model.scorers.own import CustomScorerKind

# By the ``type`` of their settings, like `SCORERS`.
KINDS: Mapping[str, type[ScorerKind]] = {"biaffine": Biaffine, "linear": Linear}


def scorer_kind(config: ParserConfig) -> ScorerKind:
    """Return the kind of scorer that the settings of a parser describe."""
    kinds = (*KINDS.values(), CustomScorerKind)
    return next(kind for kind in kinds if isinstance(config.scorer, kind.settings)).of(config)
