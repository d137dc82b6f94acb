"""The parser: sentences in, trees out; a scorer, its vocabularies and its settings, saved and loaded as one."""

from typing import TYPE_CHECKING

from treeparse.lazy import names_on_demand

if TYPE_CHECKING:
    from treeparse.data.parses import Parse as Parse
    from treeparse.model.config import ParserConfig as ParserConfig
    from treeparse.model.encoders.own import OwnEncoder as OwnEncoder
    from treeparse.model.encoders.own import OwnEncoderConfig as OwnEncoderConfig
    from treeparse.model.ensemble import Ensemble as Ensemble
    from treeparse.model.parser import Parser as Parser
    from treeparse.model.scorers.own import OwnScorer as OwnScorer
    from treeparse.model.scorers.own import OwnScorerConfig as OwnScorerConfig
    from treeparse.model.scorers.scorer import ScorerOutput as ScorerOutput
    from treeparse.model.teacher import Teacher as Teacher

_MODULES = {
    "treeparse.data.parses": "Parse",
    "treeparse.model.config": "ParserConfig",
    "treeparse.model.encoders.own": "OwnEncoder OwnEncoderConfig",
    "treeparse.model.ensemble": "Ensemble",
    "treeparse.model.parser": "Parser",
    "treeparse.model.scorers.own": "OwnScorer OwnScorerConfig",
    "treeparse.model.scorers.scorer": "ScorerOutput",
    "treeparse.model.teacher": "Teacher",
}
__getattr__ = names_on_demand(__name__, _MODULES)
