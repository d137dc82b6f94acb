"""Training of linear models: steps of averaged perceptron, MIRA and log-linear, and epochs that survive a kill."""

import math
import random
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from treeparse.batch import Batch
from treeparse.data.features.indexer import Indexer
from treeparse.data.parses import with_parses
from treeparse.errors import TreeparseError
from treeparse.kernels import IntArray
from treeparse.kernels.linear_features import Templates
from treeparse.kernels.linear_scores import WeightTable
from treeparse.kernels.linear_updates import (
    LOG_LINEAR,
    MIRA,
    PERCEPTRON,
    WeightedParts,
    add_vectors,
    feature_vectors,
    inner_products,
    margin_steps,
    update_labels,
)
from treeparse.metrics import TreebankScores
from treeparse.model import Parser
from treeparse.model.linear_scorer import LinearScorer, nodes_of
from treeparse.names import Algorithm
from treeparse.progress import Bar, Console
from treeparse.sentence import Sentence
from treeparse.training.resolve import batches_per_step
from treeparse.training.run_directory import (
    EpochRecord,
    RunDirectory,
    RunState,
    best_record,
    is_finished,
    load_checkpoint,
    save_checkpoint,
    write_csv,
)
from treeparse.training.train_config import (
    DEFAULT_OBJECTIVE,
    LinearLearningConfig,
    ResolvedConfig,
    TrainConfig,
)
from treeparse.training.trainer import on_one_device
from treeparse.trees import TreeCRF
from treeparse.trees.parts import PartKind

LEAST_GRADIENT = 1e-3  # of a part whose features log-linear learning updates
LABEL_ALGORITHMS: Mapping[Algorithm, int] = {"perceptron": PERCEPTRON, "mira": MIRA, "log_linear": LOG_LINEAR}


def tree_cells(heads: Tensor, lengths: Tensor, kinds: Sequence[PartKind]) -> list[IntArray]:
    """Return the parts of trees ``(T, n+1)``, arcs first: ``(T, n+1)`` indices into flattened scores, -1 for none."""
    size = heads.shape[-1]
    arcs = np.where(heads.numpy() >= 0, heads.numpy() * size + np.arange(size), -1)
    return [arcs, *(kind.of_trees(heads, lengths).numpy() for kind in kinds)]


def differences(
    gold: Tensor,
    trees: Tensor,
    lengths: Tensor,
    kinds: Sequence[PartKind],
    arrays: Mapping[str, Templates],
) -> list[WeightedParts]:
    """Return gold trees ``(B, n+1)`` less each of k others ``(B, k, n+1)``: ``B * k`` vectors, by kind of part.

    Parts that two trees share cancel out and are left out.
    """
    items, k, size = trees.shape
    of_gold = tree_cells(gold, lengths, kinds)
    of_trees = tree_cells(trees.reshape(-1, size), lengths.repeat_interleave(k), kinds)
    result = []
    for name, own, others in zip(_names(kinds), of_gold, of_trees, strict=True):
        others = others.reshape(items, k, -1)
        item, rank, word = np.nonzero(own[:, np.newaxis] != others)
        cells = np.stack([own[item, word], others[item, rank, word]], -1).ravel()
        coefficients = np.tile(np.array([1, -1], np.float32), len(item))
        vectors, item = np.repeat(item * k + rank, 2), np.repeat(item, 2)
        real = cells >= 0
        parts = item[real], cells[real], vectors[real], coefficients[real]
        result.append(WeightedParts(*parts, arrays[name], name == "arcs"))
    return result


def gradients(
    values: Sequence[Tensor], kinds: Sequence[PartKind], arrays: Mapping[str, Templates], least: float
) -> list[WeightedParts]:
    """Return values of parts ``(B, ...)`` by kind, arcs first, as one vector an item; below ``least`` they are 0."""
    result = []
    for name, value in zip(_names(kinds), values, strict=True):
        flat = value.flatten(1).numpy()
        item, cell = np.nonzero(np.abs(flat) > least)
        result.append(
            WeightedParts(item, cell, item, flat[item, cell].astype(np.float32), arrays[name], name == "arcs")
        )
    return result


def _names(kinds: Sequence[PartKind]) -> list[str]:
    return ["arcs", *(kind.name for kind in kinds)]


def vector_scores(parts: Sequence[WeightedParts], scores: Sequence[Tensor], count: int) -> np.ndarray:
    """Return the inner products ``(count,)`` of vectors and weights, from the scores ``(B, ...)`` of parts."""
    total = np.zeros(count)
    for part, values in zip(parts, scores, strict=True):
        own = values.flatten(1).numpy()[part.items, part.cells] * part.coefficients
        total += np.bincount(part.vectors, own, count)
    return total


@dataclass(frozen=True)
class Scored:
    """A batch under the present weights: the distribution of its trees, its scores, and its gold trees."""

    trees: TreeCRF
    scores: list[Tensor]  # (B, ...) of arcs and other parts, float32
    known: Tensor  # (B, n+1) the known heads; -1 for others
    gold: Tensor  # (B, n+1) the same where all are known, otherwise the best tree that agrees with them


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
        self.kinds: tuple[PartKind, ...] = parser.config.tree_family.part_kinds
        parts, labels = scorer.weights()
        self.weights: dict[str, Tensor] = {"parts": parts, "labels": labels}
        self.sums: dict[str, Tensor] = {
            name: torch.zeros(weights.shape, dtype=torch.float64) for name, weights in self.weights.items()
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
        return {name: (weights - self.sums[name] / self.step).float() for name, weights in self.weights.items()}

    def state(self) -> dict[str, Any]:
        """Return what `restore` reads."""
        return {"step": self.step, "weights": self.weights, "sums": self.sums}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from the steps, weights and sums of a checkpoint."""
        self.step, self.weights, self.sums = state["step"], state["weights"], state["sums"]

    def _scored(self, batch: Batch) -> Scored:
        scores = self.scorer.scores(batch, WeightTable(self.weights["parts"].numpy()))
        trees = self._trees(scores, batch.lengths)
        heads = batch.heads if batch.heads is not None else torch.full(scores[0].shape[:2], -1)
        known = _agreeing(trees, heads, batch)
        return Scored(trees, scores, heads, heads if known is None else known.mode)

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
            trees = self._trees([scored.scores[0] + cost, *scored.scores[1:]], batch.lengths)
        heads = trees.mode.unsqueeze(1) if k == 1 else trees.topk(k).heads.transpose(0, 1)
        heads = torch.where((heads[..., 1:2] < 0) & (k > 1), gold.unsqueeze(1), heads)  # past the number of trees
        wrong = ((known.unsqueeze(1) != heads) & (known.unsqueeze(1) >= 0)).sum(-1).double().numpy()
        parts = differences(gold, heads, batch.lengths, self.kinds, self.scorer.arrays)
        count = wrong.size
        vectors = feature_vectors(nodes_of(batch), batch.lengths.numpy(), parts, count, self._weights)
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
            trees = self._trees(leaves, batch.lengths)
            known, scores = _agreeing(trees, scored.known, batch), self._score(scored.gold, batch.lengths, leaves)
            if known is not None:
                is_partial = ((scored.known < 0) & batch.word_mask()).any(-1)
                scores = torch.where(is_partial, known.log_partition, scores)
            losses = trees.log_partition - scores
            loss = torch.where(losses.isfinite(), losses, 0.0).sum()  # known arcs that cross are in no tree
            slopes = torch.autograd.grad(-loss, leaves)
        parts = gradients(slopes, self.kinds, self.scorer.arrays, LEAST_GRADIENT)
        vectors = feature_vectors(nodes_of(batch), batch.lengths.numpy(), parts, len(batch), self._weights)
        rates = np.full(len(batch), self.rate)
        add_vectors(vectors, rates, self.step, self._weights, self.sums["parts"].numpy())
        return float(loss)

    def _score(self, gold: Tensor, lengths: Tensor, scores: list[Tensor]) -> Tensor:
        """Return the scores ``(B,)`` of the gold trees, also of those whose arcs cross where no tree's do."""
        total = torch.zeros(len(gold), dtype=torch.float64)
        for cells, parts in zip(tree_cells(gold, lengths, self.kinds), scores, strict=True):
            index = torch.from_numpy(cells)
            values = parts.flatten(1).gather(1, index.clamp_min(0)).double()
            total = total + torch.where(index >= 0, values, 0.0).sum(-1)
        return total

    def _learn_labels(self, batch: Batch, heads: Tensor) -> float:
        labels = batch.labels
        if labels is None:
            return 0.0
        possible = batch.possible_labels
        if possible is None:
            possible = torch.ones(len(batch), self.weights["labels"].shape[1], dtype=torch.bool)
        item, word = ((labels >= 0) & (heads >= 0)).nonzero(as_tuple=True)
        arcs = torch.stack([item, heads[item, word], word, labels[item, word]], -1).numpy()
        rate = self.rate if self.config.algorithm == "log_linear" else self.config.step_limit
        return update_labels(
            nodes_of(batch),
            batch.lengths.numpy(),
            self.scorer.arrays["labels"],
            arcs,
            possible.numpy(),
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


@dataclass(frozen=True)
class LinearTraining:
    """Everything that the epochs of a run of a linear model need."""

    config: ResolvedConfig
    parser: Parser
    train: Sequence[Sentence]
    dev: Sequence[Sentence]
    identity: Mapping[str, Any]

    @property
    def indexer(self) -> Indexer:
        """The indexer of the batches."""
        return self.parser.indexer


def check_linear(config: TrainConfig) -> None:
    """Raise for settings that linear models have no use for, so that nothing is silently left out."""
    if batches_per_step(config.trainer, 1) > 1 or not on_one_device(config.trainer):
        raise TreeparseError(
            "A linear model learns on one processor: leave out trainer.devices, trainer.num_nodes and "
            "trainer.accumulate_grad_batches."
        )
    if config.objective.get("class_path") != DEFAULT_OBJECTIVE:
        raise TreeparseError(
            "A linear model is trained by learning.algorithm, not by an objective: leave out objective, or choose "
            "another model.scorer."
        )
    weights = {treebank.weight for treebank in config.data.treebanks.values()}
    if config.data.unlabelled is not None or config.data.temperature is not None or len(weights) > 1:
        raise TreeparseError(
            "A linear model learns from whole treebanks alone: leave out data.unlabelled, data.temperature and weights "
            "of data.treebanks."
        )
    if config.learning.algorithm == "log_linear" and not config.model.tree_family.has_sums:
        raise TreeparseError(
            f"learning.algorithm log_linear needs probabilities, which trees {config.model.trees} do not have: choose "
            "perceptron or mira."
        )


def fit_linear(
    training: LinearTraining, run: RunDirectory, history: list[EpochRecord], console: Console
) -> list[EpochRecord]:
    """Train the epochs after a history and return the history of all."""
    settings, learner = training.config.learning, LinearLearner(training.parser, training.config.learning)
    if history:
        learner.restore(load_checkpoint(run.state))
    evaluated = Parser(training.parser.config, training.parser.indexer).eval()
    with console.during("indexing the sentences"):
        batches = _batches(training)
    words = sum(map(len, training.train))
    console.say(f"{len(training.train):,} sentences, {words:,} words: up to {settings.epochs:,} epochs")
    while not is_finished(history, epochs=settings.epochs, patience=settings.patience):
        record = _epoch(training, learner, batches, evaluated, len(history) + 1, console)
        history.append(record)
        is_best = best_record(history) is record
        if is_best:
            run.write_best(record, evaluated.state_dict())
        state = RunState(training.identity, history, torch.get_num_threads()).to_plain()
        save_checkpoint(run.state, state | learner.state())
        write_csv(run.metrics, history)
        console.say(f"{record}{'   best so far' if is_best and record.dev_uas is not None else ''}")
    return history


def _epoch(
    training: LinearTraining,
    learner: LinearLearner,
    batches: Sequence[Batch],
    evaluated: Parser,
    epoch: int,
    console: Console,
) -> EpochRecord:
    """Make the steps of an epoch, counted from 1, and measure the averaged weights on the dev set."""
    started, loss, order = time.perf_counter(), 0.0, [*range(len(batches))]
    random.Random(f"{training.config.seed}/{epoch}").shuffle(order)
    learner.rate = learner.config.rate / epoch**0.5
    with Bar(len(order), stream=sys.stdout, hidden=not console.shows_bars, desc=f"epoch {epoch}", unit="step") as bar:
        for index in order:
            loss += learner.learn(batches[index])
            bar.update()
    words, seconds = sum(map(len, training.train)), time.perf_counter() - started
    assert isinstance(evaluated.scorer, LinearScorer)
    evaluated.scorer.set_weights(**learner.averages())
    scores = TreebankScores.of(training.dev, training.config.data.dev_choice)
    if training.dev:
        scores.update(training.dev, with_parses(training.dev, evaluated.parse(training.dev)))
    computed = {name: float(value) for name, value in scores.compute().items()} if training.dev else {}
    values = {name: value for name, value in computed.items() if not math.isnan(value)}
    return EpochRecord(
        epoch=epoch,
        loss=loss / words,
        learning_rate=learner.rate,
        dev_uas=values.get("uas"),
        dev_las=values.get("las"),
        words_per_second=words / seconds,
        seconds=time.perf_counter() - started,
        dev_treebanks={name: value for name, value in values.items() if "/" in name},
    )


def _batches(training: LinearTraining) -> list[Batch]:
    """Return the batches of all epochs: sentences of similar length."""
    order, size = [*range(len(training.train))], training.config.learning.batch_sentences
    random.Random(f"{training.config.seed}/batches").shuffle(order)
    order.sort(key=lambda index: len(training.train[index]))
    chunks = (order[start : start + size] for start in range(0, len(order), size))
    return [training.parser.indexer.collate([training.train[index] for index in chunk], chunk) for chunk in chunks]
