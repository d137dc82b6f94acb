"""The parser: sentences in, trees out; a scorer, its vocabularies and its settings, saved and loaded as one."""

from typing import TYPE_CHECKING

from treeparse.lazy import names_on_demand

if TYPE_CHECKING:
    from treeparse.data.parses import Parse
    from treeparse.model.config import ParserConfig
    from treeparse.model.encoders.own import OwnEncoder, OwnEncoderConfig
    from treeparse.model.ensemble import Ensemble
    from treeparse.model.parser import Parser
    from treeparse.model.scorers.own import OwnScorer, OwnScorerConfig
    from treeparse.model.scorers.scorer import PartScores, ScorerOutput
    from treeparse.model.teacher import Teacher

__all__ = [
    "Ensemble",
    "OwnEncoder",
    "OwnEncoderConfig",
    "OwnScorer",
    "OwnScorerConfig",
    "Parse",
    "Parser",
    "ParserConfig",
    "PartScores",
    "ScorerOutput",
    "Teacher",
]


_MODULES = {
    "treeparse.data.parses": "Parse",
    "treeparse.model.config": "ParserConfig",
    "treeparse.model.encoders.own": "OwnEncoder OwnEncoderConfig",
    "treeparse.model.ensemble": "Ensemble",
    "treeparse.model.parser": "Parser",
    "treeparse.model.scorers.own": "OwnScorer OwnScorerConfig",
    "treeparse.model.scorers.scorer": "PartScores ScorerOutput",
    "treeparse.model.teacher": "Teacher",
}
__getattr__, __dir__ = names_on_demand(__name__, _MODULES)
