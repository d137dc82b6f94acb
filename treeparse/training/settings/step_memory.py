"""The memory of a training step: its measurement, and bounds of batches, lowered where steps need too much."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from treeparse.batch import Batch, pick_device
from treeparse.data.batches.batching import counted_nodes
from treeparse.data.batches.mixing import ALL_LABELLED, TrainingMix
from treeparse.errors import TreeparseError
from treeparse.model import Parser
from treeparse.objectives import Objective
from treeparse.sentence import Sentence
from treeparse.training.settings.config import TrainConfig
from treeparse.training.settings.resolve import resolve_batch_words, resolve_precision

SHARE = 0.25  # of a full batch: the measurement itself must fit into memory
QUANTILES = (0.3, 0.6, 0.85, 0.95, 1.0)  # of length, of the longest sentence of each measured batch
MOMENTS = 2  # Adam's averages of each trained parameter
GIGABYTE = 10**9


@dataclass(frozen=True)
class StepMemory:
    """The bytes of a step, as a linear function of a batch's nodes and of the cells of its score matrices.

    Both numbers include padding.
    """

    fixed: float
    node: float
    cell: float

    def bytes(self, nodes: float, cells: float) -> float:
        """Return the bytes of a step with a batch of this size."""
        return self.fixed + self.node * nodes + self.cell * cells


class BatchBounds(NamedTuple):
    """The bounds of a batch, see `BucketBatchSampler`."""

    max_words: int
    max_squared: int | None


def fit_batches_in_memory(
    config: TrainConfig,
    parser: Parser,
    objective: Objective,
    sentences: Sequence[Sentence],
    say: Callable[[str], None],
    *,
    mix: TrainingMix = ALL_LABELLED,
    earlier: Mapping[str, Any] | None = None,
) -> TrainConfig:
    """Return the config with batches small enough for ``data.memory``; raise if the longest sentence needs more.

    A line to ``say`` tells the memory of a step. ``earlier`` has the settings of the run to resume, as plain data; its
    bounds are taken without a measurement.
    """
    data = config.data
    if data.memory is None:
        return config
    if earlier is not None and earlier["data"].get("memory") == data.memory:
        bounds = {name: earlier["data"][name] for name in ("batch_words", "batch_squared")}
        return replace(config, data=replace(data, **bounds))
    words = resolve_batch_words(data, [*map(len, sentences)])
    memory = measure_step_memory(
        parser,
        objective,
        sentences,
        max_words=words,
        device=pick_device(config.trainer.device),
        precision=resolve_precision(config.trainer),
        averaged=config.optimization.average_decay is not None,
    )
    [longest] = counted_nodes([max(map(parser.length, sentences))])
    bounds = lower_bounds(BatchBounds(words, data.batch_squared), data.memory, memory, longest, mix.batch_factor)
    most = _most_bytes(bounds, memory, longest, mix.batch_factor)
    say(
        f"a step takes up to {most / GIGABYTE:.3g} GB of memory: batch_words is {bounds.max_words:,}"
        f"{f', batch_squared {bounds.max_squared:,}' if bounds.max_squared is not None else ''}"
    )
    return replace(config, data=replace(data, batch_words=bounds.max_words, batch_squared=bounds.max_squared))


def lower_bounds(
    bounds: BatchBounds, budget: float, memory: StepMemory, longest: int, batch_factor: float = 1.0
) -> BatchBounds:
    """Lower both bounds by one factor, as far as the largest batch that they allow exceeds the budget, in gigabytes.

    The longest sentence, of ``longest`` nodes, may exceed the bounds as a batch of its own: the function raises if it
    needs more than the budget. A batch may hold ``batch_factor`` times the bounds.
    """
    alone = memory.bytes(longest, longest**2)
    if alone > budget * GIGABYTE:
        raise TreeparseError(
            f"data.memory is {budget} GB, but a step takes about {alone / GIGABYTE:.3g} GB for the longest sentence "
            f"alone, {memory.fixed / GIGABYTE:.3g} GB of it for any batch: raise data.memory, leave out the longest "
            "sentences, or choose a smaller model."
        )
    needed = _most_bytes(bounds, memory, longest, batch_factor) - memory.fixed
    factor = (budget * GIGABYTE - memory.fixed) / max(needed, 1.0)
    if factor >= 1:
        return bounds
    squared = None if bounds.max_squared is None else max(1, int(factor * bounds.max_squared))
    return BatchBounds(max(1, int(factor * bounds.max_words)), squared)


def _most_bytes(bounds: BatchBounds, memory: StepMemory, longest: int, batch_factor: float) -> float:
    """Return the bytes of the largest batch that the bounds allow."""
    words = bounds.max_words * batch_factor
    cells = words * longest if bounds.max_squared is None else min(bounds.max_squared * batch_factor, words * longest)
    return max(memory.bytes(words, cells), memory.bytes(longest, longest**2))


def measure_step_memory(
    parser: Parser,
    objective: Objective,
    sentences: Sequence[Sentence],
    *,
    max_words: int,
    device: torch.device,
    precision: str = "32-true",
    averaged: bool = False,
) -> StepMemory:
    """Measure steps with a few batches of these sentences, short to long, and fit a `StepMemory` to them.

    Its fixed part includes the weights, their gradients, Adam's averages and, if ``averaged``, a copy of the weights.
    The parser and the random state do not change. On CUDA the function counts what torch allocates; on the CPU it
    counts the results of all operations that are alive at once, forwards and backwards, without the scratch space
    within an operation.
    """
    original_device, objective = parser.device, deepcopy(objective).to(device)

    def loss(batch: Batch) -> Tensor:
        with torch.autocast(device.type, torch.bfloat16, enabled=precision == "bf16-mixed"):
            return parser.loss(batch, objective)

    sizes, peaks = [], []
    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        parser.to(device).train()
        for nodes, chosen in _trial_batches(sentences, [*map(parser.length, sentences)], max_words):
            batch = parser.collate(chosen)
            sizes.append([1.0, len(chosen) * nodes, len(chosen) * nodes**2])
            peaks.append(peak_memory(partial(loss, batch), device))
            parser.zero_grad(set_to_none=True)
        parser.to(original_device)
    fixed, node, cell = _fitted_factors(np.array(sizes), np.array(peaks, dtype=float))
    return StepMemory(fixed + _resident_bytes(parser, averaged), node, cell)


def _trial_batches(
    sentences: Sequence[Sentence], lengths: Sequence[int], max_words: int
) -> Iterator[tuple[int, list[Sentence]]]:
    """Yield batches of several lengths, the longest last, each with the nodes that its sentences count for."""
    order = sorted(range(len(sentences)), key=lengths.__getitem__)
    for quantile in QUANTILES:
        end = max(1, round(quantile * len(order)))
        [nodes] = counted_nodes([lengths[order[end - 1]]])
        count = min(end, max(1, int(SHARE * max_words / nodes)))
        yield nodes, [sentences[index] for index in order[end - count : end]]


def peak_memory(loss: Callable[[], Tensor], device: torch.device) -> int:
    """Return the most bytes that a loss and its gradient hold at once."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        _step(loss)
        return torch.cuda.max_memory_allocated(device) - before
    with LiveStorage() as live:
        _step(loss)
    return live.peak


def _step(loss: Callable[[], Tensor]) -> None:
    value = loss()
    if value.requires_grad:
        value.backward()


class LiveStorage(TorchDispatchMode):
    """A context that counts the bytes of the tensors that operations made within it and that are still alive."""

    def __init__(self) -> None:
        super().__init__()
        self.peak = 0
        self._sizes: dict[StorageWeakRef, int] = {}
        self._total = 0  # of all sizes; some of these tensors may be gone

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # pyright: ignore
        result = func(*args, **(kwargs or {}))
        inputs = {StorageWeakRef(each.untyped_storage()) for each in tree_leaves((args, kwargs)) if _stored(each)}
        for each in filter(_stored, tree_leaves(result)):
            storage = each.untyped_storage()
            reference = StorageWeakRef(storage)
            if reference not in inputs:  # no view
                self._total += storage.nbytes() - self._sizes.get(reference, 0)
                self._sizes[reference] = storage.nbytes()
        if self._total > self.peak:
            self._sizes = {reference: size for reference, size in self._sizes.items() if not reference.expired()}
            self._total = sum(self._sizes.values())
            self.peak: int = max(self.peak, self._total)
        return result


def _stored(value: object) -> bool:
    return isinstance(value, Tensor) and value.device.type != "meta"


def _fitted_factors(sizes: np.ndarray, peaks: np.ndarray) -> list[float]:
    """Fit a factor to each column of sizes, by least squares of relative errors.

    No factor is below 0. All are raised by one factor so that no measured peak lies above the fit.
    """
    left, weighted = list(range(sizes.shape[1])), sizes / peaks[:, None]
    while True:
        factors = np.linalg.lstsq(weighted[:, left], np.ones(len(peaks)), rcond=None)[0]
        if (factors >= 0).all():
            raised = factors * max(1.0, 1 / float((weighted[:, left] @ factors).min()))
            values = dict(zip(left, raised, strict=True))
            return [float(values.get(column, 0.0)) for column in range(sizes.shape[1])]
        del left[int(np.argmin(factors))]


def _resident_bytes(parser: nn.Module, averaged: bool) -> int:
    """Return the bytes of the weights and of the optimiser's state between steps."""
    weights = sum(each.nbytes for each in parser.state_dict().values())
    return weights * (2 if averaged else 1) + MOMENTS * sum(p.nbytes for p in parser.parameters() if p.requires_grad)
