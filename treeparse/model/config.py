"""The settings that fix a parser's architecture."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Literal

from treeparse.errors import TreeparseError
from treeparse.names import Decoder, TreeKind, decoder_named
from treeparse.nn.config import LARGEST, BiLSTMConfig, EncoderConfig, check_at_least, check_at_most, check_rate
from treeparse.nn.transformer_config import TransformerConfig
from treeparse.setting_fields import added_setting

# The settings of the package's encoders, by their ``type``.
ENCODERS: Mapping[str, type[EncoderConfig]] = {"bilstm": BiLSTMConfig, "transformer": TransformerConfig}
DEFAULT_ENCODER = "bilstm"
TEMPERATURES = (1e-3, 1e3)  # the lowest and the highest


@dataclass(frozen=True)
class ScorerConfig:
    """The base of the settings of every scorer, which say which one it is: by ``type``, or by the path of a class."""


@dataclass(frozen=True)
class BiaffineConfig(ScorerConfig):
    """Biaffine scores of arcs and labels (Dozat and Manning 2017), of the parser's ``arc_size`` and ``label_size``.

    Attributes:
        type: names this kind of scorer.
    """

    type: Literal["biaffine"] = "biaffine"


# The settings of the package's scorers, by their ``type``.
SCORERS: Mapping[str, type[ScorerConfig]] = {"biaffine": BiaffineConfig}
DEFAULT_SCORER = "biaffine"


@dataclass(frozen=True)
class TagWeights:
    """Which columns of tags the parser predicts beside the tree: the weight of each in the loss, 0 for none.

    The loss of a column is the cross-entropy of its tags, the mean over the words whose tag is known, unlabelled text
    included; the dev loss has it, too.

    Attributes:
        upos: weight of UPOS in the loss; 0 for a parser that does not predict it. predict --tags writes what is
            predicted.
        xpos: likewise of XPOS.
        feats: likewise of FEATS; all features of a word are one tag.
    """

    upos: float = 0.0
    xpos: float = 0.0
    feats: float = 0.0

    def __post_init__(self) -> None:
        for column, weight in vars(self).items():
            if not 0 <= weight < math.inf:
                raise TreeparseError(f"tags.{column} is {weight}, but a weight is 0 or more, and finite.")

    def columns(self) -> dict[str, float]:
        """The columns that are predicted, with their weights."""
        weights = {field.name: float(getattr(self, field.name)) for field in fields(self)}
        return {column: weight for column, weight in weights.items() if weight}


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
        scorer: the scorer's settings, whose class says which scorer it is.
    """

    encoder: EncoderConfig = field(default_factory=ENCODERS[DEFAULT_ENCODER])
    arc_size: int = 400
    label_size: int = 64
    dropout: float = 0.33
    single_root: bool = True
    trees: TreeKind = added_setting("nonprojective", before="nonprojective")
    decoder: Decoder = added_setting("best", before="nonprojective")
    tags: TagWeights = added_setting(TagWeights(), before=TagWeights())
    temperature: float = added_setting(1.0, before=1.0)
    label_temperature: float | None = added_setting(None, before=None)
    scorer: ScorerConfig = added_setting(BiaffineConfig(), before=BiaffineConfig())

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
