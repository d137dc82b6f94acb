"""The biaffine scorer of arcs, labels and tags, over any encoder."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from treeparse.batch import Batch
from treeparse.data.features.indexer import Indexer
from treeparse.model.config import BiaffineConfig
from treeparse.model.scorers.biaffine_labels import BiaffineLabels
from treeparse.model.scorers.kind import EncoderScorerKind
from treeparse.model.scorers.scorer import EncoderScorer, ScorerOutput
from treeparse.nn import ArcBiaffine, Encoder, LabelBiaffine, TagScorer
from treeparse.nn.biaffine import LabelVectors, Projections


class BiaffineScorer(EncoderScorer):
    """Deep biaffine scores of arcs and labels over any encoder ([DM] §3), and a softmax for each column of tags.

    Args:
        encoder: computes the vectors of nodes.
        labels: number of labels.
        root_label: index of the label of arcs from the root; -1 if no label is reserved for them.
        arc_size: size of the vectors that score arcs.
        label_size: size of the vectors that score labels.
        dropout: dropout of both kinds of vectors.
        tags: number of tags by column.
    """

    def __init__(
        self,
        encoder: Encoder,
        *,
        labels: int,
        root_label: int,
        arc_size: int,
        label_size: int,
        dropout: float,
        tags: Mapping[str, int],
    ) -> None:
        super().__init__(encoder)
        self.root_label = root_label
        self.projections = Projections(encoder.output_size, (arc_size, arc_size, label_size, label_size), dropout)
        self.arcs = ArcBiaffine(arc_size)
        self.labels = LabelBiaffine(label_size, labels)
        self.tags = TagScorer(encoder.output_size, tags)

    def forward(self, batch: Batch) -> ScorerOutput:
        nodes = self.encoder(batch)
        arc_heads, arc_dependents, heads, dependents = self.projections(nodes)
        arcs, tags = self.arcs(arc_heads, arc_dependents), self.tags(nodes)
        if not self.training:  # because labels are scored later, possibly outside this autocast
            heads, dependents = heads.to(arcs.dtype), dependents.to(arcs.dtype)
        return ScorerOutput(arcs, BiaffineLabels(LabelVectors(heads, dependents, self.labels), self.root_label), tags)


@dataclass(frozen=True)
class Biaffine(EncoderScorerKind):
    """A `BiaffineScorer` by the settings ``arc_size``, ``label_size`` and ``dropout`` of the parser."""

    settings = BiaffineConfig

    @property
    def name(self) -> str:
        return "biaffine"

    @property
    def description(self) -> str:
        return f"an encoder ({self.encoder.name}) under biaffine scores"

    def module(self, indexer: Indexer) -> BiaffineScorer:
        return BiaffineScorer(
            self.encoder.module(indexer.features),
            labels=len(indexer.labels),
            root_label=indexer.root_label,
            arc_size=self.config.arc_size,
            label_size=self.config.label_size,
            dropout=self.config.dropout,
            tags={column: len(tags) for column, tags in indexer.tags.items()},
        )

    def size(self, indexer: Indexer | None) -> int:
        features, labels, tags = None, 1, 0
        if indexer is not None:
            features, labels, tags = indexer.features, len(indexer.labels), sum(map(len, indexer.tags.values()))
        encoder, nodes = self.encoder.size(features)
        arc_size, label_size = self.config.arc_size, self.config.label_size
        projections = 2 * (nodes + 1) * (arc_size + label_size)
        biaffines = arc_size * (arc_size + 1) + labels * (label_size * (label_size + 2) + 1)
        return encoder + projections + biaffines + tags * (nodes + 1)

    def smaller(self) -> Iterator[tuple[str, Self]]:
        yield from super().smaller()
        for name in ("arc_size", "label_size"):
            yield f"{name} ({getattr(self.config, name)})", self.of(replace(self.config, **{name: 1}))

    def shaping(self) -> Mapping[str, Any]:
        sizes = {name: getattr(self.config, name) for name in ("arc_size", "label_size")}
        return {**sizes, **super().shaping()}
