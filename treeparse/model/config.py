"""The settings that fix a parser's architecture."""

from dataclasses import dataclass, field

from treeparse.data.features.indexer import Indexer
from treeparse.errors import TreeparseError
from treeparse.model.encoders import default_encoder, encoder_kind
from treeparse.model.tagging import TagWeights
from treeparse.names import Decoder, TreeKind, decoder_named
from treeparse.nn import EncoderConfig
from treeparse.nn.config import LARGEST, check_at_least, check_at_most, check_rate
from treeparse.nn.size import ScorerSize
from treeparse.setting_fields import added_setting

TEMPERATURES = (1e-3, 1e3)  # the lowest and the highest


@dataclass(frozen=True)
class ParserConfig:
    """Everything that fixes a parser's architecture.

    Attributes:
        encoder: the encoder's settings, whose class says which encoder it is.
        arc_size: size of the vectors between which arcs are scored.
        label_size: size of the vectors between which labels are scored.
        dropout: dropout of these vectors, shared by the words of a sentence.
        single_root: whether exactly one word hangs from the root.
        trees: which trees there are: nonprojective, all; projective, those without crossing arcs.
        decoder: which labelled tree is the parse: best, the best one of these trees; nonprojective and projective, the
            best one of all trees or of those without crossing arcs, whichever these are; minimum_risk, the one of the
            highest expected LAS.
        tags: which tags are predicted beside the tree, and their weights in the loss.
        temperature: what all scores of arcs and log probabilities of labels are divided by: the distribution is
            proportional to the power ``1 / temperature`` of that which was trained. So the best trees, their labels and
            the order of all others stay as they are, but for the decoder minimum_risk; log probabilities, marginals,
            entropies, scores and samples do not. ``treeparse calibrate`` fits it to trees that were not trained on.
        label_temperature: what log probabilities of labels given their arcs are divided by instead, where the
            probabilities of a parse's labels are written; None: ``temperature``. Nothing else depends on it.
            ``treeparse calibrate`` fits it too.
    """

    encoder: EncoderConfig = field(default_factory=default_encoder)
    arc_size: int = 400
    label_size: int = 64
    dropout: float = 0.33
    single_root: bool = True
    trees: TreeKind = added_setting("nonprojective", before="nonprojective")
    decoder: Decoder = added_setting("best", before="nonprojective")
    tags: TagWeights = added_setting(TagWeights(), before=TagWeights())
    temperature: float = added_setting(1.0, before=1.0)
    label_temperature: float | None = added_setting(None, before=None)

    def __post_init__(self) -> None:
        for name in ("arc_size", "label_size"):
            check_at_least(name, getattr(self, name), 1)
            check_at_most(name, getattr(self, name), LARGEST)
        check_rate("dropout", self.dropout)
        _check_temperature("temperature", self.temperature)
        if self.label_temperature is not None:
            _check_temperature("label_temperature", self.label_temperature)
        object.__setattr__(self, "decoder", decoder_named(self.decoder))

    @property
    def label_power(self) -> float:
        """The power of P(label | arc), as the distribution has it, that written probabilities of labels are made of."""
        return 1.0 if self.label_temperature is None else self.temperature / self.label_temperature


def _check_temperature(name: str, value: float) -> None:
    lowest, highest = TEMPERATURES
    if not lowest <= value <= highest:
        raise TreeparseError(f"{name} is {value}, but must be from {lowest:g} to {highest:g}.")


def scorer_size(config: ParserConfig, indexer: Indexer | None = None) -> ScorerSize:
    """The size of the scorer that the config describes; without an indexer its least, whatever the vocabularies."""
    features, labels, tags = None, 1, 0
    if indexer is not None:
        features, labels, tags = indexer.features, len(indexer.labels), sum(map(len, indexer.tags.values()))
    return ScorerSize(
        config.encoder,
        lambda encoder: encoder_kind(encoder).size(features),
        lambda encoder: encoder_kind(encoder).smaller(),
        config.arc_size,
        config.label_size,
        labels,
        tags,
    )
