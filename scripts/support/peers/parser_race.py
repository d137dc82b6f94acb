"""Times of whole parsers on the same sentences in turns, and of their scorers alone."""

import math
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from scripts.support.peers.parsers import PeerParser, Tree
from scripts.support.reports.timing import Timed, take_turns

from treeparse.kernels.best.arborescence import are_trees
from treeparse.sentence import Sentence

HEADER = (
    "| parser | ms per 1,000 words | words/s | treeparse is times as fast | encoder and scorer alone, ms | "
    "treeparse, whole, is times as fast as these |\n|---|---:|---:|---:|---:|---:|"
)


@dataclass
class PeerRun(Timed):
    """Passes of a peer over the sentences, with the seconds of its scorer within each."""

    name: str
    scorer_times: list[float] = field(default_factory=list, init=False)


def peer_table(
    ours: Callable[[], Any],
    peers: Sequence[PeerParser],
    sentences: Sequence[Sentence],
    passes: int,
    clock: Callable[[], float] = time.perf_counter,
) -> Iterator[str]:
    """The lines of a table: medians over passes in which all take turns, after one that is not timed."""
    own = Timed(ours, clock=clock)
    runs = [peer_run(peer, sentences, clock) for peer in peers]
    own.call()
    take_turns([own, *runs], fewest=passes, most=passes, budget=math.inf)
    words = sum(map(len, sentences))
    yield HEADER
    yield f"| treeparse | {pace(own.median, words)} | | | |"
    for run in runs:
        scorer = statistics.median(run.scorer_times)
        cells = f"{run.name} | {pace(run.median, words)} | {ratio(run.times, own.times):.1f}"
        yield f"| {cells} | {1e6 * scorer / words:.2f} | {ratio(run.scorer_times, own.times):.1f} |"


def peer_run(peer: PeerParser, sentences: Sequence[Sentence], clock: Callable[[], float]) -> PeerRun:
    """A peer that has parsed the sentences once, into trees with one root arc."""
    check(peer.name, sentences, peer.parse(sentences))

    def parse() -> None:
        with seconds_of(peer.scorer, clock) as seconds:
            peer.parse(sentences)
        run.scorer_times.append(sum(seconds))

    run = PeerRun(parse, clock=clock, name=peer.name)
    return run


def check(name: str, sentences: Sequence[Sentence], trees: Sequence[Tree]) -> None:
    """Raise where a peer left out sentences, words or labels, or found what is no tree with one root arc."""
    for sentence, (heads, labels) in zip(sentences, trees, strict=True):
        tree, length = np.array([[-1, *heads]]), np.array([len(sentence)])
        right_size = len(heads) == len(labels) == len(sentence)
        if not right_size or not are_trees(tree, length, single_root=True).all():
            raise SystemExit(f"bench_parsing: {name} gave {' '.join(sentence.forms)} no single-root tree: {heads}")


@contextmanager
def seconds_of(module: torch.nn.Module, clock: Callable[[], float]) -> Iterator[list[float]]:
    """The seconds of each call of a module while this lasts."""
    seconds, start = [], [0.0]

    def begin(*_: object) -> None:
        start[0] = clock()

    def end(*_: object) -> None:
        seconds.append(clock() - start[0])

    hooks = module.register_forward_pre_hook(begin), module.register_forward_hook(end)
    try:
        yield seconds
    finally:
        for hook in hooks:
            hook.remove()


def pace(seconds: float, words: int) -> str:
    """Two cells: milliseconds per 1,000 words, and words a second."""
    return f"{1e6 * seconds / words:.2f} | {words / seconds:,.0f}"


def ratio(times: Sequence[float], ours: Sequence[float]) -> float:
    """The median of their times over ours in the same pass."""
    return statistics.median(theirs / own for theirs, own in zip(times, ours, strict=True))
