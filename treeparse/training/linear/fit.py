"""The epochs of a run of a linear model, with state and logs that survive a kill."""

import random
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from treeparse.batch import Batch
from treeparse.data.parses import with_parses
from treeparse.errors import TreeparseError
from treeparse.metrics import AttachmentScores
from treeparse.model import Parser
from treeparse.model.scorers.linear import LinearScorer
from treeparse.progress import Bar, Console
from treeparse.sentence import Sentence
from treeparse.training.linear.learner import LinearLearner
from treeparse.training.settings.config import DEFAULT_OBJECTIVE, ResolvedConfig, TrainConfig
from treeparse.training.settings.resolve import batches_per_step
from treeparse.training.settings.trainer import on_one_device
from treeparse.training.state.history import EpochRecord, best_record, is_finished, write_csv
from treeparse.training.state.run_directory import RunDirectory, RunState, load_checkpoint, save_checkpoint
from treeparse.trees.tree_kinds import have_sums


@dataclass(frozen=True)
class LinearTraining:
    """Everything that the epochs of a run of a linear model need."""

    config: ResolvedConfig
    parser: Parser
    train: Sequence[Sentence]
    dev: Sequence[Sentence]
    identity: Mapping[str, Any]


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
    if config.data.unlabelled is not None or config.data.temperature is not None:
        raise TreeparseError(
            "A linear model learns from whole treebanks alone: leave out data.unlabelled and data.temperature."
        )
    if config.learning.algorithm == "log_linear" and not have_sums(config.model.trees):
        raise TreeparseError(
            f"learning.algorithm log_linear needs probabilities, which trees {config.model.trees} do not have: choose "
            "perceptron or mira."
        )


def fit_linear(
    training: LinearTraining, run: RunDirectory, state: RunState | None, console: Console
) -> list[EpochRecord]:
    """Train the remaining epochs and return the history of all."""
    settings, learner = training.config.learning, LinearLearner(training.parser, training.config.learning)
    history = [] if state is None else list(state.history)
    write_csv(run.metrics, history)
    if state is not None:
        _restore(learner, load_checkpoint(run.state))
    if is_finished(history, epochs=settings.epochs, patience=settings.patience):
        console.say(f"the run in {run.path} is finished; nothing is left to train")
        return history
    done = history[-1].epoch if history else 0
    if state is not None:
        console.say(f"resuming after epoch {done}")
    evaluated = Parser(training.parser.config, training.parser.indexer).eval()
    with console.during("indexing the sentences"):
        batches = _batches(training)
    words = sum(map(len, training.train))
    console.say(f"{len(training.train):,} sentences, {words:,} words: up to {settings.epochs:,} epochs")
    for epoch in range(done + 1, settings.epochs + 1):
        record = _epoch(training, learner, batches, evaluated, epoch, console)
        history.append(record)
        is_best = best_record(history) is record
        if is_best:
            run.write_best(record, evaluated.state_dict())
        save_checkpoint(run.state, _checkpoint(training, learner, history))
        write_csv(run.metrics, history)
        console.say(f"{record}{'   best so far' if is_best and record.dev_las is not None else ''}")
        if is_finished(history, epochs=settings.epochs, patience=settings.patience):
            break
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
    learner.start_epoch(epoch)
    with Bar(len(order), stream=sys.stdout, hidden=not console.shows_bars, desc=f"epoch {epoch}", unit="step") as bar:
        for index in order:
            loss += learner.learn(batches[index])
            bar.update()
    words, seconds = sum(map(len, training.train)), time.perf_counter() - started
    assert isinstance(evaluated.scorer, LinearScorer)
    evaluated.scorer.set_weights(**learner.averages())
    scores = AttachmentScores()
    if training.dev:
        scores.update(training.dev, with_parses(training.dev, evaluated.parse(training.dev)))
    values = scores.compute() if training.dev else None
    return EpochRecord(
        epoch=epoch,
        loss=loss / words,
        learning_rate=learner.rate,
        dev_uas=None if values is None else float(values["uas"]),
        dev_las=None if values is None else float(values["las"]),
        words_per_second=words / seconds,
        seconds=time.perf_counter() - started,
    )


def _batches(training: LinearTraining) -> list[Batch]:
    """Return the batches of all epochs: sentences of similar length."""
    order, size = [*range(len(training.train))], training.config.learning.batch_sentences
    random.Random(f"{training.config.seed}/batches").shuffle(order)
    order.sort(key=lambda index: len(training.train[index]))
    chunks = (order[start : start + size] for start in range(0, len(order), size))
    return [training.parser.indexer.collate([training.train[index] for index in chunk], chunk) for chunk in chunks]


def _checkpoint(training: LinearTraining, learner: LinearLearner, history: Sequence[EpochRecord]) -> dict[str, Any]:
    state = RunState(training.identity, history, torch.get_num_threads())
    return state.to_plain() | {"step": learner.step, "weights": learner.weights, "sums": learner.sums}


def _restore(learner: LinearLearner, checkpoint: Mapping[str, Any]) -> None:
    """Set the weights and sums of a checkpoint."""
    learner.weights = {name: checkpoint["weights"][name] for name in learner.weights}
    learner.sums = {name: checkpoint["sums"][name] for name in learner.sums}
    learner.step = checkpoint["step"]
