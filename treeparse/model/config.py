"""The settings that fix a parser's architecture."""

from dataclasses import dataclass, field, replace

from treeparse.core import TreeparseError
from treeparse.data.indexer import Indexer
from treeparse.data.vectors import WordVectors
from treeparse.nn import BiLSTMConfig
from treeparse.nn.config import LARGEST, check_at_least, check_at_most, check_rate
from treeparse.nn.size import SMALLEST, ScorerSize
from treeparse.trees.decoders import Decoder, TreeKind, decoder_named


@dataclass(frozen=True)
class ParserConfig:
    """Everything that fixes a parser's architecture.

    Attributes:
        encoder: the encoder's settings.
        arc_size: size of the vectors between which arcs are scored.
        label_size: size of the vectors between which labels are scored.
        dropout: dropout of these vectors, shared by the words of a sentence.
        single_root: whether exactly one word hangs from the root.
        trees: which trees there are: nonprojective, all; projective, those without crossing arcs.
        decoder: which labelled tree is the parse: best, the best one of these trees; nonprojective and projective, the
            best one of all trees or of those without crossing arcs, whichever these are; minimum_risk, the one of the
            highest expected LAS.
    """

    encoder: BiLSTMConfig = field(default_factory=BiLSTMConfig)
    arc_size: int = 400
    label_size: int = 64
    dropout: float = 0.25
    single_root: bool = True
    trees: TreeKind = "nonprojective"
    decoder: Decoder = "best"

    def __post_init__(self) -> None:
        for name in ("arc_size", "label_size"):
            check_at_least(name, getattr(self, name), 1)
            check_at_most(name, getattr(self, name), LARGEST)
        check_rate("dropout", self.dropout)
        object.__setattr__(self, "decoder", decoder_named(self.decoder))


def scorer_size(config: ParserConfig, indexer: Indexer | None = None) -> ScorerSize:
    """The size of the scorer that the config describes; without an indexer its least, whatever the vocabularies."""
    features, labels = (SMALLEST, 1) if indexer is None else (indexer.features.sizes(), len(indexer.labels))
    return ScorerSize(config.encoder, config.arc_size, config.label_size, features, labels)


def with_vector_size(encoder: BiLSTMConfig, vectors: WordVectors | None) -> BiLSTMConfig:
    """The encoder's settings for these pretrained vectors."""
    size = 0 if vectors is None else vectors.size
    if encoder.vector_size not in (0, size):
        given = "no pretrained vectors are given" if vectors is None else f"the pretrained vectors have size {size}"
        raise TreeparseError(
            f"encoder.vector_size is {encoder.vector_size}, but {given}: leave it 0, it is set by them."
        )
    return replace(encoder, vector_size=size)
