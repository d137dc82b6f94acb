"""Encoders and scorers: from batches to the scores of arcs and labels."""

from .biaffine import ArcBiaffine as ArcBiaffine
from .biaffine import LabelBiaffine as LabelBiaffine
from .bilstm import BiLSTMEncoder as BiLSTMEncoder
from .config import BiLSTMConfig as BiLSTMConfig
from .config import EncoderConfig as EncoderConfig
from .dropout import SharedDropout as SharedDropout
from .encoder import Encoder as Encoder
from .scorer import BiaffineScorer as BiaffineScorer
from .scorer import BiaffineScores as BiaffineScores
from .tags import TagScorer as TagScorer
from .transformer import TransformerEncoder as TransformerEncoder
from .transformer_config import TransformerConfig as TransformerConfig
