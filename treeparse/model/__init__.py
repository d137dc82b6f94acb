"""The parser: sentences in, trees out; a scorer, its vocabularies and its settings, saved and loaded as one."""

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
