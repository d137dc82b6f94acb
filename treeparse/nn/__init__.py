"""Neural network modules: encoders of sentences, biaffine scorers of arcs and labels, scorers of tags."""

from typing import TYPE_CHECKING

from treeparse.lazy import names_on_demand

if TYPE_CHECKING:
    from treeparse.nn.biaffine import ArcBiaffine, LabelBiaffine, TagScorer
    from treeparse.nn.bilstm import BiLSTMEncoder
    from treeparse.nn.config import BiLSTMConfig, EncoderConfig, TransformerConfig
    from treeparse.nn.dropout import SharedDropout
    from treeparse.nn.encoder import Encoder
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


_MODULES = {
    "treeparse.nn.biaffine": "ArcBiaffine LabelBiaffine TagScorer",
    "treeparse.nn.bilstm": "BiLSTMEncoder",
    "treeparse.nn.config": "BiLSTMConfig EncoderConfig TransformerConfig",
    "treeparse.nn.dropout": "SharedDropout",
    "treeparse.nn.encoder": "Encoder",
    "treeparse.nn.transformer": "TransformerEncoder",
}
__getattr__, __dir__ = names_on_demand(__name__, _MODULES)
