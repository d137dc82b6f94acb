"""Neural network modules: encoders of sentences, biaffine scorers of arcs and labels, scorers of tags."""

from typing import TYPE_CHECKING

from treeparse.lazy import names_on_demand
from treeparse.nn.biaffine import ArcBiaffine, LabelBiaffine, TagScorer
from treeparse.nn.bilstm import BiLSTMEncoder
from treeparse.nn.config import BiLSTMConfig, EncoderConfig, TransformerConfig
from treeparse.nn.dropout import SharedDropout
from treeparse.nn.encoder import Encoder

if TYPE_CHECKING:
    from treeparse.nn.transformer import TransformerEncoder

__all__ = [
    "ArcBiaffine",
    "BiLSTMConfig",
    "BiLSTMEncoder",
    "Encoder",
    "EncoderConfig",
    "LabelBiaffine",
    "SharedDropout",
    "TagScorer",
    "TransformerConfig",
    "TransformerEncoder",
]
# Other encoders do not need the library transformers.
__getattr__, __dir__ = names_on_demand(__name__, {"treeparse.nn.transformer": "TransformerEncoder"})
