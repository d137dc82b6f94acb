"""The LightningModule: a parser, its loss, its optimiser and its scores on the dev set."""

import math
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple, cast

import numpy as np
import pytorch_lightning as pl
import torch
from torch import Tensor, nn
from torch.optim import AdamW, Optimizer

from treeparse.batch import Batch, moved
from treeparse.data.batches.steps import ShareOfStep
from treeparse.data.parses import Parse, with_parses
from treeparse.errors import TreeparseError
from treeparse.metrics import AttachmentScores, TagScores
from treeparse.model import Parser
from treeparse.objectives import Objective, Term
from treeparse.sentence import Sentence
from treeparse.training.loop.optimization import MovingAverage, build_optimizer, learning_rate, set_learning_rate
from treeparse.training.loop.processes import ALONE, Processes
from treeparse.training.settings.config import ResolvedOptimization
from treeparse.training.state.history import EpochRecord
from treeparse.training.state.run_state import RunState

NAMED_SENTENCES = 5
EVERY = 50  # steps whose numbers are read together


class Step(NamedTuple):
    """A batch of a training step, as messages name it; ``batch`` is the CPU original if there is one."""

    epoch: int  # from 0
    batch: Batch
    number: int  # of the step in its epoch, from 0


class TotalWords(NamedTuple):
    """The words of all batches of a step, on all devices.

    Attributes:
        words: the number of all words, a scalar.
        of_terms: the number of words that each term of the loss is the mean over, by its name, scalars.
    """

    words: Tensor
    of_terms: Mapping[str, Tensor]

    def share_of(self, loss: Tensor, terms: Sequence[Term]) -> Tensor:
        """Return what a batch of this loss and these terms adds to the step's loss, by its share of each term's words.

        Raises:
            TreeparseError: if a term is not among those that the objective counts in advance.
        """
        total = 0.0 * loss  # with its graph, for batches without any term
        for term in terms:
            if term.name not in self.of_terms:
                raise TreeparseError(
                    f"The objective's words() does not count the words of its term {term.name!r:.60}, but only of "
                    f"{', '.join(self.of_terms)}: override words() together with terms()."
                )
            if term.mean is not None:
                total = total + term.weight * term.mean * (term.words / self.of_terms[term.name])
        return total


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
        if value.device.type == "cpu" or len({each.number for _, _, each in self._pending}) > self._every:
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
    """Trains a parser; all randomness of a batch derives from (seed, epoch, its number in the epoch).

    A step's loss is the mean over the words of all its batches, on all devices: each batch counts by its share of the
    words, for each term of the loss apart. So it does not matter which device computes which batch.

    Args:
        parser: the parser.
        objective: the loss.
        config: how the loss is minimised.
        dev: the sentences of the dev set.
        name_of: returns what messages call the sentence of an index of a batch.
        seed: seed of dropout.
        processes: the processes that train the same parser, each on its share of every step.
    """

    name_of: Callable[[int], str]
    parser: Parser
    objective: Objective
    config: ResolvedOptimization
    seed: int
    scores: AttachmentScores
    tag_scores: TagScores
    dev_sentences: Sequence[Sentence]

    def __init__(
        self,
        parser: Parser,
        objective: Objective,
        config: ResolvedOptimization,
        *,
        dev: Sequence[Sentence],
        name_of: Callable[[int], str],
        seed: int,
        processes: Processes = ALONE,
    ) -> None:
        super().__init__()
        self.automatic_optimization = False  # Lightning would weigh a step's batches alike, whatever their words
        self.processes = processes
        self.parser, self.objective, self.config, self.seed = parser, objective, config, seed
        self.learning: nn.ModuleList = nn.ModuleList([parser, objective])
        self.average: MovingAverage | None = (
            None if config.average_decay is None else MovingAverage(parser, config.average_decay)
        )
        self.scores, self.tag_scores = AttachmentScores(), TagScores()
        self.dev_sentences, self.name_of = dev, name_of
        self.step: int = 0
        self._numbers = FiniteNumbers(self._failed)
        self._optimizer_state: dict | None = None
        self._start_record()

    @property
    def evaluated(self) -> Parser:
        """The parser that the dev set evaluates and that becomes the final model."""
        return self.parser if self.average is None else cast(Parser, self.average.module)

    def best_weights(self) -> dict[str, Tensor]:
        """Return the weights of a model by this parser, float32 even where training is in float64."""
        weights = self.evaluated.state_dict()
        return {name: weight.float() if weight.dtype is torch.float64 else weight for name, weight in weights.items()}

    def restore(self, state: RunState) -> None:
        """Resume from a state, before ``Trainer.fit``; the settings of the optimiser are the config's."""
        self.parser.load_state_dict(state.weights)
        self.objective.load_state_dict(state.objective)
        if self.average is not None and state.average is not None:
            self.average.load_state_dict(state.average)
        self._optimizer_state = {"state": state.optimizer["state"]}
        self.step = state.step

    def state(self, identity: Mapping[str, Any], history: Sequence[EpochRecord]) -> RunState:
        """Return the state at the end of an epoch, for `restore`."""
        return RunState(
            identity=identity,
            threads=torch.get_num_threads(),
            processes=self.processes.count,
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
        self._terms = TermMeans()
        self._started = time.perf_counter()

    @property
    def mean_loss(self) -> float:
        """The mean loss of this device's batches since the last record, in nats a word."""
        return float(self._loss) / max(self._words, 1)

    def on_train_epoch_start(self) -> None:
        if self.current_epoch % self.config.dev_every == 0:
            self._start_record()

    def on_train_batch_start(self, batch: ShareOfStep, batch_idx: int) -> None:
        progress = (self.current_epoch + batch_idx / self.trainer.num_training_batches) / self.config.epochs
        set_learning_rate(self._optimizer, learning_rate(self.config, step=self.step, progress=progress))
        self.parser.scorer.advance(progress)
        self.objective.advance(progress)

    @property
    def _optimizer(self) -> Optimizer:
        return self.trainer.optimizers[0]

    def training_step(self, share: ShareOfStep, step: int) -> None:
        """Take a step: the gradient of each batch, the mean of all devices, and the optimiser."""
        optimizer = cast(Optimizer, self.optimizers())
        optimizer.zero_grad()
        totals = self._total_words(share)
        for turn, batch in enumerate(share.batches):
            number = turn * self.processes.count + self.processes.rank  # of the batch in the step
            seed = batch_seed(self.seed, self.current_epoch, step, number)
            with self._gradients_stay(turn + 1 < len(share.batches)):
                loss = self._loss_of(batch, step, totals, seed=seed, counts=share.counts)
                with torch.autocast(self.device.type, enabled=False):  # which the forward pass alone needs
                    self.manual_backward(loss * self.processes.count)  # Lightning's DDP takes the mean over devices
        self._words += share.num_words
        self._clip(Step(self.current_epoch, share.batches[-1].on_cpu, step))
        optimizer.step()

    def _total_words(self, share: ShareOfStep) -> TotalWords | None:
        """Count the words of all batches of the step, on all devices; None if there is one batch."""
        if self.processes.count == 1 and len(share.batches) == 1:
            return None
        words = Counter[str]()
        for batch in share.batches:
            words.update(self.parser.words_of_terms(batch, self.objective))
        own = [share.num_words, *(count if share.counts else 0 for count in words.values())]
        sums = self.processes.sums(moved(torch.tensor(own, dtype=torch.float64), self.device))
        return TotalWords(sums[0], dict(zip(words, sums[1:], strict=True)))

    def _gradients_stay(self, stay: bool) -> AbstractContextManager[Any]:
        """Return a context in which a backward pass sends no gradients to other devices, if they ``stay`` here."""
        return self.trainer.model.no_sync() if stay and self.processes.count > 1 else nullcontext()  # pyright: ignore

    def _loss_of(self, batch: Batch, step: int, totals: TotalWords | None, *, seed: int, counts: bool) -> Tensor:
        """Return what a batch adds to the loss of the step, and count it."""
        place = Step(self.current_epoch, batch.on_cpu, step)
        torch.manual_seed(seed)
        try:
            loss, terms = self.parser.loss_and_terms(batch, self.objective)
        except ValueError as error:
            self._numbers.sync()  # an earlier step may have made the weights not finite
            raise self._failed(str(error), place) from error
        words: int | Tensor = batch.num_words
        if totals is not None:
            loss, words = totals.share_of(loss, terms), totals.words
        if not counts:
            terms = [term._replace(mean=None, words=0) for term in terms]
            loss = 0.0 * loss
        self._numbers.add("the loss", loss, place)
        self._loss = self._loss + loss.detach().double() * words
        for term in terms:
            self._terms.add(term)
        return loss

    def _clip(self, place: Step) -> None:
        """Clip the gradient; a norm that is not finite ends the run, on the CPU before it reaches the weights."""
        limit = math.inf if self.config.clip_norm is None else self.config.clip_norm
        norm = torch.nn.utils.clip_grad_norm_(self.learning.parameters(), limit)
        self._numbers.add("the norm of the gradient", norm, place)

    def _failed(self, problem: str, step: Step) -> TreeparseError:
        indices = step.batch.indices.tolist()
        names = ", ".join(self.name_of(index) for index in indices[:NAMED_SENTENCES])
        more = f" and {len(indices) - NAMED_SENTENCES} more" if len(indices) > NAMED_SENTENCES else ""
        return TreeparseError(
            f"Training failed in epoch {step.epoch + 1}, step {step.number + 1} (sentences {names}{more}): "
            f"{problem.rstrip('.')}. Try a lower optimization.learning_rate, more warmup_steps or a smaller clip_norm; "
            "the checkpoint of the last completed epoch is untouched."
        )

    def on_train_batch_end(self, outputs: object, batch: ShareOfStep, batch_idx: int) -> None:
        self.step += 1
        if self.average is not None:
            self.average.update_parameters(self.parser)

    def on_validation_epoch_start(self) -> None:
        self._numbers.sync()  # and waits for the last step
        self._seconds = time.perf_counter() - self._started
        self.scores.reset()
        self.tag_scores.reset()

    def validation_step(self, share: ShareOfStep, step: int) -> None:
        gold: list[Sentence] = []  # nothing, where the batch does not count
        system: list[Sentence] = []
        if share.counts:
            [batch], number = share.batches, step * self.processes.count + self.processes.rank
            torch.manual_seed(batch_seed(self.seed, self.current_epoch, 0, number, of_dev=True))
            gold = [self.dev_sentences[index] for index in batch.on_cpu.indices.tolist()]
            parses, loss = self.evaluated.measure(batch, gold, self.objective)
            self._dev_loss += loss * batch.num_words
            self._dev_words += batch.num_words
            system = with_parses(gold, parses)
        self.scores.update(gold, system)
        if self.parser.tag_names:
            self.tag_scores.update(gold, system)

    def on_validation_epoch_end(self) -> None:
        """Log ``uas`` and ``las`` of the dev set, as numbers from 0 to 1 by which callbacks choose a model."""
        scores = self.scores.compute()
        self.log_dict({name: scores[name] for name in ("uas", "las")})

    def on_train_epoch_end(self) -> None:
        """Log the mean ``loss`` of the epochs since the last record, in nats a word, and its terms."""
        loss, words = self.processes.sums(torch.tensor([float(self._loss), self._words], dtype=torch.float64)).tolist()
        self.log_dict({"loss": loss / max(words, 1), **self._terms.means(self.processes)})

    def predict_step(self, share: ShareOfStep, step: int) -> list[Parse]:
        """Return the parses of the sentences of a step's batches."""
        batches = share.batches if share.counts else ()
        return [p for batch in batches for p in self.evaluated.parse_batch(batch, batch.on_cpu.sentences)]

    def record(self) -> EpochRecord:
        """Return the record of the epochs since the last record, with the scores of the dev set if there is one."""
        self._numbers.sync()
        own = float(self._loss), self._words, self._dev_loss, self._dev_words
        loss, words, dev_loss, dev_words = self.processes.sums(torch.tensor(own, dtype=torch.float64)).tolist()
        scores = self.scores.compute() if dev_words else None
        tags = self.tag_scores.compute() if dev_words and self.parser.tag_names else {}
        elapsed = time.perf_counter() - self._started
        return EpochRecord(
            epoch=self.current_epoch + 1,
            loss=loss / max(words, 1),
            learning_rate=self._optimizer.param_groups[0]["lr"],
            dev_uas=None if scores is None else float(scores["uas"]),
            dev_las=None if scores is None else float(scores["las"]),
            words_per_second=words / (self._seconds or elapsed),
            seconds=elapsed,
            dev_loss=None if scores is None else dev_loss / dev_words,
            terms=self._terms.means(self.processes),
            dev_tags={name: float(score) for name, score in tags.items()},
        )


class TermMeans:
    """Running means of the terms of a loss, each over the words of the sentences that it applies to."""

    def __init__(self) -> None:
        self._sums: dict[str, Tensor | float] = {}  # on the device
        self._words: dict[str, int] = {}

    def add(self, term: Term) -> None:
        """Add a term of a batch."""
        total = 0.0 if term.mean is None else term.mean.detach().double() * term.words
        self._sums[term.name] = self._sums.get(term.name, 0.0) + total
        self._words[term.name] = self._words.get(term.name, 0) + term.words

    def means(self, processes: Processes) -> dict[str, float]:
        """Return the means over all processes by name; none if there is one term only, which is the loss."""
        own = [*map(float, self._sums.values()), *self._words.values()]
        sums = processes.sums(torch.tensor(own, dtype=torch.float64)).tolist()
        totals = zip(self._sums, sums[: len(self._sums)], sums[len(self._sums) :], strict=True)
        means = {name: total / words for name, total, words in totals if words}
        return means if len(means) > 1 else {}


def batch_seed(seed: int, epoch: int, step: int, number: int, *, of_dev: bool = False) -> int:
    """Return the seed of torch's generators for a batch, by its step in the epoch and its number in the step, 64 bits.

    It does not depend on the device that computes the batch. Batches of the dev set have seeds of their own.
    """
    return int(np.random.SeedSequence((seed, epoch, step, number, of_dev)).generate_state(1, np.uint64)[0])
