"""`ParserConfig`: the settings that define a parser's architecture and its distribution."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Literal

from treeparse.errors import TreeparseError
from treeparse.linear import templates
from treeparse.names import Decoder, TreeKind, decoder_named
from treeparse.nn.config import BiLSTMConfig, EncoderConfig, TransformerConfig, check_counts, check_rates

# The settings of the package's encoders, by their ``type``.
ENCODERS: Mapping[str, type[EncoderConfig]] = {"bilstm": BiLSTMConfig, "transformer": TransformerConfig}
DEFAULT_ENCODER = "bilstm"
# The decoders that search among trees that score arcs alone, by the trees that score more.
OTHER_TREES: Mapping[TreeKind, tuple[Decoder, ...]] = {
    "siblings": ("nonprojective",),
    "second_order": ("nonprojective",),
    "nonprojective_siblings": ("projective",),
}
# The nodes that the feature templates of linear models may read, by kind.
ROLES: Mapping[str, str] = {"arcs": "hdb", "siblings": "hds", "grandparents": "hdg", "labels": "hdb"}
MOST_BITS = 30
TEMPERATURES = (1e-3, 1e3)  # lowest and highest


@dataclass(frozen=True)
class ScorerConfig:
    """The base of every scorer's settings. They name the scorer by ``type`` or by the path of a class."""


@dataclass(frozen=True)
class BiaffineConfig(ScorerConfig):
    """Biaffine scores of arcs and labels (Dozat and Manning 2017), and trilinear scores of parts of three words.

    The parser's ``arc_size``, ``label_size`` and ``part_size`` are the sizes of the vectors.

    Attributes:
        type: names this kind of scorer.
    """

    type: Literal["biaffine"] = "biaffine"


@dataclass(frozen=True)
class LinearConfig(ScorerConfig):
    """Sums of the weights of hashed features (McDonald et al. 2005), without an encoder; ``learning`` trains them.

    A feature template such as "h.form d.upos distance" names attributes of the head (h), the dependent (d), for
    siblings the sibling (s), for grandparents the head's head (g), with offsets such as h+1.upos. b.upos makes one
    feature of every distinct tag between head and dependent. Attributes are form, lower, prefix, suffix, shape, upos,
    xpos, feats, and feats.Case, feats.Number, ... The direction of the arc is in every feature.

    Attributes:
        type: names this kind of scorer.
        arcs: the feature templates of arcs.
        siblings: the templates of pairs of siblings, for trees that score them.
        grandparents: the templates of heads of heads, for trees that score them.
        labels: the templates of labels.
        attributes: the path of a function that maps a sentence to further attributes by name, each a list of strings;
            null for none.
        bits: the weights of all parts are 2 to this power.
        label_bits: the weights of each label are 2 to this power.
    """

    type: Literal["linear"] = "linear"
    arcs: tuple[str, ...] = templates.ARCS
    siblings: tuple[str, ...] = templates.SIBLINGS
    grandparents: tuple[str, ...] = templates.GRANDPARENTS
    labels: tuple[str, ...] = templates.LABELS
    attributes: str | None = None
    bits: int = 22
    label_bits: int = 16

    def __post_init__(self) -> None:
        for name in ("bits", "label_bits"):
            if not 1 <= getattr(self, name) <= MOST_BITS:
                raise TreeparseError(f"scorer.{name} must be from 1 to {MOST_BITS}, got {getattr(self, name)}.")
        for kind in ROLES:
            self.read(kind)

    def read(self, kind: str) -> tuple[templates.Template, ...]:
        """Return the feature templates of a kind of part or of labels; raise for a template that cannot be read."""
        try:
            return templates.read_templates(getattr(self, kind), ROLES[kind])
        except TreeparseError as error:
            raise TreeparseError(f"scorer.{kind}: {error}") from error


# The settings of the package's scorers, by their ``type``.
SCORERS: Mapping[str, type[ScorerConfig]] = {"biaffine": BiaffineConfig, "linear": LinearConfig}
DEFAULT_SCORER = "biaffine"


@dataclass(frozen=True)
class TagWeights:
    """The columns of tags that the parser predicts with the tree: the weight of each in the loss, 0 for none.

    The loss of a column is the mean cross-entropy over the words whose tag is known, in unlabelled text too. It is part
    of the dev loss.

    Attributes:
        upos: weight of UPOS in the loss; 0 for a parser that does not predict it. predict --tags writes the predicted
            tags.
        xpos: weight of XPOS in the loss.
        feats: weight of FEATS in the loss; all features of a word are one tag.
    """

    upos: float = 0.0
    xpos: float = 0.0
    feats: float = 0.0

    def __post_init__(self) -> None:
        for column, weight in vars(self).items():
            if not 0 <= weight < math.inf:
                raise TreeparseError(f"tags.{column} must be 0 or more and finite, got {weight}.")

    def columns(self) -> dict[str, float]:
        """The predicted columns and their weights."""
        weights = {field.name: float(getattr(self, field.name)) for field in fields(self)}
        return {column: weight for column, weight in weights.items() if weight}


@dataclass(frozen=True)
class ParserConfig:
    """The settings that define a parser's architecture and its distribution.

    Attributes:
        encoder: the encoder's settings; their class names the encoder.
        arc_size: size of the vectors of heads and dependents that score arcs.
        label_size: size of the vectors of heads and dependents that score labels.
        part_size: size of the three vectors that score a part of three words, for trees that have such parts.
        prune_below: for trees that have such parts: arcs whose probability by the scores of arcs alone is lower than
            this are impossible, but for known heads and for the best tree by these scores, which makes parsing and
            training faster. 0 prunes no arc. Ensembles do not prune.
        dropout: dropout of all these vectors, shared by the words of a sentence.
        single_root: whether exactly one word depends on the root.
        trees: the trees of the distribution and the parts that they score. nonprojective: all trees, by their arcs;
            projective: the trees without crossing arcs, by their arcs; siblings: the same trees, by arcs and pairs of
            neighbouring dependents of a head; second_order: by arcs, such pairs, and the heads of heads;
            nonprojective_siblings: all trees, by arcs and such pairs, which have best trees but no probabilities.
        decoder: chooses the parse: best, the best labelled tree of the distribution; arcs_first, the best tree without
            labels, whose arcs then get their best labels, which is faster; nonprojective, the best of all
            trees; projective, the best tree without crossing arcs; minimum_risk, the tree of the highest expected LAS.
        tags: the tags that are predicted with the tree, and their weights in the loss.
        temperature: divides all arc scores and log probabilities of labels: the distribution is proportional to the
            trained one to the power ``1 / temperature``. It keeps the order of the trees, so that it changes parses
            with the decoder minimum_risk alone; it changes log probabilities, marginals, entropies, scores and samples.
            ``treeparse calibrate`` fits it to trees that the parser was not trained on.
        label_temperature: divides log P(label | arc) instead of ``temperature`` in the written probabilities of labels,
            and changes nothing else; None for ``temperature``. ``treeparse calibrate`` fits it too.
        scorer: the scorer's settings; their class names the scorer.
    """

    encoder: EncoderConfig = field(default_factory=ENCODERS[DEFAULT_ENCODER])
    arc_size: int = 400
    label_size: int = 64
    dropout: float = 0.33
    single_root: bool = True
    trees: TreeKind = "nonprojective"
    decoder: Decoder = "best"
    tags: TagWeights = field(default_factory=TagWeights)
    temperature: float = 1.0
    label_temperature: float | None = None
    scorer: ScorerConfig = field(default_factory=BiaffineConfig)
    part_size: int = 64
    prune_below: float = 0.0

    def __post_init__(self) -> None:
        check_counts(self, "arc_size", "label_size", "part_size", section="")
        check_rates(self, "dropout", section="")
        _check_temperature("temperature", self.temperature)
        if self.label_temperature is not None:
            _check_temperature("label_temperature", self.label_temperature)
        self._check_pruning()
        object.__setattr__(self, "decoder", decoder_named(self.decoder))
        if self.decoder in OTHER_TREES.get(self.trees, ()):
            raise TreeparseError(
                f"The decoder {self.decoder} searches among trees that score arcs alone, but trees {self.trees} score "
                "more: use the decoder best, arcs_first or minimum_risk."
            )

    def _check_pruning(self) -> None:
        if not 0 <= self.prune_below < 1:
            raise TreeparseError(f"prune_below must be from 0 up to, but not including, 1, got {self.prune_below}.")
        if self.prune_below and self.trees not in OTHER_TREES:
            raise TreeparseError(
                "prune_below is for trees that score more than arcs: siblings, second_order and "
                f"nonprojective_siblings, not {self.trees}. Set it to 0."
            )
        if self.prune_below and isinstance(self.scorer, LinearConfig):
            raise TreeparseError(
                "prune_below needs scores of arcs that are log weights, and the linear scorer may learn others: "
                "set it to 0."
            )

    @property
    def label_power(self) -> float:
        """The power to which P(label | arc) of the distribution is raised for written probabilities of labels."""
        return 1.0 if self.label_temperature is None else self.temperature / self.label_temperature


def _check_temperature(name: str, value: float) -> None:
    lowest, highest = TEMPERATURES
    if not lowest <= value <= highest:
        raise TreeparseError(f"{name} must be from {lowest:g} to {highest:g}, got {value}.")
