"""Times of the parts of a training step and of parsing, forwards and backwards, each by itself."""

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import wraps
from itertools import groupby
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor

from treeparse.batch import Batch
from treeparse.model import Parser
from treeparse.model.biaffine_scorer import BiaffineLabels
from treeparse.model.inference.lists import TreeLists
from treeparse.model.scorer import ScorerOutput, encoder_of
from treeparse.nn.biaffine import LabelVectors
from treeparse.objectives import Objective
from treeparse.sentence import Sentence

Times = dict[str, float]
LABELS = ("scores_at", "scores_from", "terms")  # the methods of `LabelVectors` that give label scores


def waiting_clock(device: torch.device) -> Callable[[], float]:
    """The wall's clock, read when the device has done all it was asked to."""

    def clock() -> float:
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        return time.perf_counter()

    return clock


class Clock:
    """Adds up the seconds spent in named blocks; those of a block within another count for the inner one alone."""

    def __init__(self, now: Callable[[], float]) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self._now, self._parts, self._since = now, list[str](), 0.0

    @contextmanager
    def __call__(self, part: str) -> Iterator[None]:
        self._turn()
        self._parts.append(part)
        try:
            yield
        finally:
            self._turn()
            self._parts.pop()

    def _turn(self) -> None:
        now = self._now()
        if self._parts:
            self.seconds[self._parts[-1]] += now - self._since
        self._since = now


class Parts:
    """A clock of a parser's parts, and where their results are cut off, so that each has its own way back."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self._cuts: list[tuple[str, Tensor, Tensor]] = []

    def cut(self, part: str, tensor: Tensor) -> Tensor:
        """The tensor as a leaf, if a gradient is to pass."""
        if not (torch.is_grad_enabled() and tensor.requires_grad):
            return tensor
        leaf = tensor.detach().requires_grad_()
        self._cuts.append((part, tensor, leaf))
        return leaf

    def backward(self) -> None:
        """The gradient through all parts whose results have one, the last first."""
        cuts, self._cuts = self._cuts[::-1], []
        for part, group in groupby(cuts, key=lambda cut: cut[0]):
            found = [(made, leaf.grad) for _, made, leaf in group if leaf.grad is not None]
            if found:
                with self.clock(part):
                    torch.autograd.backward([made for made, _ in found], [grad for _, grad in found])

    @contextmanager
    def timed(self, parser: Parser) -> Iterator[None]:
        """Within it the parser's encoder, scorer and label scores, and the making of parses, are parts."""
        scorer, encoder = parser.scorer, encoder_of(parser.scorer)
        with (
            patch.object(encoder, "forward", self._through("encoder", encoder.forward, self._cut_nodes)),
            patch.object(scorer, "forward", self._through("scorer", scorer.forward, self._cut_scores)),
            patch.object(TreeLists, "parses", self._through("parses", TreeLists.parses, _as_it_is)),
            ExitStack() as labels,
        ):
            for name in LABELS:
                method = self._through("labels", getattr(LabelVectors, name), self._cut_labels)
                labels.enter_context(patch.object(LabelVectors, name, method))
            yield

    def _through(self, part: str, function: Callable[..., Any], finish: Callable[[Any], Any]) -> Callable[..., Any]:
        @wraps(function)
        def call(*arguments: Any, **options: Any) -> Any:
            with self.clock(part):
                return finish(function(*arguments, **options))

        return call

    def _cut_nodes(self, nodes: Tensor) -> Tensor:
        return self.cut("encoder", nodes)

    def _cut_scores(self, scores: ScorerOutput) -> ScorerOutput:
        labels = scores.labels
        assert isinstance(labels, BiaffineLabels)
        arcs, heads, dependents = (
            self.cut("scorer", each) for each in (scores.arcs, labels.vectors.heads, labels.vectors.dependents)
        )
        vectors = LabelVectors(heads, dependents, labels.vectors.biaffine)
        return replace(scores, arcs=arcs, labels=BiaffineLabels(vectors, labels.root_label))

    def _cut_labels(self, found: Any) -> Any:
        if isinstance(found, Tensor):
            return self.cut("labels", found)
        return replace(found, **{name: self.cut("labels", value) for name, value in vars(found).items()})


def _as_it_is(found: Any) -> Any:
    return found


Batches = Sequence[Sequence[Sentence]]


def step_parts(
    parser: Parser,
    batches: Batches,
    objective: Objective,
    optimizer: torch.optim.Optimizer,
    autocast: Callable[[], Any],
    now: Callable[[], float],
) -> Times:
    """Seconds of the parts of a training step, for all batches; ``trees`` is the objective but for label scores."""
    clock = Clock(now)
    for sentences in batches:
        with clock("batches"):
            batch = parser.collate(sentences)
        parts = Parts(clock)
        with parts.timed(parser), clock("trees"):
            with autocast():
                loss = parser.loss(batch, objective)
            loss.backward()
        parts.backward()
        with clock("optimiser"):
            _step(parser, optimizer)
    return dict(clock.seconds)


def whole_steps(
    parser: Parser,
    batches: Batches,
    objective: Objective,
    optimizer: torch.optim.Optimizer,
    autocast: Callable[[], Any],
    now: Callable[[], float],
) -> float:
    """Seconds of the same steps as a trainer takes them, which waits for a device at their end alone."""
    start = now()
    for sentences in batches:
        batch = parser.collate(sentences)
        take_step(parser, optimizer, batch, objective, autocast)
    return now() - start


def take_step(
    parser: Parser,
    optimizer: torch.optim.Optimizer,
    batch: Batch,
    objective: Objective,
    autocast: Callable[[], Any],
) -> None:
    """All that training does with a batch once it is made: scores, loss, gradients, clipping and the optimiser."""
    with autocast():
        loss = parser.loss(batch, objective)
    loss.backward()
    _step(parser, optimizer)


def _step(parser: Parser, optimizer: torch.optim.Optimizer) -> None:
    torch.nn.utils.clip_grad_norm_(parser.parameters(), 5.0)
    optimizer.step()
    optimizer.zero_grad()


def parsing_parts(
    parser: Parser,
    batches: Batches,
    read: Callable[[], object],
    autocast: Callable[[], Any],
    now: Callable[[], float],
) -> Times:
    """Seconds of the parts of parsing batch by batch; ``trees`` are the best ones, their labels and log probability."""
    clock = Clock(now)
    with clock("reading"):
        read()
    for sentences in batches:
        with clock("batches"):
            batch: Batch = parser.collate(sentences)
        with Parts(clock).timed(parser), clock("trees"), autocast():
            parser.parse_batch(batch, sentences)
    return dict(clock.seconds)
