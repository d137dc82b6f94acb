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

_MODULES = {
    "treeparse.nn.biaffine": "ArcBiaffine LabelBiaffine TagScorer",
    "treeparse.nn.bilstm": "BiLSTMEncoder",
    "treeparse.nn.config": "BiLSTMConfig EncoderConfig TransformerConfig",
    "treeparse.nn.dropout": "SharedDropout",
    "treeparse.nn.encoder": "Encoder",
    "treeparse.nn.transformer": "TransformerEncoder",
}
__getattr__ = names_on_demand(__name__, _MODULES)
