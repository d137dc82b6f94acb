"""The LightningModule of a run: a parser, its loss, its optimiser, their average, and scores on the dev set."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any, NamedTuple, Self, cast

import pytorch_lightning as pl
import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import LambdaLR
from torch.optim.swa_utils import AveragedModel
from torchmetrics import Metric

from treeparse.batch import Batch
from treeparse.data.batches.steps import ShareOfStep
from treeparse.data.batches.treebank_module import TreebankModule
from treeparse.data.features.indexer import Indexer
from treeparse.data.parses import Parse, with_parses
from treeparse.errors import TreeparseError
from treeparse.metrics import TagScores, TreebankScores
from treeparse.model import Parser
from treeparse.objectives import Objective, Term
from treeparse.sentence import Sentence
from treeparse.training.resolve import Workload
from treeparse.training.train_config import OptimizationConfig, ResolvedConfig, ResolvedOptimization
from treeparse.training.trainer import Processes, trainer_arguments

NAMED_SENTENCES = 5
EVERY = 50  # steps whose numbers are read together
TERM = "term/"  # before the name of a term of the loss, where it is logged


def build_optimizer(
    parameters: Iterable[nn.Parameter], config: OptimizationConfig, rates: Mapping[nn.Parameter, float]
) -> torch.optim.AdamW:
    """Build AdamW over the parameters that require gradients, with one fused kernel a step if the device has it.

    ``rates`` maps parameters to their learning rates, as shares of the config's rate. Each rate makes a group, the
    highest first.
    """
    learning = [parameter for parameter in parameters if parameter.requires_grad]
    shares: dict[float, list[nn.Parameter]] = {}
    for parameter in learning:
        shares.setdefault(rates.get(parameter, 1.0), []).append(parameter)
    return torch.optim.AdamW(
        [{"params": shares[rate], "lr": rate * config.learning_rate} for rate in sorted(shares, reverse=True)],
        lr=config.learning_rate,
        betas=config.betas,
        eps=config.eps,
        weight_decay=config.weight_decay,
        fused=all(parameter.device.type in ("cpu", "cuda") for parameter in learning),
    )


def rate_share(config: ResolvedOptimization, step: int) -> float:
    """Return the learning rate of a step, counted from 0, as a share of the highest."""
    progress = min(step / config.steps, 1.0)  # epochs that draw their sentences may have a few steps more
    warmup = min(1.0, (step + 1) / config.warmup_steps) if config.warmup_steps else 1.0
    decay = {"constant": 1.0, "linear": 1 - progress, "cosine": (1 + math.cos(math.pi * progress)) / 2}
    return warmup * decay[config.schedule]


class MovingAverage(AveragedModel):
    """A copy of a model that holds the exponential moving average of its weights.

    Call ``update_parameters`` once a step. The decay of the first steps is lower, (1 + t) / (10 + t), because otherwise
    the first weights count for long. The copy shares frozen weights with the model, which saves memory and time. The
    count of steps stays on the CPU, so that no step is a device sync.
    """

    n_averaged: Tensor

    def __init__(self, model: nn.Module, decay: float) -> None:
        super().__init__(model)
        self.decay = decay
        for target, source in zip(self.module.parameters(), model.parameters(), strict=True):
            target.requires_grad = False  # so that several devices send no gradients of the copy
            if not source.requires_grad:
                target.data = source.data

    def _apply(self, fn: Any, recurse: bool = True) -> Self:
        count = self.n_averaged
        super()._apply(fn, recurse)
        self.n_averaged = count
        return self

    @torch.no_grad()
    def update_parameters(self, model: nn.Module) -> None:
        count = int(self.n_averaged)
        share = 1 - min(self.decay, (1 + count) / (10 + count))
        for target, source in zip(self.module.parameters(), model.parameters(), strict=True):
            if not count:
                target.copy_(source)
            elif target.data_ptr() != source.data_ptr():
                target.lerp_(source, share)
        for target, source in zip(self.module.buffers(), model.buffers(), strict=True):
            target.copy_(source)
        self.n_averaged += 1


class Step(NamedTuple):
    """A batch of training, as messages name it; ``batch`` is the CPU original if there is one."""

    epoch: int  # from 0
    batch: Batch
    number: int  # in its epoch, from 0


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
        if value.device.type == "cpu" or len({step.number for _, _, step in self._pending}) > self._every:
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


class WordMean(Metric):
    """A mean over words of all batches and devices, in float64."""

    total: Tensor
    words: Tensor

    def __init__(self) -> None:
        super().__init__()
        for name in ("total", "words"):
            self.add_state(name, torch.zeros((), dtype=torch.float64), dist_reduce_fx="sum")

    def update(self, mean: Tensor | float, words: int) -> None:
        self.total += mean * words
        self.words += words

    def compute(self) -> Tensor:
        return self.total / self.words


class ParserModule(pl.LightningModule):
    """Trains a parser; all randomness of a batch derives from its own seed.

    A step's loss is the mean over the words of all its batches, on all devices, for each term of the loss apart: the
    weights of `ShareOfStep` say what a word counts. So it does not matter which device computes which batch. The module
    logs ``loss`` and its terms, in nats a word, and ``dev_loss``, ``uas``, ``las`` and the scores of tags, from 0 to 1.

    Args:
        parser: the parser.
        objective: the loss.
        config: how the loss is minimised.
        name_of: returns what messages call the sentence of an index of a batch.
        scores: of the dev set; by default of all sentences together.
    """

    def __init__(
        self,
        parser: Parser,
        objective: Objective,
        config: ResolvedOptimization,
        *,
        name_of: Callable[[int], str] = str,
        scores: TreebankScores | None = None,
    ) -> None:
        super().__init__()
        self.parser, self.objective, self.config, self.name_of = parser, objective, config, name_of
        decay = config.average_decay
        self.average: MovingAverage | None = None if decay is None else MovingAverage(parser, decay)
        self.scores, self.tag_scores, self.means = scores or TreebankScores(), TagScores(), nn.ModuleDict()
        self._numbers = FiniteNumbers(self._failed)

    @property
    def evaluated(self) -> Parser:
        """The parser that the dev set evaluates and that becomes the final model."""
        return self.parser if self.average is None else cast(Parser, self.average.module)

    def best_weights(self) -> dict[str, Tensor]:
        """Return the weights of a model by this parser, float32 even where training is in float64."""
        weights = self.evaluated.state_dict()
        return {name: weight.float() if weight.dtype is torch.float64 else weight for name, weight in weights.items()}

    def configure_optimizers(self) -> Any:
        learned = chain(self.parser.parameters(), self.objective.parameters())
        optimizer = build_optimizer(learned, self.config, self.parser.scorer.rates())
        schedule = LambdaLR(optimizer, partial(rate_share, self.config))
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}

    def training_step(self, share: ShareOfStep, number: int) -> Tensor:
        """Return the loss of a batch, weighted by its words."""
        self._step = Step(self.current_epoch, share.batch.on_cpu, number)
        progress = min(self.global_step / self.config.steps, 1.0)
        self.parser.scorer.advance(progress)
        self.objective.advance(progress)
        self._seed(share.seed)
        try:
            loss, terms = self.parser.loss_and_terms(share.batch, self.objective)
        except ValueError as error:
            self._numbers.sync()  # an earlier step may have made the weights not finite
            raise self._failed(str(error), self._step) from error
        self._numbers.add("the loss", loss, self._step)
        self._log_mean("loss", loss.detach().double(), share.num_words)
        for term in terms if len(terms) > 1 else ():
            mean = 0.0 if term.mean is None else term.mean.detach().double()
            self._log_mean(TERM + term.name, mean, term.words * share.counts)
        return loss if share.weights is None else weighted(loss, terms, share.weights, counts=share.counts)

    def _seed(self, seed: int) -> None:
        """Seed the generators that a batch draws from: ``torch.manual_seed`` takes a millisecond for all other ones."""
        torch.default_generator.manual_seed(seed)
        if self.device.type == "cuda":
            torch.cuda.manual_seed(seed)

    def _log_mean(self, name: str, mean: Tensor | float, words: int) -> None:
        """Log a mean over words. Lightning's own means would round the numbers of words of several devices."""
        if name not in self.means:
            self.means[name] = WordMean().to(self.device)
        metric = cast(WordMean, self.means[name])
        metric.update(mean, words)
        if metric.update_count == 1:  # once an epoch, because Lightning takes half a millisecond to note it
            self.log(name, metric, metric_attribute=f"means.{name}", on_step=False, on_epoch=True)

    def configure_gradient_clipping(
        self,
        optimizer: torch.optim.Optimizer,
        gradient_clip_val: float | None = None,
        gradient_clip_algorithm: str | None = None,
    ) -> None:
        """Clip the gradient; a norm that is not finite ends the run, on the CPU before it reaches the weights."""
        learned = [weight for group in optimizer.param_groups for weight in group["params"]]
        limit = math.inf if gradient_clip_val is None else gradient_clip_val
        if gradient_clip_algorithm == "value":
            torch.nn.utils.clip_grad_value_(learned, limit)
            limit = math.inf
        norm = torch.nn.utils.clip_grad_norm_(learned, limit)
        self._numbers.add("the norm of the gradient", norm, self._step)

    def optimizer_step(self, *arguments: Any, **options: Any) -> None:
        super().optimizer_step(*arguments, **options)
        if self.average is not None:
            self.average.update_parameters(self.parser)

    def _failed(self, problem: str, step: Step) -> TreeparseError:
        indices = step.batch.indices.tolist()
        names = ", ".join(self.name_of(index) for index in indices[:NAMED_SENTENCES])
        more = f" and {len(indices) - NAMED_SENTENCES} more" if len(indices) > NAMED_SENTENCES else ""
        return TreeparseError(
            f"Training failed in epoch {step.epoch + 1}, batch {step.number + 1} (sentences {names}{more}): "
            f"{problem.rstrip('.')}. Try a lower optimization.learning_rate, more warmup_steps or a smaller "
            "trainer.gradient_clip_val; the checkpoint of the last completed epoch is untouched."
        )

    def on_validation_epoch_start(self) -> None:
        self.check_finite()

    def on_train_epoch_end(self) -> None:
        self.check_finite()  # before Lightning writes checkpoints

    def check_finite(self) -> None:
        """Raise if a loss or a gradient's norm since the last check is not finite; a device sync."""
        self._numbers.sync()

    def validation_step(self, share: ShareOfStep, number: int) -> None:
        gold = share.batch.on_cpu.sentences
        self._seed(share.seed)
        parses, loss = self.evaluated.measure(share.batch, gold, self.objective)
        self._log_mean("dev_loss", loss, share.num_words)
        if not share.counts:
            gold, parses = (), []
        system = with_parses(gold, parses)
        self.scores.update(gold, system)
        if self.parser.tag_names:
            self.tag_scores.update(gold, system)

    def on_validation_epoch_end(self) -> None:
        """Log the scores of the dev set. Callbacks choose a model by them."""
        shown = self.scores.compute()  # of all devices
        shown |= self.tag_scores.compute() if self.parser.tag_names else {}
        self.log_dict(shown, sync_dist=True, reduce_fx="max")  # the maximum of equal numbers has no rounding
        self.scores.reset()
        self.tag_scores.reset()

    def predict_step(self, share: ShareOfStep, number: int) -> list[Parse]:
        """Return the parses of the sentences of a batch."""
        batch = share.batch
        return self.evaluated.parse_batch(batch, batch.on_cpu.sentences) if share.counts else []


def weighted(loss: Tensor, terms: Sequence[Term], weights: Mapping[str, float], *, counts: bool) -> Tensor:
    """Return what a batch adds to the loss of its step, by the weights of its words, 0 if it does not count.

    Raises:
        TreeparseError: a term is not among those whose words the objective counts.
    """
    total = 0.0 * loss  # with its graph, for batches without any term
    for term in terms:
        if term.name not in weights:
            raise TreeparseError(
                f"The objective's words() does not count the words of its term {term.name!r:.60}, but only of "
                f"{', '.join(weights)}: override words() together with terms()."
            )
        if term.mean is not None:
            total = total + term.weight * term.mean * (term.words * weights[term.name])
    return total if counts else 0.0 * total


@dataclass(frozen=True)
class Training:
    """Everything that the epochs of a run need."""

    config: ResolvedConfig
    work: Workload
    module: ParserModule
    data: TreebankModule
    indexer: Indexer  # of the batches
    identity: Mapping[str, Any]
    processes: Processes

    @property
    def parser(self) -> Parser:
        """The parser that learns."""
        return self.module.parser

    @property
    def train(self) -> Sequence[Sentence]:
        """The training sentences."""
        return self.data.train_data.sentences

    @property
    def dev(self) -> Sequence[Sentence]:
        """The sentences of the dev set."""
        return self.data.dev_data.sentences

    @property
    def trainer_options(self) -> dict[str, Any]:
        """The arguments that Lightning's Trainer needs for this run, with the objects that the settings name.

        The batches of an epoch are made when the trainer asks for its loader.
        """
        arguments = trainer_arguments(self.config.trainer)
        arguments["max_epochs"] = self.work.epochs
        arguments["check_val_every_n_epoch"] = self.config.optimization.dev_every
        if not self.work.dev_words:
            arguments["limit_val_batches"] = 0
        return arguments
