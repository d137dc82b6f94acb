"""The parser: sentences in, trees out; a scorer, its vocabularies and its settings, saved and loaded as one."""

from treeparse.data.parses import Parse as Parse
from treeparse.model.config import ParserConfig as ParserConfig
from treeparse.model.encoders.own import OwnEncoder as OwnEncoder
from treeparse.model.encoders.own import OwnEncoderConfig as OwnEncoderConfig
from treeparse.model.ensemble import Ensemble as Ensemble
from treeparse.model.parser import Parser as Parser
from treeparse.model.teacher import Teacher as Teacher
