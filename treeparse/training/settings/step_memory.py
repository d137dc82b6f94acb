"""How much memory a step of training takes, measured."""

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor, nn
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from treeparse.batch import Batch
from treeparse.data.batches.batching import counted_nodes
from treeparse.model import Parser
from treeparse.objectives import Objective
from treeparse.sentence import Sentence

SHARE = 0.25  # of a full batch: what is measured must itself find room
PLACES = (0.3, 0.6, 0.85, 0.95, 1.0)  # in the order of length, of the sentences that are measured
MOMENTS = 2  # Adam's averages of each parameter that learns


@dataclass(frozen=True)
class StepMemory:
    """Bytes that a step takes for a batch of so many nodes, padding included, and cells of as many wide and high."""

    fixed: float
    node: float
    cell: float

    def bytes(self, nodes: float, cells: float) -> float:
        """What a batch takes in all."""
        return self.fixed + self.node * nodes + self.cell * cells


def measured(
    parser: Parser,
    objective: Objective,
    sentences: Sequence[Sentence],
    *,
    max_words: int,
    device: torch.device,
    precision: str = "32-true",
    averaged: bool = False,
) -> StepMemory:
    """The memory of steps, fitted to that of a few with batches of these sentences, short ones to the longest.

    Weights, their gradients and Adam's averages are part of what is fixed, and the copy of weights that are
    ``averaged``. The parser and the random state stay as they are. On CUDA it is what torch allocates; on the CPU, the
    results of all operations that are alive at once, forwards and backwards, but for the scratch space within one.
    """
    before, trial = parser.device, deepcopy(objective).to(device)

    def loss(batch: Batch) -> Tensor:
        with torch.autocast(device.type, torch.bfloat16, enabled=precision == "bf16-mixed"):
            return parser.loss(batch, trial)

    rows, found = [], []
    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        parser.to(device).train()
        for nodes, chosen in _trials(sentences, [*map(parser.length, sentences)], max_words):
            batch = parser.collate(chosen)
            rows.append([1.0, len(chosen) * nodes, len(chosen) * nodes**2])
            found.append(peak(partial(loss, batch), device))
            parser.zero_grad(set_to_none=True)
        parser.to(before)
    fixed, node, cell = _fitted(np.array(rows), np.array(found, dtype=float))
    return StepMemory(fixed + _resident(parser, averaged), node, cell)


def _trials(
    sentences: Sequence[Sentence], lengths: Sequence[int], max_words: int
) -> Iterator[tuple[int, list[Sentence]]]:
    """Batches of several lengths, the longest last, each with the nodes that a sentence of it counts for."""
    order = sorted(range(len(sentences)), key=lengths.__getitem__)
    for place in PLACES:
        end = max(1, round(place * len(order)))
        [nodes] = counted_nodes([lengths[order[end - 1]]])
        count = min(end, max(1, int(SHARE * max_words / nodes)))
        yield nodes, [sentences[each] for each in order[end - count : end]]


def peak(loss: Callable[[], Tensor], device: torch.device) -> int:
    """The bytes that there are at most, of what a loss and its gradient make."""
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
    """Counts, while it is entered, the bytes of what operations have made and something still holds."""

    def __init__(self) -> None:
        super().__init__()
        self.peak = 0
        self._sizes: dict[StorageWeakRef, int] = {}
        self._total = 0  # of these, some of which may be gone

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # pyright: ignore
        result = func(*args, **(kwargs or {}))
        given = {StorageWeakRef(each.untyped_storage()) for each in tree_leaves((args, kwargs)) if _stored(each)}
        for each in filter(_stored, tree_leaves(result)):
            storage = each.untyped_storage()
            reference = StorageWeakRef(storage)
            if reference not in given:  # no view
                self._total += storage.nbytes() - self._sizes.get(reference, 0)
                self._sizes[reference] = storage.nbytes()
        if self._total > self.peak:
            self._sizes = {reference: size for reference, size in self._sizes.items() if not reference.expired()}
            self._total = sum(self._sizes.values())
            self.peak = max(self.peak, self._total)
        return result


def _stored(value: object) -> bool:
    return isinstance(value, Tensor) and value.device.type != "meta"


def _fitted(rows: np.ndarray, found: np.ndarray) -> list[float]:
    """Three factors, none below 0, by least squares of relative errors; then raised until nothing was above them."""
    left, weighted = list(range(rows.shape[1])), rows / found[:, None]
    while True:
        factors = np.linalg.lstsq(weighted[:, left], np.ones(len(found)), rcond=None)[0]
        if (factors >= 0).all():
            raised = factors * max(1.0, 1 / float((weighted[:, left] @ factors).min()))
            values = dict(zip(left, raised, strict=True))
            return [float(values.get(column, 0.0)) for column in range(rows.shape[1])]
        del left[int(np.argmin(factors))]


def _resident(parser: nn.Module, averaged: bool) -> int:
    """The bytes of the weights and of what an optimiser keeps beside them between steps."""
    weights = sum(each.nbytes for each in parser.state_dict().values())
    return weights * (2 if averaged else 1) + MOMENTS * sum(p.nbytes for p in parser.parameters() if p.requires_grad)
