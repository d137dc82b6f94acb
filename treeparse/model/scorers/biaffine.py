"""The biaffine scorer of arcs, labels and tags, and of parts of three words, over any encoder."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from torch import Tensor, nn

from treeparse.batch import Batch
from treeparse.model.scorers.biaffine_labels import BiaffineLabels
from treeparse.model.scorers.scorer import EncoderScorer, PartScores, ScorerOutput
from treeparse.nn import ArcBiaffine, Encoder, LabelBiaffine, TagScorer
from treeparse.nn.biaffine import LabelVectors, Projections
from treeparse.nn.trilinear import PartTrilinear

ROLES = 3  # of the words of a part: head, dependent and another one


class BiaffineScorer(EncoderScorer):
    """Deep biaffine scores of arcs and labels over any encoder ([DM] §3), and a softmax for each column of tags.

    Args:
        encoder: computes the vectors of nodes.
        labels: number of labels.
        root_label: index of the label of arcs from the root; -1 if no label is reserved for them.
        arc_size: size of the vectors that score arcs.
        label_size: size of the vectors that score labels.
        dropout: dropout of all these vectors.
        tags: number of tags by column.
        parts: names of the kinds of part of three words.
        part_size: size of the vectors that score these.
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
        parts: Sequence[str] = (),
        part_size: int = 0,
    ) -> None:
        super().__init__(encoder)
        self.root_label = root_label
        sizes = arc_size, arc_size, label_size, label_size, *[part_size] * (ROLES * len(parts))
        self.projections: Projections = Projections(encoder.output_size, sizes, dropout)
        self.arcs: ArcBiaffine = ArcBiaffine(arc_size)
        self.labels: LabelBiaffine = LabelBiaffine(label_size, labels)
        self.tags: TagScorer = TagScorer(encoder.output_size, tags)
        self.parts: nn.ModuleDict = nn.ModuleDict({name: PartTrilinear(part_size) for name in parts})

    def forward(self, batch: Batch) -> ScorerOutput:
        nodes = self.encoder(batch)
        arc_heads, arc_dependents, heads, dependents, *roles = self.projections(nodes)
        arcs, tags = self.arcs(arc_heads, arc_dependents), self.tags(nodes)
        if not self.training:  # because labels are scored later, possibly outside this autocast
            heads, dependents = heads.to(arcs.dtype), dependents.to(arcs.dtype)
        labels = BiaffineLabels(LabelVectors(heads, dependents, self.labels), self.root_label)
        modules = enumerate(self.parts.values())
        parts = (TrilinearParts(module, roles[ROLES * k : ROLES * (k + 1)]) for k, module in modules)
        return ScorerOutput(arcs, labels, tags, tuple(parts))


@dataclass(frozen=True)
class TrilinearParts(PartScores):
    """The scores of parts by vectors of nodes in three roles ``(B, n+1, size)``."""

    module: nn.Module
    roles: Sequence[Tensor]

    def of_arcs(self, arcs: Tensor | None = None) -> Tensor:
        return self.module(*self.roles, arcs)
