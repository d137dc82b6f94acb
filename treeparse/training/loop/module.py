"""The LightningModule: a parser, its loss, its optimiser and its scores on the dev set."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, cast

import numpy as np
import pytorch_lightning as pl
import torch
from torch import Tensor, nn
from torch.optim import AdamW, Optimizer

from treeparse.batch import Batch
from treeparse.data.parses import with_parses
from treeparse.errors import TreeparseError
from treeparse.metrics import AttachmentScores, tag_scores
from treeparse.model import Parser
from treeparse.objectives import Objective, Term
from treeparse.sentence import Sentence
from treeparse.training.loop.optimization import MovingAverage, build_optimizer, learning_rate, set_learning_rate
from treeparse.training.settings.config import ResolvedOptimization
from treeparse.training.state.history import EpochRecord
from treeparse.training.state.run_state import RunState

NAMED_SENTENCES = 5
EVERY = 50  # steps whose numbers are read together


class Step(NamedTuple):
    """A training step, as messages name it; ``batch`` is the CPU original if there is one."""

    epoch: int  # from 0
    batch: Batch
    batch_idx: int


class FiniteNumbers:
    """Raises for the first number that is not finite: at once on the CPU, elsewhere within ``every`` steps.

    Most steps cause no device sync. ``error`` returns the error of a problem at a step.
    """

    def __init__(self, error: Callable[[str, Step], Exception], every: int = EVERY) -> None:
        self._error, self._every = error, every
        self._pending: list[tuple[str, Tensor, Step]] = []

    def add(self, name: str, value: Tensor, step: Step) -> None:
        """Add a number of a step."""
        self._pending.append((name, value.detach().double(), step))
        if value.device.type == "cpu" or len({each.batch_idx for _, _, each in self._pending}) > self._every:
            self.sync()

    def sync(self) -> None:
        """Read the numbers since the last sync on the host; raise for the first that is not finite."""
        pending, self._pending = self._pending, []
        if not pending:
            return
        values = torch.stack([value for _, value, _ in pending]).tolist()
        for (name, _, step), value in zip(pending, values, strict=True):
            if not math.isfinite(value):
                raise self._error(f"{name} is {value}", step)


class ParserModule(pl.LightningModule):
    """Trains a parser; all randomness of an epoch derives from (seed, epoch).

    Args:
        parser: the parser.
        objective: the loss.
        config: how the loss is minimised.
        dev: the sentences of the dev set.
        name_of: returns what messages call the sentence of an index of a batch.
        seed: seed of dropout.
    """

    def __init__(
        self,
        parser: Parser,
        objective: Objective,
        config: ResolvedOptimization,
        *,
        dev: Sequence[Sentence],
        name_of: Callable[[int], str],
        seed: int,
    ) -> None:
        super().__init__()
        self.parser, self.objective, self.config, self.seed = parser, objective, config, seed
        self.learning = nn.ModuleList([parser, objective])
        self.average = None if config.average_decay is None else MovingAverage(parser, config.average_decay)
        self.scores = AttachmentScores()
        self.dev_sentences, self.name_of = dev, name_of
        self.step = 0
        self._numbers = FiniteNumbers(self._failed)
        self._optimizer_state: dict | None = None
        self._start_record()

    @property
    def evaluated(self) -> Parser:
        """The parser that the dev set evaluates and that becomes the final model."""
        return self.parser if self.average is None else cast(Parser, self.average.module)

    def restore(self, state: RunState) -> None:
        """Resume from a state, before ``Trainer.fit``; raise if it does not fit."""
        optimizer = self._new_optimizer()
        state = state.fitted(self.parser, self.objective, self.average, optimizer)
        self.parser.load_state_dict(state.weights)
        self.objective.load_state_dict(state.objective)
        if self.average is not None and state.average is not None:
            self.average.load_state_dict(state.average)
        self._optimizer_state = dict(state.optimizer)
        self.step = state.step

    def state(self, identity: Mapping[str, Any], history: Sequence[EpochRecord]) -> RunState:
        """Return the state at the end of an epoch, for `restore`."""
        return RunState(
            identity=identity,
            threads=torch.get_num_threads(),
            step=self.step,
            history=history,
            weights=self.parser.state_dict(),
            objective=self.objective.state_dict(),
            optimizer=self._optimizer.state_dict(),
            average=None if self.average is None else self.average.state_dict(),
        )

    def configure_optimizers(self) -> Optimizer:
        optimizer = self._new_optimizer()
        if self._optimizer_state is not None:
            optimizer.load_state_dict(optimizer.state_dict() | self._optimizer_state)
            self._optimizer_state = None
        return optimizer

    def _new_optimizer(self) -> AdamW:
        return build_optimizer(self.learning.parameters(), self.config, self.parser.scorer.rates())

    def _start_record(self) -> None:
        self._loss: Tensor | float = 0.0  # on the device; reading it is a sync
        self._words, self._seconds, self._dev_loss, self._dev_words = 0, 0.0, 0.0, 0
        self._dev_pairs: list[tuple[Sentence, Sentence]] = []  # gold and predicted
        self._terms = TermMeans()
        self._started = time.perf_counter()

    @property
    def mean_loss(self) -> float:
        """The mean loss since the last record, in nats a word."""
        return float(self._loss) / max(self._words, 1)

    def on_train_epoch_start(self) -> None:
        if self.current_epoch % self.config.dev_every == 0:
            self._start_record()

    def on_train_batch_start(self, batch: Batch, batch_idx: int) -> None:
        if batch_idx == 0:  # here, because from now on only the model draws random numbers
            torch.manual_seed(epoch_seed(self.seed, self.current_epoch))
        progress = (self.current_epoch + batch_idx / self.trainer.num_training_batches) / self.config.epochs
        set_learning_rate(self._optimizer, learning_rate(self.config, step=self.step, progress=progress))
        self.parser.scorer.advance(progress)
        self.objective.advance(progress)

    @property
    def _optimizer(self) -> Optimizer:
        return self.trainer.optimizers[0]

    def training_step(self, batch: Batch, batch_idx: int) -> Tensor:
        self._current = Step(self.current_epoch, batch.on_cpu, batch_idx)
        try:
            loss, terms = self.parser.loss_and_terms(batch, self.objective)
        except ValueError as error:
            self._numbers.sync()  # an earlier step may have made the weights not finite
            raise self._failed(str(error), self._current) from error
        self._numbers.add("the loss", loss, self._current)
        words = batch.num_words
        self._loss = self._loss + loss.detach().double() * words
        self._words += words
        for term in terms:
            self._terms.add(term)
        return loss

    def configure_gradient_clipping(self, optimizer: Optimizer, *_: object, **__: object) -> None:
        """Clip the gradient; a norm that is not finite ends the run, on the CPU before it reaches the weights."""
        limit = math.inf if self.config.clip_norm is None else self.config.clip_norm
        norm = torch.nn.utils.clip_grad_norm_(self.learning.parameters(), limit)
        self._numbers.add("the norm of the gradient", norm, self._current)

    def _failed(self, problem: str, step: Step) -> TreeparseError:
        indices = step.batch.indices.tolist()
        names = ", ".join(self.name_of(index) for index in indices[:NAMED_SENTENCES])
        more = f" and {len(indices) - NAMED_SENTENCES} more" if len(indices) > NAMED_SENTENCES else ""
        return TreeparseError(
            f"Training failed in epoch {step.epoch + 1}, batch {step.batch_idx + 1} (sentences {names}{more}): "
            f"{problem.rstrip('.')}. Try a lower optimization.learning_rate, more warmup_steps or a smaller clip_norm; "
            "the checkpoint of the last completed epoch is untouched."
        )

    def on_train_batch_end(self, outputs: object, batch: Batch, batch_idx: int) -> None:
        self.step += 1
        if self.average is not None:
            self.average.update_parameters(self.parser)

    def on_validation_epoch_start(self) -> None:
        self._numbers.sync()  # and waits for the last step
        self._seconds = time.perf_counter() - self._started
        self.scores.reset()
        self._dev_pairs = []

    def validation_step(self, batch: Batch, batch_idx: int) -> None:
        gold = [self.dev_sentences[index] for index in batch.on_cpu.indices.tolist()]
        parses, loss = self.evaluated.measure(batch, gold, self.objective)
        self._dev_loss += loss * batch.num_words
        self._dev_words += batch.num_words
        system = with_parses(gold, parses)
        self.scores.update(gold, system)
        if self.parser.tag_names:
            self._dev_pairs += zip(gold, system, strict=True)

    def record(self) -> EpochRecord:
        """Return the record of the epochs since the last record, with the scores of the dev set if there is one."""
        self._numbers.sync()
        scores = self.scores.compute() if self._dev_words else None
        elapsed = time.perf_counter() - self._started
        return EpochRecord(
            epoch=self.current_epoch + 1,
            loss=self.mean_loss,
            learning_rate=self._optimizer.param_groups[0]["lr"],
            dev_uas=None if scores is None else float(scores["uas"]),
            dev_las=None if scores is None else float(scores["las"]),
            words_per_second=self._words / (self._seconds or elapsed),
            seconds=elapsed,
            dev_loss=None if scores is None else self._dev_loss / self._dev_words,
            terms=self._terms.means(),
            dev_tags=tag_scores(*zip(*self._dev_pairs, strict=True)) if self._dev_pairs else {},
        )


class TermMeans:
    """Running means of the terms of a loss, each over the words of the sentences that it applies to."""

    def __init__(self) -> None:
        self._sums: dict[str, Tensor | float] = {}  # on the device
        self._words: dict[str, int] = {}

    def add(self, term: Term) -> None:
        """Add a term of a batch."""
        if term.mean is not None:
            self._sums[term.name] = self._sums.get(term.name, 0.0) + term.mean.detach().double() * term.words
            self._words[term.name] = self._words.get(term.name, 0) + term.words

    def means(self) -> dict[str, float]:
        """Return the means by name; none if there is one term only, which is the loss."""
        if len(self._sums) < 2:
            return {}
        return {name: float(total) / self._words[name] for name, total in self._sums.items()}


def epoch_seed(seed: int, epoch: int) -> int:
    """Return the seed of torch's generators in an epoch, 64 bits."""
    return int(np.random.SeedSequence((seed, epoch)).generate_state(1, np.uint64)[0])
