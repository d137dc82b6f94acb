"""Linear scores by hashed features ([Lec]; McDonald et al. 2005)."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor, nn

from treeparse.batch import Batch
from treeparse.data.features.indexer import Indexer
from treeparse.data.features.words import Features
from treeparse.data.vectors.files import WordVectors
from treeparse.errors import TreeparseError
from treeparse.kernels.linear.features import Hashes
from treeparse.kernels.linear.scores import score_arcs, score_triples
from treeparse.kernels.linear.tables import WeightTable
from treeparse.linear.arrays import as_arrays
from treeparse.linear.attributes import NODES, AttributeHashes
from treeparse.linear.labels import LinearLabels
from treeparse.linear.templates import Template, attributes_of
from treeparse.model.config import LinearConfig, ParserConfig
from treeparse.model.scorers.kind import ScorerKind
from treeparse.model.scorers.scorer import Scorer, ScorerOutput
from treeparse.sentence import Sentence
from treeparse.trees.tree_kinds import part_kinds

SAVED = torch.float8_e4m3fn  # of a weight, times a scale
LEAST = 1e-12  # taken for the greatest weight where all are smaller


class LinearScorer(Scorer):
    """Scores of parts and labels that are sums of the weights of their features; computed on the CPU.

    A weight is one byte, a float8 (E4M3) divided by a scale; while they are learned, weights are float32 elsewhere.

    Attributes:
        parts: ``(2**bits,)`` the weights of the features of arcs and of parts of three nodes.
        labels: ``(2**label_bits, L)`` the weights of the features of arcs for each label.
        scales: ``(2,)`` float32, the scales of the two.
        templates: the feature templates of each kind of part and of labels, by ``arcs`` and so on.
        arrays: the same as kernels read them.
        kinds: the names of the kinds of part besides arcs.
    """

    templates: Mapping[str, Sequence[Template]]
    kinds: tuple[str, ...]
    root_label: int

    def __init__(
        self,
        templates: Mapping[str, Sequence[Template]],
        attributes: Sequence[str],
        *,
        kinds: Sequence[str],
        bits: int,
        label_bits: int,
        labels: int,
        root_label: int,
    ) -> None:
        super().__init__()
        self.templates, self.kinds, self.root_label = templates, tuple(kinds), root_label
        self.arrays: dict[str, Any] = {kind: as_arrays(each, attributes, kind) for kind, each in templates.items()}
        self.parts: nn.Parameter = nn.Parameter(torch.zeros(2**bits, dtype=SAVED), requires_grad=False)
        self.labels: nn.Parameter = nn.Parameter(torch.zeros(2**label_bits, labels, dtype=SAVED), requires_grad=False)
        self.scales: nn.Parameter = nn.Parameter(torch.ones(2), requires_grad=False)

    def forward(self, batch: Batch) -> ScorerOutput:
        scale_of_parts, scale_of_labels = self.scales.tolist()
        nodes, lengths, device = nodes_of(batch), batch.on_cpu.lengths.numpy(), self.parts.device
        arcs, *others = self.scores(batch, byte_table(self.parts, scale_of_parts))
        table, root = byte_table(self.labels, scale_of_labels), self.root_label
        labels = LinearLabels(nodes, lengths, self.arrays["labels"], table, root, device)
        return ScorerOutput(arcs.to(device), labels, others=tuple(each.to(device) for each in others))

    def scores(self, batch: Batch, table: WeightTable) -> list[Tensor]:
        """Return the scores ``(B, n+1, n+1)`` of arcs and ``(B, n+1, n+1, n+1)`` of other parts, on the CPU."""
        nodes, lengths = nodes_of(batch), batch.on_cpu.lengths.numpy()
        arcs = score_arcs(nodes, lengths, self.arrays["arcs"], table)
        others = (
            score_triples(nodes, lengths, self.arrays[kind], table, siblings=kind == "siblings") for kind in self.kinds
        )
        return [torch.from_numpy(each) for each in (arcs, *others)]

    @torch.no_grad()
    def set_weights(self, parts: Tensor, labels: Tensor) -> None:
        """Set the weights to float32 ones, which are rounded."""
        for index, (own, weights) in enumerate(((self.parts, parts), (self.labels, labels))):
            greatest = max(float(weights.abs().max()), LEAST)
            self.scales[index] = 2.0 ** math.floor(math.log2(torch.finfo(SAVED).max / greatest))
            own.copy_((weights * self.scales[index]).to(SAVED))

    def weights(self) -> tuple[Tensor, Tensor]:
        """Return the weights of parts and of labels, float32."""
        return self.parts.float() / self.scales[0], self.labels.float() / self.scales[1]


def byte_table(weights: Tensor, scale: float) -> WeightTable:
    """Return weights of one byte, as kernels read them."""
    return WeightTable(weights.detach().to(SAVED).cpu().view(torch.uint8).numpy(), np.float32(1 / scale))


def nodes_of(batch: Batch) -> Hashes:
    """Return the hashed attributes ``(B, n+1, A)`` of a batch's nodes."""
    return batch.on_cpu.features[NODES].numpy().view(np.uint32)


@dataclass(frozen=True)
class Linear(ScorerKind):
    """A `LinearScorer` by its templates and the ``trees`` of the parser's settings; it has no encoder."""

    settings = LinearConfig

    @property
    def linear(self) -> LinearConfig:
        """The scorer's settings."""
        assert isinstance(self.config.scorer, LinearConfig)
        return self.config.scorer

    @property
    def name(self) -> str:
        return "linear"

    @property
    def description(self) -> str:
        return f"linear scores by {sum(map(len, self._templates.values()))} feature templates"

    @property
    def reader(self) -> str:
        return "linear"

    @property
    def kinds(self) -> list[str]:
        """The names of the trees' kinds of part besides arcs."""
        return [kind.name for kind in part_kinds(self.config.trees)]

    @cached_property
    def _templates(self) -> dict[str, tuple[Template, ...]]:
        return {kind: self.linear.read(kind) for kind in ("arcs", *self.kinds, "labels")}

    @cached_property
    def attributes(self) -> tuple[str, ...]:
        """The attributes that templates read."""
        return attributes_of(template for each in self._templates.values() for template in each)

    def completed(self, vectors: WordVectors | None) -> Self:
        if vectors is not None:
            raise TreeparseError("Linear models read no pretrained vectors: leave out data.vectors.")
        if self.config.tags.columns():
            raise TreeparseError("Linear models predict no tags: set the weights of model.tags to 0.")
        return self

    def features(self, sentences: Sequence[Sentence], vectors: WordVectors | None) -> Features:
        return AttributeHashes(self.attributes, self.linear.attributes)

    def extended(self, features: Features, sentences: Sequence[Sentence]) -> Features:
        return features

    def restored(self, data: dict[str, Any]) -> Features:
        if tuple(data["attributes"]) != self.attributes:
            raise TreeparseError("The attributes of the vocabulary are not those that the feature templates read.")
        return AttributeHashes(self.attributes, self.linear.attributes)

    def module(self, indexer: Indexer) -> LinearScorer:
        return LinearScorer(
            self._templates,
            self.attributes,
            kinds=self.kinds,
            bits=self.linear.bits,
            label_bits=self.linear.label_bits,
            labels=len(indexer.labels),
            root_label=indexer.root_label,
        )

    def initialise(self, module: Scorer, vectors: WordVectors | None) -> None:
        """Leave all weights at 0."""
        return

    def continuing(self, earlier: ParserConfig) -> ParserConfig:
        return self.config

    def merged(self) -> ParserConfig:
        return self.config

    def shaping(self) -> Mapping[str, Any]:
        names = ("bits", "label_bits", "attributes", "arcs", *self.kinds, "labels")
        return {f"scorer.{name}": getattr(self.linear, name) for name in names}
