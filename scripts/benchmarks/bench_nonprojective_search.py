"""Time the exact search for the best tree with siblings over all trees, sentence by sentence, on trained parsers.

    taskset -c 0 python -m scripts.benchmarks.bench_nonprojective_search MODEL TEST.conllu [MODEL TEST.conllu ...]
        --output FILE

The models are of ``trees: nonprojective_siblings``, as ``experiment_second_order --work DIR`` leaves them.
"""

import argparse
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from scripts.support.reports.markdown import Opening, report

from treeparse.data import load_treebank
from treeparse.kernels.best.climbing import climb, new_climbing_memory, score_of_heads
from treeparse.kernels.best.nonprojective_siblings import best_trees_with_bounds
from treeparse.kernels.best.second_order_trees import best_trees
from treeparse.model import Parser
from treeparse.sentence import Sentence

LIMIT = 200
REPEATS = 5  # of a sentence, of which the fastest counts: a busy machine slows some
OPENING = Opening(
    title="Exact best trees with siblings, crossing arcs included: certificates and time",
    measured="how often the search is certified before its first branch and in the end, and CPU time a sentence: the "
    "search with the best projective tree that it begins with, and climbing from that tree alone.",
    on="the test sentences of treebanks, as parsers of `trees: nonprojective_siblings` score them, without labels.",
    read="ms and us are those of one sentence on one thread, the fastest of five; 99% is the slowest but for 1%.",
    repeat="taskset -c 0 python -m scripts.benchmarks.bench_nonprojective_search MODEL TEST.conllu ... "
    "--output scripts/experiments/results/bench_nonprojective_search.md",
)


class Searched(NamedTuple):
    """What the search of one sentence found, and seconds."""

    certified_at_root: bool
    certified: bool
    branches: int
    projective: bool  # whether the best projective tree is the best one
    climbed: bool  # whether climbing from it finds the best one
    seconds: float
    climbing: float


def search(arcs: torch.Tensor, siblings: torch.Tensor) -> Searched:
    """Search one sentence, ``(1, n+1, n+1)`` and ``(1, n+1, n+1, n+1)``."""
    scores, parts = arcs.double().contiguous().numpy(), siblings.contiguous().numpy()
    n = scores.shape[1] - 1
    lengths, memory = np.array([n]), new_climbing_memory(n + 1)
    _, _, _, at_root, _ = best_trees_with_bounds(scores, parts, lengths, single_root=True, limit=1)
    _, best, _, certified, branches = best_trees_with_bounds(scores, parts, lengths, single_root=True, limit=LIMIT)
    start = best_trees(scores, parts, lengths, single_root=True)[0]
    climbed, rounding = start.copy(), 1e-9 * (1 + abs(best[0]))
    reached = climb(scores[0], parts[0], n, True, climbed, *memory)
    seconds, climbing = [], []
    for _ in range(REPEATS):
        begin = time.perf_counter()
        best_trees_with_bounds(scores, parts, lengths, single_root=True, limit=LIMIT)
        middle = time.perf_counter()
        climb(scores[0], parts[0], n, True, start.copy(), *memory)
        climbing.append(time.perf_counter() - middle)
        seconds.append(middle - begin)
    is_best = score_of_heads(scores[0], parts[0], start, n) >= best[0] - rounding
    found = bool(reached >= best[0] - rounding)
    return Searched(
        bool(at_root[0]), bool(certified[0]), int(branches[0]), bool(is_best), found, min(seconds), min(climbing)
    )


@torch.inference_mode()
def searches(parser: Parser, sentences: Sequence[Sentence]) -> Iterator[Searched]:
    """Search the sentences one after another."""
    for sentence in sentences:
        arcs, siblings = parser.distribution(parser.collate([sentence])).base.parts
        yield search(arcs, siblings)


def table(models: Sequence[tuple[Path, Path]]) -> Iterator[str]:
    """A row for each model and its test file."""
    yield "\n## Test sets\n"
    yield (
        "| model | test set | sentences | certified at the root | within 200 branches | most branches "
        "| projective is best | climbed is best | search, median ms | mean | 99% | climbing, median us |"
    )
    yield "|:--|:--|" + "--:|" * 10
    for model, test in models:
        parser, sentences = Parser.from_pretrained(model), [each.words for each in load_treebank([test])]
        found = [*searches(parser, sentences)]
        shares = [
            np.mean([getattr(each, name) for each in found])
            for name in ("certified_at_root", "certified", "projective", "climbed")
        ]
        root, every, start, climbed = (f"{100 * share:.1f}%" for share in shares)
        ms = 1e3 * np.array([each.seconds for each in found])
        us = 1e6 * np.median([each.climbing for each in found])
        most = max(each.branches for each in found)
        counts = f"{model.name} | {test.stem} | {len(found):,} | {root} | {every} | {most} | {start} | {climbed}"
        times = f"{np.median(ms):.3f} | {ms.mean():.2f} | {np.quantile(ms, 0.99):.1f} | {us:.0f}"
        yield f"| {counts} | {times} |"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", type=Path, nargs="+", metavar="MODEL TEST", help="a model's folder and a test file")
    parser.add_argument("--output", type=Path, metavar="FILE", help="also write the table here, as markdown")
    arguments = parser.parse_args()
    if len(arguments.models) % 2:
        parser.error("name a test file after every model")
    torch.set_num_threads(1)
    pairs = zip(arguments.models[::2], arguments.models[1::2], strict=True)
    report([OPENING.text(), *table([*pairs])], arguments.output)


if __name__ == "__main__":
    main()
