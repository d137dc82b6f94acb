"""Neural network modules: encoders of sentences, biaffine scorers of arcs and labels, scorers of tags."""

from treeparse.nn.biaffine import ArcBiaffine, LabelBiaffine, TagScorer
from treeparse.nn.bilstm import BiLSTMConfig, BiLSTMEncoder
from treeparse.nn.embedding import SharedDropout
from treeparse.nn.encoder_config import Encoder, EncoderConfig
from treeparse.nn.transformer import TransformerConfig, TransformerEncoder

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
