"""The parser: sentences in, trees out; a scorer, its vocabularies and its settings, saved and loaded as one."""

from treeparse.data.parses import Parse
from treeparse.model.ensemble import Ensemble, Teacher
from treeparse.model.inference.tree_request import TreeRequest
from treeparse.model.parser import Parser
from treeparse.model.parser_config import ParserConfig, ScorerConfig
from treeparse.model.scorer import EncoderScorer, PartScores, ScorerOutput

__all__ = [
    "EncoderScorer",
    "Ensemble",
    "Parse",
    "Parser",
    "ParserConfig",
    "PartScores",
    "ScorerConfig",
    "ScorerOutput",
    "Teacher",
    "TreeRequest",
]
