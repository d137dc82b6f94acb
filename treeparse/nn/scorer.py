"""The scorer: an encoder under biaffine arc and label scores, and under tags."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import torch
from torch import Tensor, nn

from treeparse.batch import Batch

from .biaffine import ArcBiaffine, LabelBiaffine, PairTerms, Projections
from .encoder import Encoder
from .tags import TagScorer

NO_TAGS: Mapping[str, int] = MappingProxyType({})


@dataclass(frozen=True)
class BiaffineScores:
    """The scores of a batch: all arcs at once, labels for the arcs that are asked for."""

    arcs: Tensor  # (B, n+1, n+1) log weights, head first; column 0, diagonal and padding hold anything
    label_heads: Tensor  # (B, n+1, label_size)
    label_dependents: Tensor  # (B, n+1, label_size)
    label_biaffine: LabelBiaffine
    tags: Mapping[str, Tensor] = field(default_factory=dict)  # (B, n+1, tags) log probabilities by column

    def label_vectors_in(self, dtype: torch.dtype) -> "BiaffineScores":
        """The same with label vectors of this type: labels are scored later, where no autocast may be."""
        heads, dependents = self.label_heads.to(dtype), self.label_dependents.to(dtype)
        return replace(self, label_heads=heads, label_dependents=dependents)

    def labels_of(self, item: Tensor, head: Tensor, dependent: Tensor) -> Tensor:
        """Label scores (A, labels) of arcs, each given by item, head and dependent (A,)."""
        heads, dependents = self.label_heads.flatten(0, 1), self.label_dependents.flatten(0, 1)
        first = item * self.label_heads.shape[1]
        return self.label_biaffine.of_pairs(heads, dependents, first + head, first + dependent)

    def labels_from(self, first: int, last: int) -> Tensor:
        """Label scores (B, last - first, n+1, labels) of all arcs from the heads ``first`` to ``last - 1``."""
        return self.label_biaffine.all_pairs(self.label_heads[:, first:last], self.label_dependents)

    def label_terms(self, first: int, last: int) -> PairTerms:
        """What a good part of them are made of; ``at`` counts heads from ``first``."""
        return self.label_biaffine.pair_terms(self.label_heads[:, first:last], self.label_dependents)


class BiaffineScorer(nn.Module):
    """Deep biaffine scores of arcs and labels over any encoder ([DM] §3); ``tags`` of each column beside them."""

    def __init__(
        self,
        encoder: Encoder,
        *,
        labels: int,
        arc_size: int,
        label_size: int,
        dropout: float,
        tags: Mapping[str, int] = NO_TAGS,
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.projections = Projections(encoder.output_size, (arc_size, arc_size, label_size, label_size), dropout)
        self.arcs = ArcBiaffine(arc_size)
        self.labels = LabelBiaffine(label_size, labels)
        self.tags = TagScorer(encoder.output_size, tags)

    def forward(self, batch: Batch) -> BiaffineScores:
        nodes = self.encoder(batch)
        arc_heads, arc_dependents, label_heads, label_dependents = self.projections(nodes)
        arcs, tags = self.arcs(arc_heads, arc_dependents), self.tags(nodes)
        return BiaffineScores(arcs, label_heads, label_dependents, self.labels, tags)
