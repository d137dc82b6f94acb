"""Linear scores by hashed features ([Lec]; McDonald et al. 2005)."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from treeparse.batch import Batch
from treeparse.kernels.linear.features import Hashes
from treeparse.kernels.linear.scores import score_arcs, score_triples
from treeparse.kernels.linear.tables import WeightTable
from treeparse.linear.arrays import as_arrays
from treeparse.linear.attributes import NODES
from treeparse.linear.labels import LinearLabels
from treeparse.linear.templates import Template
from treeparse.model.scorers.scorer import Scorer, ScorerOutput

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
