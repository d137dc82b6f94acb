"""The biaffine scorer of arcs, labels and tags, and of parts of three words, over any encoder."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from treeparse.batch import Batch
from treeparse.model.scorer import EncoderScorer, LabelLogProbs, PartScores, ScorerOutput
from treeparse.nn import ArcBiaffine, Encoder, LabelBiaffine, TagScorer
from treeparse.nn.biaffine import LabelVectors, PairTerms, Projections, exact_product
from treeparse.trees.labels.sources import ArcRows, with_root_rule

ROLES = 3  # of the words of a part: head, dependent and another one
MIXED = 2**24  # most numbers in memory at once when labels are scored arc by arc
TABLE = 2**24  # most numbers of all arcs that are scored at once with gradients


class PartTrilinear(nn.Module):
    """Score parts: score(head, dependent, other) = sum_r head_r dependent_r (W other)_r, a trilinear form of low rank.

    For a dependent without a sibling the other node is the head itself.
    """

    def __init__(self, size: int) -> None:
        super().__init__()
        self.weight: nn.Parameter = nn.Parameter(torch.zeros(size, size))

    def forward(self, heads: Tensor, dependents: Tensor, others: Tensor, arcs: Tensor | None = None) -> Tensor:
        """Score vectors of nodes in three roles (B, T, size) as parts (B, T, T, T), head first, other node last.

        With ``arcs`` (B, T, T) bool, the parts of other arcs score 0. On a GPU all parts are scored, because it scores
        them faster than it finds the arcs.
        """
        nodes, dtype = heads.shape[1], self.weight.dtype
        third = exact_product(others, self.weight.T, dtype).transpose(1, 2)
        with torch.autocast(heads.device.type, enabled=False):  # for arcs as for parts: bfloat16 has too few digits
            heads, dependents = heads.to(dtype), dependents.to(dtype)
            if arcs is not None and arcs.device.type == "cpu":
                return _of_arcs(arcs, heads, dependents, third)
            pairs = heads.unsqueeze(2) * dependents.unsqueeze(1)
            return (pairs.flatten(1, 2) @ third).unflatten(1, (nodes, nodes))


def _of_arcs(arcs: Tensor, heads: Tensor, dependents: Tensor, third: Tensor) -> Tensor:
    """Score the parts of some arcs; ``third`` are the vectors of other nodes (B, size, T)."""
    items, nodes, size = heads.shape
    rows = _rows_by_item(arcs)
    of_heads = heads.flatten(0, 1).index_select(0, rows // nodes)
    of_dependents = dependents.flatten(0, 1).index_select(0, rows // nodes**2 * nodes + rows % nodes)
    scores = ((of_heads * of_dependents).view(items, -1, size) @ third).flatten(0, 1)
    return scores.new_zeros(items * nodes**2, nodes).index_copy_(0, rows, scores).view(items, nodes, nodes, nodes)


def _rows_by_item(arcs: Tensor) -> Tensor:
    """Return the indices into flattened arcs (B, T, T) of each item's arcs, one item after the other.

    All items have as many indices as the one with the most arcs, those of [0, 0], which is no arc, after their own.
    """
    items, cells = len(arcs), arcs.shape[1:].numel()
    arcs = arcs.flatten(1)
    counts = arcs.sum(1)
    most = int(counts.max())
    first = torch.arange(items)
    rows = (cells * first).repeat_interleave(most)
    places = torch.arange(int(counts.sum())) + (most * first - counts.cumsum(0) + counts).repeat_interleave(counts)
    rows[places] = arcs.flatten().nonzero().squeeze(-1)
    return rows


class BiaffineScorer(EncoderScorer):
    """Deep biaffine scores of arcs and labels over any encoder ([DM] §3), and a softmax for each column of tags.

    Args:
        encoder: computes the vectors of nodes.
        labels: number of labels.
        root_label: index of the label of arcs from the root; -1 if no label is reserved for them.
        arc_size: size of the vectors that score arcs.
        label_size: size of the vectors that score labels.
        dropout: dropout of all these vectors.
        tags: the tags of each column that is predicted.
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
        tags: Mapping[str, Sequence[str]],
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


class BiaffineLabels(LabelLogProbs):
    """A ``treeparse.trees.LabelSource`` of the scores of a network.

    The source caches results: without gradients, on the CPU, the label scores of each arc that was read; with gradients
    the terms of all arcs, after they were computed.

    Args:
        vectors: the label vectors of a batch.
        root_label: index of the label of arcs from the root, -1 if no label is reserved for them.
    """

    vectors: LabelVectors

    def __init__(self, vectors: LabelVectors, root_label: int) -> None:
        super().__init__(vectors.heads.shape, vectors.biaffine.heads.out_features, root_label)
        self.vectors, self.dtype, self.device = vectors, vectors.heads.dtype, vectors.heads.device
        self.requires_grad: bool = torch.is_grad_enabled() and vectors.biaffine.weight.requires_grad
        self._terms: PairTerms | None = None  # of all arcs, with gradients
        self._cache = ArcRows(self.shape, self._look_up, self._step)

    def from_heads(self, first: int, last: int) -> Tensor:
        with torch.set_grad_enabled(self.requires_grad and torch.is_grad_enabled()):
            values = self.vectors.scores_from(first, last)
            from_root = torch.arange(first, last, device=self.device).reshape(1, -1, 1) == 0
            return self.log_probs(values, from_root)

    def among(self, first: int, last: int, item: Tensor, head: Tensor, dependent: Tensor) -> Tensor:
        with torch.set_grad_enabled(self.requires_grad and torch.is_grad_enabled()):
            scores = self._terms_from(first, last).at(item, head - first, dependent)
            return with_root_rule(scores, head == 0, self.root_label)

    def at(self, item: Tensor, head: Tensor, dependent: Tensor) -> Tensor:
        if self.requires_grad:
            # For several trees a sentence, one product for all arcs is faster.
            many = len(item) > self.shape[0] * self.shape[1] and self.shape.numel() <= TABLE
            if many or self._terms is not None:
                return self.among(0, self.shape[1], item, head, dependent).log_softmax(-1)
            return self._look_up(item, head, dependent)
        with torch.no_grad():
            if self.device.type != "cpu":  # because finding the new arcs would sync
                return torch.cat([*map(self._look_up, *(part.split(self._step) for part in (item, head, dependent)))])
            return self._cache.at(item, head, dependent)

    def of_items(self, items: Tensor) -> "BiaffineLabels":
        vectors = replace(self.vectors, heads=self.vectors.heads[items], dependents=self.vectors.dependents[items])
        with torch.set_grad_enabled(self.requires_grad):
            return BiaffineLabels(vectors, self.root_label)

    def _terms_from(self, first: int, last: int) -> PairTerms:
        """Return the terms of all arcs from heads ``first`` to ``last - 1``; cache those of all heads."""
        if self._terms is not None and (first, last) == (0, self.shape[1]):
            return self._terms
        terms = self.vectors.terms(first, last)
        if terms.bilinear.requires_grad and (first, last) == (0, self.shape[1]):
            self._terms = terms
        return terms

    @property
    def _step(self) -> int:
        """The number of arcs to score at once."""
        return max(1, MIXED // (self.count * self.vectors.heads.shape[-1]))

    def _look_up(self, item: Tensor, head: Tensor, dependent: Tensor) -> Tensor:
        return self.log_probs(self.vectors.scores_at(item, head, dependent), head == 0)
