"""Steps of learning a linear model: averaged perceptron, MIRA and log-linear."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from treeparse.batch import Batch
from treeparse.kernels.linear.margins import margin_steps
from treeparse.kernels.linear.tables import WeightTable
from treeparse.kernels.linear.updates import (
    LOG_LINEAR,
    MIRA,
    PERCEPTRON,
    add_vectors,
    feature_vectors,
    inner_products,
    update_labels,
)
from treeparse.model import Parser
from treeparse.model.scorers.linear import LinearScorer, nodes_of
from treeparse.names import Algorithm
from treeparse.training.linear.vectors import differences, gradients, tree_cells, vector_scores
from treeparse.training.settings.config import LinearLearningConfig
from treeparse.trees import TreeCRF
from treeparse.trees.parts import PartKind
from treeparse.trees.tree_kinds import part_kinds

LEAST_GRADIENT = 1e-3  # of a part whose features log-linear learning updates
LABEL_ALGORITHMS: Mapping[Algorithm, int] = {"perceptron": PERCEPTRON, "mira": MIRA, "log_linear": LOG_LINEAR}


@dataclass(frozen=True)
class Scored:
    """A batch under the present weights: the distribution of its trees, its scores, and its gold trees."""

    trees: TreeCRF
    scores: list[Tensor]  # (B, ...) of arcs and other parts, float32
    known: Tensor  # (B, n+1) the known heads; -1 for others
    gold: Tensor  # (B, n+1) the same where all are known, otherwise the best tree that agrees with them
    lengths: Tensor  # (B,)


def _agreeing(trees: TreeCRF, heads: Tensor, batch: Batch) -> TreeCRF | None:
    """Return the distribution of the trees that agree with what is known; None if all heads of the batch are known."""
    if batch.allowed is None and not bool((heads.lt(0) & batch.word_mask()).any()):
        return None
    known = trees.given(heads)
    return known if batch.allowed is None else known.within(batch.allowed)


class LinearLearner:
    """Learns the weights of a linear parser, a batch at a time, and averages them over all steps.

    Attributes:
        step: the number of steps, from 1.
        weights: of parts and of labels, float32.
        sums: for each of them, the sum of changes times their steps, float64.
    """

    parser: Parser
    scorer: LinearScorer
    config: LinearLearningConfig

    def __init__(self, parser: Parser, config: LinearLearningConfig) -> None:
        scorer = parser.scorer
        assert isinstance(scorer, LinearScorer)
        self.parser, self.scorer, self.config = parser, scorer, config
        self.step: int = 1
        self.rate: float = config.rate
        self.kinds: tuple[PartKind, ...] = part_kinds(parser.config.trees)
        parts, labels = scorer.weights()
        self.weights: dict[str, Tensor] = {"parts": parts, "labels": labels}
        self.sums: dict[str, Tensor] = {
            name: torch.zeros(each.shape, dtype=torch.float64) for name, each in self.weights.items()
        }
        self._scratch = np.zeros(len(parts), np.float32)

    @torch.no_grad()
    def learn(self, batch: Batch) -> float:
        """Make a step on a batch with gold trees, and return its loss: that of the algorithm, and nats of labels."""
        scored = self._scored(batch)
        by_gradient = self.config.algorithm == "log_linear"
        loss = self._learn_gradient(batch, scored) if by_gradient else self._learn_margin(batch, scored)
        loss += self._learn_labels(batch, scored.gold)
        self.step += 1
        return loss

    def averages(self) -> dict[str, Tensor]:
        """Return the averages of the weights over all steps."""
        return {name: (each - self.sums[name] / self.step).float() for name, each in self.weights.items()}

    def start_epoch(self, epoch: int) -> None:
        """Set the rate of an epoch, counted from 1."""
        self.rate: float = self.config.rate / epoch**0.5

    def _scored(self, batch: Batch) -> Scored:
        scores = self.scorer.scores(batch, WeightTable(self.weights["parts"].numpy()))
        trees = self._trees(scores, batch.lengths)
        heads = batch.heads if batch.heads is not None else torch.full(scores[0].shape[:2], -1)
        known = _agreeing(trees, heads, batch)
        return Scored(trees, scores, heads, heads if known is None else known.mode, batch.lengths)

    def _trees(self, scores: list[Tensor], lengths: Tensor) -> TreeCRF:
        return self.parser.trees(scores, lengths, validate_args=False)

    def _learn_margin(self, batch: Batch, scored: Scored) -> float:
        """Learn from the best trees: by the perceptron, or by MIRA from the best by score and number of wrong words."""
        gold, known, is_mira = scored.gold, scored.known, self.config.algorithm == "mira"
        k = self.config.k if is_mira else 1
        trees = scored.trees
        if is_mira:
            cost = (known.unsqueeze(-2) >= 0).float().expand_as(scored.scores[0]).clone()
            cost.scatter_(-2, known.clamp_min(0).unsqueeze(-2), 0.0)
            trees = self._trees([scored.scores[0] + cost, *scored.scores[1:]], scored.lengths)
        heads = trees.mode.unsqueeze(1) if k == 1 else trees.topk(k).heads.transpose(0, 1)
        heads = torch.where((heads[..., 1:2] < 0) & (k > 1), gold.unsqueeze(1), heads)  # past the number of trees
        wrong = ((known.unsqueeze(1) != heads) & (known.unsqueeze(1) >= 0)).sum(-1).double().numpy()
        parts = differences(gold, heads, scored.lengths, self.kinds, self.scorer.arrays)
        count = wrong.size
        vectors = feature_vectors(nodes_of(batch), scored.lengths.numpy(), parts, count, self._weights)
        if is_mira:
            lacking = wrong - vector_scores(parts, scored.scores, count).reshape(wrong.shape)
            products = inner_products(vectors, k, self._scratch)
            rates = margin_steps(products, lacking, self.config.step_limit)
            loss = float(lacking.clip(0).max(1).sum())
        else:
            rates, loss = (wrong > 0).astype(np.float64), float(wrong.sum())
        add_vectors(vectors, rates.ravel(), self.step, self._weights, self.sums["parts"].numpy())
        return loss

    def _learn_gradient(self, batch: Batch, scored: Scored) -> float:
        """Learn by a step up the gradient of the log probability of the gold trees, as far as they are known."""
        with torch.enable_grad():
            leaves = [score.clone().requires_grad_() for score in scored.scores]
            trees = self._trees(leaves, scored.lengths)
            known, scores = _agreeing(trees, scored.known, batch), self._score(scored, leaves)
            if known is not None:
                is_partial = ((scored.known < 0) & batch.word_mask()).any(-1)
                scores = torch.where(is_partial, known.log_partition, scores)
            losses = trees.log_partition - scores
            loss = torch.where(losses.isfinite(), losses, 0.0).sum()  # known arcs that cross are in no tree
            slopes = torch.autograd.grad(-loss, leaves)
        parts = gradients(slopes, self.kinds, self.scorer.arrays, LEAST_GRADIENT)
        vectors = feature_vectors(nodes_of(batch), scored.lengths.numpy(), parts, len(batch), self._weights)
        rates = np.full(len(batch), self.rate)
        add_vectors(vectors, rates, self.step, self._weights, self.sums["parts"].numpy())
        return float(loss)

    def _score(self, scored: Scored, scores: list[Tensor]) -> Tensor:
        """Return the scores ``(B,)`` of the gold trees, also of those whose arcs cross where no tree's do."""
        total = torch.zeros(len(scored.gold), dtype=torch.float64)
        for cells, own in zip(tree_cells(scored.gold, scored.lengths, self.kinds), scores, strict=True):
            index = torch.from_numpy(cells)
            values = own.flatten(1).gather(1, index.clamp_min(0)).double()
            total = total + torch.where(index >= 0, values, 0.0).sum(-1)
        return total

    def _learn_labels(self, batch: Batch, heads: Tensor) -> float:
        labels = batch.labels
        if labels is None:
            return 0.0
        item, word = ((labels >= 0) & (heads >= 0)).nonzero(as_tuple=True)
        arcs = torch.stack([item, heads[item, word], word, labels[item, word]], -1).numpy()
        rate = self.rate if self.config.algorithm == "log_linear" else self.config.step_limit
        return update_labels(
            nodes_of(batch),
            batch.lengths.numpy(),
            self.scorer.arrays["labels"],
            arcs,
            LABEL_ALGORITHMS[self.config.algorithm],
            rate,
            self.scorer.root_label,
            self.step,
            self.weights["labels"].numpy(),
            self.sums["labels"].numpy(),
        )

    @property
    def _weights(self) -> np.ndarray:
        return self.weights["parts"].numpy()
