"""`Parser`: a scorer and vocabularies; it is built or loaded, scores sentences and finds their trees."""

import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor, nn

from treeparse.batch import Batch, moved, readable_without_sync
from treeparse.data.features.indexer import Indexer
from treeparse.data.features.vector_files import WordVectors
from treeparse.data.mapping import Words, as_sentences
from treeparse.data.parses import Parse
from treeparse.data.raw_text import RawTextCheck
from treeparse.errors import TreeparseError
from treeparse.model.folder import (
    CONFIG,
    load_weights,
    local_folder,
    model_folder,
    push,
    read_model,
    restoring,
    rewrite_config,
    write_model,
)
from treeparse.model.inference.any_parser import AnyParser
from treeparse.model.inference.lists import chosen_trees
from treeparse.model.parser_config import ParserConfig
from treeparse.model.scorer import PartScores, Scorer, ScorerOutput
from treeparse.model.settings import plain_settings, read_settings
from treeparse.model.tagging import Tagging, TagNames, words_of_tag_terms
from treeparse.names import Precision, precision_named
from treeparse.nn.int8 import Int8Copy
from treeparse.nn.precision import scoring_in
from treeparse.objectives import Objective, Term, total_loss
from treeparse.sentence import Sentence
from treeparse.trees import DISTRIBUTIONS, LabeledCRF, TreeCRF
from treeparse.trees.arc_conflicts import has_nonprojective_arc
from treeparse.trees.labels.sources import LabelTensor, renormalised, with_root_rule
from treeparse.trees.parts import arcs_agreeing_with, arcs_of, named

NOT_ONE_GRAPH = (
    "A whole parser is no single graph, because its networks group words by their lengths: compile it without "
    "fullgraph=True, and export the distributions over a network of your own."
)


class Parser(nn.Module, AnyParser):
    """A graph-based dependency parser. ``build`` makes an untrained one, ``from_pretrained`` loads one."""

    config: ParserConfig
    indexer: Indexer

    def __init__(self, config: ParserConfig, indexer: Indexer) -> None:
        super().__init__()
        if config.tags.columns().keys() != indexer.tags.keys():
            raise TreeparseError(
                f"The config has weights of the tags {', '.join(config.tags.columns()) or 'none'}, but there are "
                f"vocabularies of {', '.join(indexer.tags) or 'none'}."
            )
        self.config, self.indexer = config, indexer
        self.precision: Precision = "32"
        self.raw_text: RawTextCheck = RawTextCheck(self.known_words(), self.multiword_tokens())
        self.scorer: Scorer = config.scorer.module(config, indexer)
        self._in_int8 = Int8Copy(self.scorer)

    @classmethod
    def build(
        cls,
        config: ParserConfig,
        sentences: Sequence[Sentence],
        vectors: WordVectors | None = None,
        *,
        unlabelled: Sequence[Sentence] = (),
    ) -> Self:
        """Return an untrained parser with the vocabularies of the training sentences.

        ``unlabelled`` sentences add words to the vocabularies, but no labels. ``vectors`` become the encoder's frozen
        table of pretrained vectors, set its ``vector_size`` and are saved with the model.

        Raises:
            TreeparseError: if ``config`` has another ``vector_size``, or if the encoder reads no vectors.
        """
        reader, features, initialise = config.reader.start([*sentences, *unlabelled], vectors)
        config = config.with_reader(reader).with_tags_of(sentences, features)
        parser = cls(config, Indexer.build(sentences, features, config.tags.columns()))
        with torch.no_grad():
            initialise(getattr(parser.scorer, "encoder", parser.scorer))
        return parser

    @classmethod
    def from_pretrained(cls, directory: str | Path, *, revision: str | None = None, mapped: bool = False) -> Self:
        """Load a parser from the folder of a model or of a training run; it is on the CPU and in evaluation mode.

        ``en`` is a small model of English that comes with treeparse, and ``organisation/name`` a model on the Hugging
        Face hub, at the branch, tag or commit ``revision``: see `treeparse.model.folder`. Loading runs and imports no
        code from the folder: import the class of a custom ``EncoderConfig`` or ``ScorerConfig`` before.

        If ``mapped``, the weights on the CPU are those of the file, which several processes then share in memory. The
        file must not be written to as long as the parser is in use; to replace it by another one does no harm.

        Raises:
            TreeparseError: if a file is missing, or if a weight is missing, unknown or of another shape.
        """
        directory = model_folder(local_folder(directory, revision))
        config, vocabulary, weights = read_model(directory)
        settings = read_settings(ParserConfig, config, f"{directory}/{CONFIG}")
        with restoring("parser", directory), torch.random.fork_rng(devices=[]):  # these weights are replaced
            parser = cls(settings, Indexer.from_json(vocabulary, settings.reader.restored))
        load_weights(parser, weights, str(directory), mapped=mapped)
        return parser.eval()

    def save_pretrained(self, directory: str | Path) -> None:
        """Write ``config.json``, ``vocabulary.json`` and ``model.safetensors``, all of them or none.

        Adapters are merged into the weights that they adapt.
        """
        write_model(directory, self._saved_config(), self.indexer.to_json(), self.merged_weights())

    def save_config(self, directory: str | Path) -> None:
        """Write ``config.json`` alone, into a folder where this parser was saved, as for a new temperature."""
        rewrite_config(directory, self._saved_config())

    def _saved_config(self) -> dict[str, Any]:
        return plain_settings(self.config.with_reader(self.config.reader.merged()))

    def base_weights(self) -> dict[str, Tensor]:
        """The weights without adapters, by the names of a parser without adapters; they are not copied."""
        return {f"scorer.{name}": tensor for name, tensor in self.scorer.base_weights().items()}

    def merged_weights(self) -> dict[str, Tensor]:
        """The weights with adapters merged into them, as `save_pretrained` saves them."""
        return {f"scorer.{name}": tensor for name, tensor in self.scorer.merged_weights().items()}

    def push_to_hub(self, name: str, *, private: bool = False, revision: str | None = None) -> str:
        """Upload the parser to the Hugging Face hub as ``organisation/name`` and return its address; see `hub.push`.

        This uploads no model card; ``treeparse push`` uploads that of a training run.
        """
        with tempfile.TemporaryDirectory() as folder:
            self.save_pretrained(Path(folder) / "model")
            return push(Path(folder) / "model", name, private=private, revision=revision)

    @property
    def device(self) -> torch.device:
        """The device of the weights."""
        return next(self.parameters()).device

    def use_precision(self, name: Precision | str) -> Self:
        """Set the precision in which sentences are scored outside training: 32, bf16, int8 or auto. Return the parser.

        "bf16" computes the encoder in bfloat16, and arc and label scores in float32. "int8" is for CPUs: it rounds
        weights and activations to eight bits, unless gradients are needed. "auto" is bf16 on a device that has
        instructions for it. The precision is not saved with the model.
        """
        self.precision = precision_named(name)
        return self

    @property
    def label_names(self) -> tuple[str, ...]:
        """The labels by their ids."""
        return self.indexer.label_names

    @property
    def root_label(self) -> int:
        """The id of the label that arcs from the root, and no others, have; -1 if none is reserved for them."""
        return self.indexer.root_label

    @property
    def tag_names(self) -> TagNames:
        """The tags of each column that the parser predicts with the tree, by their ids."""
        return {column: tags.items for column, tags in self.indexer.tags.items()}

    @property
    def networks(self) -> tuple[Self, ...]:
        """The networks that score sentences: the parser alone."""
        return (self,)

    def collate(self, sentences: Iterable[Words], indices: Sequence[int] | None = None) -> Batch:
        """The sentences, or lists of words, as a batch on the parser's device; ``indices`` are theirs in a treebank."""
        return self.indexer.collate(as_sentences(sentences), indices).to(self.device)

    def distribution(
        self,
        batch: Batch,
        scores: ScorerOutput | None = None,
        *,
        keep: Tensor | None = None,
        prune: bool = True,
    ) -> LabeledCRF:
        """The distribution of each sentence's labelled trees, in float64; every other result comes from it.

        The config's ``trees`` and ``single_root`` choose the trees. Label scores are log P(label | arc), so that
        ``base`` is the distribution of the unlabelled trees. They are computed when they are needed and take little
        memory. Arcs from the root, and no others, have the label of ``root_label``, if any. Labels that the sentence's
        treebank never has in training are impossible. The config's temperatures divide scores. Scores on a GPU are not
        validated, because that would sync the device.

        Args:
            batch: B sentences of up to n words.
            scores: the scorer's output for the batch; None computes it.
            keep: the arcs ``(B, n+1, n+1)`` bool of known trees; pruning leaves at least one of these trees possible.
                None in training means the known trees of the batch.
            prune: whether the config's ``prune_below`` applies.
        """
        scores = self._scores(batch) if scores is None else scores
        validate = None if scores.arcs.device.type == "cpu" else False
        arcs, likely = scores.arcs, None
        if prune and self.config.prune_below:
            keep = self._known(batch) if keep is None and self.training else keep
            likely = self._likely_arcs(arcs, batch.lengths, keep, validate_args=validate)
            arcs = arcs.masked_fill(~likely, -torch.inf)
        others = (part.of_arcs(likely) if isinstance(part, PartScores) else part for part in scores.others)
        base = self.trees((arcs, *others), batch.lengths, validate_args=validate)
        labels, config = scores.labels, self.config
        if isinstance(labels, Tensor):  # normalised to log P(label | arc)
            from_root = torch.arange(labels.shape[1], device=labels.device).unsqueeze(-1) == 0
            labels = with_root_rule(labels.double(), from_root, self.root_label).log_softmax(-1)
        if batch.possible_labels is not None or config.label_temperature != 1:
            source = LabelTensor(labels) if isinstance(labels, Tensor) else labels
            labels = renormalised(source, 1 / config.label_temperature, batch.possible_labels)
        return LabeledCRF(base if config.temperature == 1 else base.tempered(config.temperature), labels)

    def trees(self, scores: Sequence[Tensor], lengths: Tensor, *, validate_args: bool | None = None) -> TreeCRF:
        """The distribution of each sentence's trees without labels, by the scores of arcs and of other parts, if any.

        Scores are ``(B, n+1, n+1)`` and ``(B, n+1, n+1, n+1)``, lengths ``(B,)``.
        """
        arcs, *others = scores
        kinds = self.config.tree_family.part_kinds
        if len(others) != len(kinds):
            raise TreeparseError(
                f"Trees of the kind {self.config.trees!r} (model.trees) score {named(kinds)}, but the scorer "
                f"{type(self.scorer).__name__} returns {len(others)} kinds of part besides arcs: set "
                "ScorerOutput.others."
            )
        distribution: Any = self.config.distribution
        options = {"single_root": self.config.single_root, "validate_args": validate_args}
        if distribution.search_limits is not None:  # otherwise a search would hold up a corpus or a training
            options["limit"] = distribution.search_limits[0 if self.training else 1]
        return distribution(arcs.double(), *others, lengths, **options)

    def _likely_arcs(self, arcs: Tensor, lengths: Tensor, keep: Tensor | None, *, validate_args: bool | None) -> Tensor:
        """The arcs ``(B, n+1, n+1)`` bool that the config's ``prune_below`` leaves."""
        by_arcs = DISTRIBUTIONS["nonprojective" if self.config.tree_family.crossing else "projective"]
        options = {"single_root": self.config.single_root, "validate_args": validate_args}
        return likely_arcs(by_arcs(arcs.detach().double(), lengths, **options), self.config.prune_below, keep)

    def _known(self, batch: Batch) -> Tensor | None:
        """The arcs of known trees, which are kept where arcs are pruned."""
        return known_arcs(batch, crossing=self.config.tree_family.crossing) if self.config.prune_below else None

    def distribution_and_tags(
        self, batch: Batch, *, keep: Tensor | None = None, prune: bool = True
    ) -> tuple[LabeledCRF, Tagging]:
        """``distribution``, and the probabilities of the tags that the parser predicts."""
        scores = self._scores(batch)
        return self.distribution(batch, scores, keep=keep, prune=prune), Tagging(scores.tags, self.tag_names)

    def _scores(self, batch: Batch) -> ScorerOutput:
        _break_graph()
        if self.precision == "int8" and not (self.training or torch.is_grad_enabled()):
            with torch.autocast("cpu", enabled=False):
                return self._in_int8.get()(batch)
        if self.training:
            return self.scorer(batch)
        with scoring_in(self.precision, self.device):
            return self.scorer(batch)

    def forward(self, batch: Batch, objective: Objective) -> Tensor:
        """Return ``loss``, which wrappers such as DistributedDataParallel ask for by calling the parser."""
        return self.loss(batch, objective)

    def loss(self, batch: Batch, objective: Objective) -> Tensor:
        """The objective and the loss of tags: a scalar, in nats, the mean over the words of sentences that have it."""
        return self.loss_and_terms(batch, objective)[0]

    def loss_and_terms(self, batch: Batch, objective: Objective) -> tuple[Tensor, Sequence[Term]]:
        """Return ``loss`` and its terms."""
        p, tagging = self.distribution_and_tags(batch, keep=self._known(batch))
        return self._loss(p, tagging, batch, objective)

    def words_of_terms(self, batch: Batch, objective: Objective) -> dict[str, int]:
        """Count the words that each term of ``loss_and_terms`` is the mean over, by its name."""
        return {**objective.words(batch), **words_of_tag_terms(batch, self.config.tags)}

    def _loss(
        self, p: LabeledCRF, tagging: Tagging, batch: Batch, objective: Objective
    ) -> tuple[Tensor, Sequence[Term]]:
        terms = [*objective.terms(p, batch), *tagging.terms(batch, self.config.tags)]
        return total_loss(terms, p), terms

    @torch.inference_mode()
    def parse_batch(self, batch: Batch, sentences: Sequence[Sentence]) -> list[Parse]:
        """The labelled tree that the config's decoder chooses for each sentence of a batch."""
        return self._parses(*self.distribution_and_tags(batch), sentences)

    @torch.inference_mode()
    def measure(self, batch: Batch, sentences: Sequence[Sentence], objective: Objective) -> tuple[list[Parse], float]:
        """Return the parses of a batch with gold trees, and ``loss``; both come from the same scores."""
        scores = self._scores(batch)
        p, tagging = self.distribution(batch, scores), Tagging(scores.tags, self.tag_names)
        # The parses must not know which arcs are right.
        known = self.distribution(batch, scores, keep=self._known(batch)) if self.config.prune_below else p
        loss, _ = self._loss(known, tagging, batch, objective)
        return self._parses(p, tagging, sentences), float(loss)

    def _parses(self, p: LabeledCRF, tagging: Tagging, sentences: Sequence[Sentence]) -> list[Parse]:
        parses = chosen_trees(p, self.default_decoder).parses(sentences, self.label_names)
        return [parse for [parse] in tagging.add_to(parses)]


def _break_graph() -> None:
    """Begin another graph in a compiled program; raise in one of a single graph, and in export."""
    if torch.compiler.is_exporting():
        raise TreeparseError(NOT_ONE_GRAPH)
    if torch.compiler.is_compiling():
        torch._dynamo.graph_break(msg=NOT_ONE_GRAPH)


def with_label_names(p: LabeledCRF, names: Sequence[str], others: Sequence[str]) -> LabeledCRF:
    """Return the distribution over the labels ``others`` instead of ``names``; a label in one list is impossible."""
    if tuple(names) == tuple(others):
        return p
    ids = {name: index for index, name in enumerate(names)}
    return p.relabelled([ids.get(name, -1) for name in others])


@torch.no_grad()
def likely_arcs(trees: TreeCRF, least: float, within: Tensor | None = None) -> Tensor:
    """Return the arcs ``(B, n+1, n+1)`` bool whose marginal is ``least`` or more, and those of the best tree.

    So there is a tree of likely arcs. With ``within``, a mask of arcs, the arcs are added that are likely among the
    trees of that mask: if there is such a tree, there is one of likely arcs.
    """
    likely = _likely(trees, least)
    if within is None:
        return likely
    if readable_without_sync(within) and bool((within.sum(-2) <= 1)[trees.word_mask].all()):
        return likely | (within & trees.word_mask.unsqueeze(-2))  # complete trees
    scores = trees.scores.masked_fill(~within, -torch.inf)
    return likely | _likely(trees.with_scores(scores, validate_args=False), least)  # of a mask without a tree, nothing


def _likely(trees: TreeCRF, least: float) -> Tensor:
    return (trees.marginals >= least) | arcs_of(trees.mode)


def known_arcs(batch: Batch, *, crossing: bool) -> Tensor | None:
    """Return the arcs ``(B, n+1, n+1)`` bool that the batch's heads and possible heads leave; None for all.

    Unless arcs of trees may cross, words with a non-projective arc count as words of unknown head. Causes no device
    sync.
    """
    heads, original = batch.heads, batch.on_cpu.heads
    if heads is None or original is None:
        return batch.allowed
    if not crossing:
        heads = heads.masked_fill(moved(has_nonprojective_arc(original), heads.device), -1)
    known = arcs_agreeing_with(heads)
    return known if batch.allowed is None else known & batch.allowed
