"""Linear scores by hashed features ([Lec]; McDonald et al. 2005)."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from treeparse.batch import Batch
from treeparse.feature_templates import BETWEEN, MOST_SLOTS, NODES, ROLES, Template, text_hash
from treeparse.kernels import IntArray
from treeparse.kernels.linear_features import Hashes, Templates
from treeparse.kernels.linear_scores import WeightTable, score_arcs, score_labels, score_triples
from treeparse.model.scorer import LabelLogProbs, Scorer, ScorerOutput
from treeparse.trees.labels.sources import ArcRows

AT_ONCE = 2**16  # arcs whose labels are scored at once
SAVED = torch.float8_e4m3fn  # of a weight, times a scale
LEAST = 1e-12  # taken for the greatest weight where all are smaller


class LinearLabels(LabelLogProbs):
    """A ``treeparse.trees.LabelSource`` without gradients.

    Args:
        nodes: ``(B, n+1, A)`` the hashed attributes of nodes.
        lengths: ``(B,)``.
        templates: the feature templates of labels.
        table: the weights of the features of each label.
        root_label: the index of the label of arcs from the root, -1 if no label is reserved for them.
        device: the device of the results.
    """

    nodes: Hashes
    lengths: IntArray
    templates: Templates
    table: WeightTable

    dtype: torch.dtype = torch.float32
    requires_grad = False

    def __init__(
        self,
        nodes: Hashes,
        lengths: IntArray,
        templates: Templates,
        table: WeightTable,
        root_label: int,
        device: torch.device,
    ) -> None:
        super().__init__(nodes.shape, table.values.shape[1], root_label)
        self.nodes, self.lengths, self.templates, self.table, self.device = nodes, lengths, templates, table, device
        self._cache = ArcRows(self.shape, self._look_up, AT_ONCE)

    def from_heads(self, first: int, last: int) -> Tensor:
        items, size = self.shape[:2]
        item, head, dependent = (index.flatten() for index in np.indices((items, last - first, size)))
        is_arc = (dependent > 0) & (np.maximum(head + first, dependent) <= self.lengths[item])
        scores = np.zeros((items * (last - first) * size, self.count), np.float32)
        arcs = np.stack([item, head + first, dependent], -1)[is_arc]
        scores[is_arc] = score_labels(self.nodes, self.lengths, self.templates, self.table, arcs)
        from_root = torch.arange(first, last).reshape(1, -1, 1) == 0
        values = torch.from_numpy(scores).reshape(items, last - first, size, -1)
        return self.log_probs(values, from_root).to(self.device)

    def among(self, first: int, last: int, item: Tensor, head: Tensor, dependent: Tensor) -> Tensor:
        return self.at(item, head, dependent)

    def at(self, item: Tensor, head: Tensor, dependent: Tensor) -> Tensor:
        return self._cache.at(item.cpu(), head.cpu(), dependent.cpu()).to(self.device)

    def of_items(self, items: Tensor) -> "LinearLabels":
        chosen = items.cpu().numpy()
        same = self.templates, self.table, self.root_label, self.device
        return LinearLabels(self.nodes[chosen], self.lengths[chosen], *same)

    def _look_up(self, item: Tensor, head: Tensor, dependent: Tensor) -> Tensor:
        arcs = torch.stack([item, head, dependent], -1).numpy()
        scores = score_labels(self.nodes, self.lengths, self.templates, self.table, arcs)
        return self.log_probs(torch.from_numpy(scores), head == 0)


def as_arrays(templates: Sequence[Template], attributes: Sequence[str], kind: str) -> Templates:
    """Return templates as a kernel reads them, by the indices of attributes; those of another kind hash differently."""
    slots = np.full((3, len(templates), MOST_SLOTS, 2), -1)
    salts, between = np.zeros((3, len(templates)), np.uint32), np.full(len(templates), -1)
    for t, template in enumerate(templates):
        counts = [0, 0, 0]
        for slot in template.slots:
            index = attributes.index(slot.attribute)
            if slot.role == BETWEEN:
                between[t] = index
                continue
            role = ROLES[slot.role]
            slots[role, t, counts[role]] = index, slot.offset
            counts[role] += 1
        salts[:, t] = [text_hash(f"{kind} {template} {role}") for role in range(3)]
    return Templates(slots, salts, between, np.array([template.distance for template in templates], np.bool_))


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
        self.arrays: dict[str, Any] = {
            kind: as_arrays(of_kind, attributes, kind) for kind, of_kind in templates.items()
        }
        self.parts: nn.Parameter = nn.Parameter(torch.zeros(2**bits, dtype=SAVED), requires_grad=False)
        self.labels: nn.Parameter = nn.Parameter(torch.zeros(2**label_bits, labels, dtype=SAVED), requires_grad=False)
        self.scales: nn.Parameter = nn.Parameter(torch.ones(2), requires_grad=False)

    def forward(self, batch: Batch) -> ScorerOutput:
        scale_of_parts, scale_of_labels = self.scales.tolist()
        nodes, lengths, device = nodes_of(batch), batch.on_cpu.lengths.numpy(), self.parts.device
        arcs, *others = self.scores(batch, byte_table(self.parts, scale_of_parts))
        table, root = byte_table(self.labels, scale_of_labels), self.root_label
        labels = LinearLabels(nodes, lengths, self.arrays["labels"], table, root, device)
        return ScorerOutput(arcs.to(device), labels, others=tuple(scores.to(device) for scores in others))

    def scores(self, batch: Batch, table: WeightTable) -> list[Tensor]:
        """Return the scores ``(B, n+1, n+1)`` of arcs and ``(B, n+1, n+1, n+1)`` of other parts, on the CPU."""
        nodes, lengths = nodes_of(batch), batch.on_cpu.lengths.numpy()
        arcs = score_arcs(nodes, lengths, self.arrays["arcs"], table)
        others = (
            score_triples(nodes, lengths, self.arrays[kind], table, siblings=kind == "siblings") for kind in self.kinds
        )
        return [torch.from_numpy(scores) for scores in (arcs, *others)]

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
