"""`ParserConfig`: the settings that define a parser's architecture and its distribution."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Self

from treeparse import feature_templates
from treeparse.data.columns import TREEBANK
from treeparse.data.features.indexer import Indexer, has_tags
from treeparse.data.features.vector_files import WordVectors
from treeparse.data.features.words import Features
from treeparse.errors import TreeparseError
from treeparse.model.biaffine_scorer import BiaffineScorer
from treeparse.model.linear_scorer import LinearScorer
from treeparse.model.scorer import Scorer
from treeparse.names import Auto, Decoder, decoder_named
from treeparse.nn import BiLSTMConfig, EncoderConfig
from treeparse.nn.encoder_config import Learner, ReaderConfig, check_counts, check_rates
from treeparse.sentence import Sentence
from treeparse.trees import TreeCRF, distribution_named
from treeparse.trees.families import Family

# The nodes that the feature templates of linear models may read, by kind.
ROLES: Mapping[str, str] = {"arcs": "hdb", "siblings": "hds", "grandparents": "hdg", "labels": "hdb"}
MOST_BITS = 30
TEMPERATURES = (1e-3, 1e3)  # lowest and highest
# Learned tags gain 2 LAS on 37,000 words of Turkish and lose half a point on 205,000 of English.
AUTO_WEIGHT, AUTO_WORDS = 1.0, 100_000


@dataclass(frozen=True)
class ScorerConfig(ABC):
    """The settings of a scorer; a subclass for each scorer, a frozen dataclass at the top of a module.

    A config names the class by ``model.scorer.class_path``, and its fields by ``init_args``.
    """

    @abstractmethod
    def module(self, config: "ParserConfig", indexer: Indexer) -> Scorer:
        """Return the scorer with random weights.

        Args:
            config: the settings of the parser; ``config.encoder.module(indexer.features)`` is its encoder.
            indexer: has the labels, the tags to predict and the features of the batches.
        """

    def reader(self, config: "ParserConfig") -> ReaderConfig:
        """Return the settings of the part that reads sentences: the encoder, for a scorer that has one."""
        return config.encoder

    def description(self, config: "ParserConfig") -> str:
        """The parts of the parser, for a model card: "an encoder (BiLSTM) under biaffine scores"."""
        return f"an encoder ({config.encoder.name}) under the scores of {type(self).__name__}"

    def shaping(self, config: "ParserConfig") -> Mapping[str, Any]:
        """Return the settings that decide the shapes or the meaning of the scorer's weights, by their keys."""
        return {f"scorer.{name}": value for name, value in asdict(self).items()}


@dataclass(frozen=True)
class BiaffineConfig(ScorerConfig):
    """Biaffine scores of arcs and labels (Dozat and Manning 2017), and trilinear scores of parts of three words.

    The parser's ``arc_size``, ``label_size`` and ``part_size`` are the sizes of the vectors.
    """

    def module(self, config: "ParserConfig", indexer: Indexer) -> BiaffineScorer:
        return BiaffineScorer(
            config.encoder.module(indexer.features),
            labels=len(indexer.labels),
            root_label=indexer.root_label,
            arc_size=config.arc_size,
            label_size=config.label_size,
            dropout=config.dropout,
            tags={column: tags.items for column, tags in indexer.tags.items()},
            parts=config.part_names,
            part_size=config.part_size,
        )

    def description(self, config: "ParserConfig") -> str:
        kinds = " and trilinear" if config.part_names else ""
        return f"an encoder ({config.encoder.name}) under biaffine{kinds} scores"

    def shaping(self, config: "ParserConfig") -> Mapping[str, Any]:
        names = ("arc_size", "label_size", *(["part_size"] if config.part_names else []))
        return {name: getattr(config, name) for name in names}


@dataclass(frozen=True)
class LinearConfig(ScorerConfig):
    """Sums of the weights of hashed features (McDonald et al. 2005), without an encoder; ``learning`` trains them.

    A feature template such as "h.form d.upos distance" names attributes of the head (h), the dependent (d), for
    siblings the sibling (s), for grandparents the head's head (g), with offsets such as h+1.upos. b.upos makes one
    feature of every distinct tag between head and dependent. Attributes are form, lower, prefix, suffix, shape, upos,
    xpos, feats, treebank, and feats.Case, feats.Number, ... The direction of the arc is in every feature.

    Attributes:
        arcs: the feature templates of arcs.
        siblings: the templates of pairs of siblings, for trees that score them.
        grandparents: the templates of heads of heads, for trees that score them.
        labels: the templates of labels.
        attributes: the path of a function that maps a sentence to further attributes by name, each a list of strings;
            null for none.
        bits: the weights of all parts are 2 to this power.
        label_bits: the weights of each label are 2 to this power.
    """

    arcs: tuple[str, ...] = feature_templates.ARCS
    siblings: tuple[str, ...] = feature_templates.SIBLINGS
    grandparents: tuple[str, ...] = feature_templates.GRANDPARENTS
    labels: tuple[str, ...] = feature_templates.LABELS
    attributes: str | None = None
    bits: int = 22
    label_bits: int = 16

    def __post_init__(self) -> None:
        check_counts(self, "bits", "label_bits", most=MOST_BITS, section="scorer.")
        for kind in ROLES:
            self.read(kind)

    def read(self, kind: str) -> tuple[feature_templates.Template, ...]:
        """Return the feature templates of a kind of part or of labels; raise for a template that cannot be read."""
        try:
            return feature_templates.read_templates(getattr(self, kind), ROLES[kind])
        except TreeparseError as error:
            raise TreeparseError(f"scorer.{kind}: {error}") from error

    def with_treebank(self) -> Self:
        """Return the settings with each template twice, once together with the treebank (Daume III 2007)."""
        texts = {kind: getattr(self, kind) for kind in ROLES}
        if any(TREEBANK in text for of_kind in texts.values() for text in of_kind):
            return self
        doubled = {kind: (*own, *(f"{text} d.{TREEBANK}" for text in own)) for kind, own in texts.items()}
        return replace(self, **doubled)

    def templates_of(self, config: "ParserConfig") -> dict[str, tuple[feature_templates.Template, ...]]:
        """Return the feature templates of the kinds of part that the trees have, and of labels."""
        return {kind: self.read(kind) for kind in ("arcs", *config.part_names, "labels")}

    def reader(self, config: "ParserConfig") -> "LinearReader":
        read = (template for kind in self.templates_of(config).values() for template in kind)
        return LinearReader(feature_templates.attributes_of(read), self.attributes)

    def module(self, config: "ParserConfig", indexer: Indexer) -> LinearScorer:
        return LinearScorer(
            self.templates_of(config),
            self.reader(config).attributes,
            kinds=config.part_names,
            bits=self.bits,
            label_bits=self.label_bits,
            labels=len(indexer.labels),
            root_label=indexer.root_label,
        )

    def description(self, config: "ParserConfig") -> str:
        return f"linear scores by {sum(map(len, self.templates_of(config).values()))} feature templates"

    def shaping(self, config: "ParserConfig") -> Mapping[str, Any]:
        names = ("bits", "label_bits", "attributes", *self.templates_of(config))
        return {f"scorer.{name}": getattr(self, name) for name in names}


@dataclass(frozen=True)
class LinearReader(ReaderConfig):
    """What linear models read: attributes of words, of which some may come from a ``function``; no vocabularies."""

    attributes: tuple[str, ...]
    function: str | None

    def start(
        self, sentences: Sequence[Sentence], vectors: WordVectors | None = None
    ) -> tuple[Self, Features, Callable[[Learner], None]]:
        """Start from training sentences, with weights of 0."""
        if vectors is not None:
            raise TreeparseError("Linear models read no pretrained vectors: leave out data.vectors.")
        return self, feature_templates.AttributeHashes(self.attributes, self.function), lambda module: None

    def extended(self, features: Features, sentences: Sequence[Sentence]) -> Features:
        return features

    def restored(self, data: dict[str, Any]) -> Features:
        if tuple(data["attributes"]) != self.attributes:
            raise TreeparseError("The attributes of the vocabulary are not those that the feature templates read.")
        return feature_templates.AttributeHashes(self.attributes, self.function)


@dataclass(frozen=True)
class TagWeights:
    """The columns of tags that the parser predicts with the tree: the weight of each in the loss, 0 for none.

    The loss of a column is the mean cross-entropy over the words whose tag is known, in unlabelled text too. It is part
    of the dev loss. ``auto`` is 1 if the training sentences have the column and fewer than 100,000 words, and the
    encoder does not read the column; otherwise it is 0.

    Attributes:
        upos: weight of UPOS in the loss; 0 for a parser that does not predict it. predict --tags writes the predicted
            tags.
        xpos: weight of XPOS in the loss.
        feats: weight of FEATS in the loss. All features of a word are one tag, whose score is the sum of theirs.
    """

    upos: float | Auto = 0.0
    xpos: float | Auto = 0.0
    feats: float | Auto = 0.0

    def __post_init__(self) -> None:
        for column, weight in vars(self).items():
            if weight != "auto" and not 0 <= weight < math.inf:
                raise TreeparseError(f"tags.{column} must be 0 or more and finite, or auto, got {weight}.")

    def resolved(self, sentences: Sequence[Sentence], read: Collection[str]) -> Self:
        """Return the weights with numbers for ``auto``; ``read`` are the columns that the model reads."""
        is_small = sum(map(len, sentences)) < AUTO_WORDS
        chosen = {
            column: AUTO_WEIGHT if is_small and column not in read and has_tags(sentences, column) else 0.0
            for column, weight in vars(self).items()
            if weight == "auto"
        }
        return replace(self, **chosen)

    def columns(self) -> dict[str, float]:
        """The predicted columns and their weights, without those that are ``auto``."""
        return {column: float(weight) for column, weight in vars(self).items() if weight and weight != "auto"}


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
            nonprojective_siblings: all trees, by arcs and such pairs, which have best trees but no probabilities. Or
            the class path of a subclass of ``treeparse.trees.TreeCRF``.
        decoder: chooses the parse: best, the best labelled tree of the distribution; arcs_first, the best tree without
            labels, whose arcs then get their best labels, which is faster; nonprojective, the best of all
            trees; projective, the best tree without crossing arcs; minimum_risk, the tree of the highest expected LAS.
        tags: the tags that are predicted with the tree, and their weights in the loss.
        temperature: divides the scores of arcs and other parts, so that the probabilities of trees are the trained ones
            to the power ``1 / temperature``, normalised. Training fits it to the dev set at its end, and ``treeparse
            calibrate`` to other trees that the parser was not trained on.
        label_temperature: divides the scores of labels, so that P(label | arc) is the trained one to the power
            ``1 / label_temperature``, normalised. It is fitted at the same times. Decoders other than arcs_first weigh
            arcs against labels, so that the two temperatures may change a parse.
        scorer: the scorer's settings; their class names the scorer.
        promises: the thresholds of ``treeparse predict --head-sets`` and ``--certain`` for some shares of errors, by
            what is promised: ``heads``, ``sentences`` and ``words``. They are fitted after the temperatures.
    """

    encoder: EncoderConfig = field(default_factory=BiLSTMConfig)
    arc_size: int = 400
    label_size: int = 64
    dropout: float = 0.33
    single_root: bool = True
    trees: str = "nonprojective"
    decoder: Decoder = "best"
    tags: TagWeights = field(default_factory=TagWeights)
    temperature: float = 1.0
    label_temperature: float = 1.0
    scorer: ScorerConfig = field(default_factory=BiaffineConfig)
    part_size: int = 64
    prune_below: float = 0.0
    promises: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_counts(self, "arc_size", "label_size", "part_size", section="")
        check_rates(self, "dropout", section="")
        _check_temperature("temperature", self.temperature)
        _check_temperature("label_temperature", self.label_temperature)
        self._check_pruning()
        object.__setattr__(self, "decoder", decoder_named(self.decoder))
        if isinstance(self.scorer, LinearConfig) and self.tags.columns():
            raise TreeparseError("Linear models predict no tags: set the weights of model.tags to 0.")
        family = self.tree_family
        if family.part_kinds and self.decoder == ("projective" if family.crossing else "nonprojective"):
            raise TreeparseError(
                f"The decoder {self.decoder} searches among trees that score arcs alone, but trees {self.trees} score "
                "more: use the decoder best, arcs_first or minimum_risk."
            )

    def _check_pruning(self) -> None:
        if not 0 <= self.prune_below < 1:
            raise TreeparseError(f"prune_below must be from 0 up to, but not including, 1, got {self.prune_below}.")
        if self.prune_below and not self.tree_family.part_kinds:
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
    def distribution(self) -> type[TreeCRF]:
        """The distribution of the trees."""
        return distribution_named(self.trees)

    @property
    def tree_family(self) -> type[Family]:
        """The family of the trees: their kinds of part, whether they have sums, and whether arcs may cross."""
        return self.distribution.tree_family

    @property
    def part_names(self) -> tuple[str, ...]:
        """The names of the kinds of part of the trees besides arcs."""
        return tuple(kind.name for kind in self.tree_family.part_kinds)

    @property
    def reader(self) -> ReaderConfig:
        """The settings of the part that reads sentences: the encoder, or a scorer without one."""
        return self.scorer.reader(self)

    def with_reader(self, reader: ReaderConfig) -> Self:
        """Return the settings with others of the part that reads sentences; only encoders have any."""
        return replace(self, encoder=reader) if isinstance(reader, EncoderConfig) else self

    def with_tags_of(self, sentences: Sequence[Sentence], features: Features) -> Self:
        """Return the settings with numbers for the weights of tags that are ``auto``, by the training sentences."""
        tagged = () if isinstance(self.scorer, LinearConfig) else sentences
        return replace(self, tags=self.tags.resolved(tagged, features.tag_columns()))

    def shaping(self) -> dict[str, Any]:
        """Return the settings that decide the shapes or the meaning of weights, by their keys."""
        encoder = self.encoder.shaping() if self.reader is self.encoder else {}
        return {**self.scorer.shaping(self), **{f"encoder.{name}": value for name, value in encoder.items()}}


def _check_temperature(name: str, value: float) -> None:
    lowest, highest = TEMPERATURES
    if not lowest <= value <= highest:
        raise TreeparseError(f"{name} must be from {lowest:g} to {highest:g}, got {value}.")
