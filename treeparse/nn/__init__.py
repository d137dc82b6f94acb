"""Neural network modules: encoders of sentences, biaffine scorers of arcs and labels, scorers of tags."""

from typing import TYPE_CHECKING

from treeparse.lazy import names_on_demand

if TYPE_CHECKING:
    from treeparse.nn.biaffine import ArcBiaffine as ArcBiaffine
    from treeparse.nn.biaffine import LabelBiaffine as LabelBiaffine
    from treeparse.nn.biaffine import TagScorer as TagScorer
    from treeparse.nn.bilstm import BiLSTMEncoder as BiLSTMEncoder
    from treeparse.nn.config import BiLSTMConfig as BiLSTMConfig
    from treeparse.nn.config import EncoderConfig as EncoderConfig
    from treeparse.nn.config import TransformerConfig as TransformerConfig
    from treeparse.nn.dropout import SharedDropout as SharedDropout
    from treeparse.nn.encoder import Encoder as Encoder
    from treeparse.nn.transformer import TransformerEncoder as TransformerEncoder

_HOMES = {
    "ArcBiaffine": "treeparse.nn.biaffine",
    "BiLSTMConfig": "treeparse.nn.config",
    "BiLSTMEncoder": "treeparse.nn.bilstm",
    "Encoder": "treeparse.nn.encoder",
    "EncoderConfig": "treeparse.nn.config",
    "LabelBiaffine": "treeparse.nn.biaffine",
    "SharedDropout": "treeparse.nn.dropout",
    "TagScorer": "treeparse.nn.biaffine",
    "TransformerConfig": "treeparse.nn.config",
    "TransformerEncoder": "treeparse.nn.transformer",
}

__getattr__ = names_on_demand(__name__, _HOMES)
