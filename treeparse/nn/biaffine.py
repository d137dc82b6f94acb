"""Biaffine scores of arcs and labels, and scores of words' tags: a softmax over the tags of each column."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import torch
from torch import Tensor, nn
from torch.nn import functional

from treeparse.kernels.networks import add_pair_products
from treeparse.nn.embedding import SharedDropout
from treeparse.nn.precision import may_use_kernels
from treeparse.sentence import EMPTY

SLOPE = 0.1  # of the leaky ReLU at negative inputs


class Projection(nn.Module):
    """One hidden layer that projects an encoder's vectors for one role: head or dependent, of arcs or of labels."""

    def __init__(self, input_size: int, output_size: int, dropout: float) -> None:
        super().__init__()
        self.linear: nn.Linear = nn.Linear(input_size, output_size)
        self.activation: nn.Module = nn.LeakyReLU(SLOPE)
        self.dropout: SharedDropout = SharedDropout(dropout)
        nn.init.orthogonal_(self.linear.weight)
        nn.init.zeros_(self.linear.bias)

    def forward(self, nodes: Tensor) -> Tensor:
        return self.dropout(self.activation(self.linear(nodes)))


class Projections(nn.ModuleList):
    """One projection for each of several roles, all from the same vectors."""

    def __init__(self, input_size: int, output_sizes: Sequence[int], dropout: float) -> None:
        super().__init__(Projection(input_size, size, dropout) for size in output_sizes)

    def forward(self, nodes: Tensor) -> Sequence[Tensor]:
        """Project vectors (B, T, input_size) to (B, T, size) for each role."""
        layers = [role.linear for role in self if isinstance(role, Projection) and type(role.linear) is nn.Linear]
        if self.training or torch.is_grad_enabled() or len(layers) < len(self):
            return [role(nodes) for role in self]
        weight, bias = (torch.cat([getattr(layer, name) for layer in layers]) for name in ("weight", "bias"))
        # One product of the concatenated weights is faster than a product for each role.
        projected = functional.leaky_relu(functional.linear(nodes, weight, bias), SLOPE)
        return [part.contiguous() for part in projected.split([layer.out_features for layer in layers], -1)]


class ArcBiaffine(nn.Module):
    """Score arcs: score(head -> dependent) = head^T W dependent + head^T b ([DM] equation 6)."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.weight: nn.Parameter = nn.Parameter(torch.zeros(size, size))
        self.bias: nn.Parameter = nn.Parameter(torch.zeros(size))

    def forward(self, heads: Tensor, dependents: Tensor) -> Tensor:
        """Score vectors of heads and of dependents (B, T, size) as arcs (B, T, T), head first."""
        return exact_product(heads, (dependents @ self.weight.T + self.bias).transpose(1, 2), self.weight.dtype)


class LabelBiaffine(nn.Module):
    """Score labels: score_l = head^T W_l dependent + u_l^T head + v_l^T dependent + b_l ([DM] equation 3)."""

    def __init__(self, size: int, labels: int) -> None:
        super().__init__()
        self.weight: nn.Parameter = nn.Parameter(torch.zeros(size, labels * size))
        self.heads: nn.Linear = nn.Linear(size, labels)
        self.dependents: nn.Linear = nn.Linear(size, labels, bias=False)
        self.mixer: nn.Module | None = None  # computes heads @ weight instead of torch, for example in int8

    def forward(self, heads: Tensor, dependents: Tensor) -> Tensor:
        """Score the labels (N, labels) of N arcs from the vectors (N, size) of their heads and dependents."""
        mixed = self._mixed(heads).unflatten(-1, (-1, dependents.shape[-1]))
        bilinear = exact_product(mixed, dependents.unsqueeze(-1), self.weight.dtype).squeeze(-1)
        return bilinear + self.heads(heads) + self.dependents(dependents)

    def of_pairs(self, heads: Tensor, dependents: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
        """Score the labels (N, labels) of N arcs.

        Arc i goes from row ``rows[i]`` of ``heads`` (H, size) to row ``columns[i]`` of ``dependents`` (D, size).
        """
        if heads.dtype != torch.float32 or not may_use_kernels(heads.device):
            return self(heads[rows], dependents[columns])
        distinct, rows = rows.unique(return_inverse=True)  # compute heads @ weight once for each head
        heads = heads[distinct]
        scores = self.dependents(dependents[columns]) + self.heads(heads)[rows]
        mixed = self._mixed(heads), rows, dependents.contiguous(), columns
        add_pair_products(*(part.numpy() for part in mixed), scores.numpy())
        return scores

    def all_pairs(self, heads: Tensor, dependents: Tensor) -> Tensor:
        """Score the labels (B, H, T, labels) of all pairs of heads (B, H, size) and dependents (B, T, size)."""
        bilinear = self._bilinear(heads, dependents).transpose(1, 2)
        return bilinear + self.heads(heads).unsqueeze(2) + self.dependents(dependents).unsqueeze(1)

    def pair_terms(self, heads: Tensor, dependents: Tensor) -> "PairTerms":
        """The terms of `all_pairs`: faster where a large share of the pairs is read, or some pairs several times."""
        return PairTerms(self._bilinear(heads, dependents), self.heads(heads), self.dependents(dependents))

    def _mixed(self, heads: Tensor) -> Tensor:
        return heads @ self.weight if self.mixer is None else self.mixer(heads)

    def _bilinear(self, heads: Tensor, dependents: Tensor) -> Tensor:
        """The bilinear terms (B, T, H, labels), contiguous, because a pair's labels are read together."""
        mixed = self._mixed(heads).unflatten(-1, (-1, dependents.shape[-1])).flatten(1, 2)
        return exact_product(dependents, mixed.transpose(1, 2), self.weight.dtype).unflatten(2, (heads.shape[1], -1))


@dataclass(frozen=True)
class PairTerms:
    """The three terms whose sum is the label scores of a pair of head and dependent."""

    bilinear: Tensor  # (B, T, H, labels)
    heads: Tensor  # (B, H, labels)
    dependents: Tensor  # (B, T, labels)

    def at(self, item: Tensor, head: Tensor, dependent: Tensor) -> Tensor:
        """Return the label scores (A, labels) of the pairs with these batch items, heads and dependents (A,)."""
        _, columns, rows, _ = self.bilinear.shape
        column = item * columns + dependent
        pairs = self.bilinear.flatten(0, 2).index_select(0, column * rows + head)
        of_heads = self.heads.flatten(0, 1).index_select(0, item * rows + head)
        return pairs + of_heads + self.dependents.flatten(0, 1).index_select(0, column)


@dataclass(frozen=True)
class LabelVectors:
    """Vectors of all nodes, as heads and as dependents, which score the labels of chosen arcs on demand."""

    heads: Tensor  # (B, n+1, size)
    dependents: Tensor  # (B, n+1, size)
    biaffine: LabelBiaffine

    def scores_at(self, item: Tensor, head: Tensor, dependent: Tensor) -> Tensor:
        """Return the label scores (A, labels) of the arcs with these batch items, heads and dependents (A,)."""
        first = item * self.heads.shape[1]
        heads, dependents = self.heads.flatten(0, 1), self.dependents.flatten(0, 1)
        return self.biaffine.of_pairs(heads, dependents, first + head, first + dependent)

    def scores_from(self, first: int, last: int) -> Tensor:
        """Return the label scores (B, last - first, n+1, labels) of all arcs from heads ``first`` to ``last - 1``."""
        return self.biaffine.all_pairs(self.heads[:, first:last], self.dependents)

    def terms(self, first: int, last: int) -> PairTerms:
        """Return the terms of `scores_from`; their ``at`` counts heads from ``first``."""
        return self.biaffine.pair_terms(self.heads[:, first:last], self.dependents)


class TagScorer(nn.Module):
    """Log probabilities of the tags of each column from vectors of ``input_size``, without columns without weights.

    Each tag of UPOS and XPOS has its own weights. The score of a tag of FEATS is the sum of the scores of its features,
    because rare combinations then learn from common ones. The scorer predicts only tags that are in ``tags``.
    """

    def __init__(self, input_size: int, tags: Mapping[str, Sequence[str]]) -> None:
        super().__init__()
        self.columns: nn.ModuleDict = nn.ModuleDict(
            {
                column: FeatureSums(input_size, names) if column == "feats" else nn.Linear(input_size, len(names))
                for column, names in tags.items()
            }
        )

    def forward(self, nodes: Tensor) -> dict[str, Tensor]:
        """Map vectors (B, n+1, input_size) to log probabilities (B, n+1, tags) by column, in the weights' dtype."""
        if not self.columns:
            return {}
        with torch.autocast(nodes.device.type, enabled=False):
            exact = nodes.to(next(self.parameters()).dtype)
            return {column: layer(exact).log_softmax(-1) for column, layer in self.columns.items()}


class FeatureSums(nn.Module):
    """Score tags of FEATS by their features, in the order in which ``tags`` first have them; "_" scores 0."""

    is_in_tag: Tensor  # (features, tags), 1 or 0

    def __init__(self, input_size: int, tags: Sequence[str]) -> None:
        super().__init__()
        features_by_tag = [tag.split("|") if tag != EMPTY else [] for tag in tags]
        features = [*dict.fromkeys(chain.from_iterable(features_by_tag))]
        self.linear: nn.Linear = nn.Linear(input_size, len(features))
        table = torch.zeros(len(features), len(tags))
        rows = {feature: row for row, feature in enumerate(features)}
        for column, of_tag in enumerate(features_by_tag):
            table[[rows[feature] for feature in of_tag], column] = 1.0
        self.register_buffer("is_in_tag", table, persistent=False)

    def forward(self, nodes: Tensor) -> Tensor:
        """Map vectors (B, n+1, input_size) to scores (B, n+1, tags)."""
        return self.linear(nodes) @ self.is_in_tag


def exact_product(left: Tensor, right: Tensor, dtype: torch.dtype) -> Tensor:
    """Multiply in the weights' dtype, under autocast too, because scores in bfloat16 have only two or three digits."""
    with torch.autocast(left.device.type, enabled=False):
        return left.to(dtype) @ right.to(dtype)
