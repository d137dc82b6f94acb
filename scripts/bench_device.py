#!/usr/bin/env python
"""Time what a CUDA device does for trees against peers there and against a copy to the CPU and back, in one run.

    python scripts/bench_device.py --all --supar DIR --torch-struct DIR --output scripts/results/bench_device.md

``--all`` is everything that waits for a device: the tests marked ``gpu``, the same under NVIDIA's compute-sanitizer
where it is installed (memcheck, racecheck), and the tables. Without it only the tables are made. Methods are those of
``bench_sums.py``; times are wall time, with a wait for the device at both ends of a round.
"""

import argparse
import dataclasses
import itertools
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import torch
from bench_sums import KINDS, SUMS, TRAINED, SumRun, calls, errors, rows
from support.graphs.random_scores import peaked_scores, random_scores
from support.peers.sums import Array, Method, add_clone_arguments, clones, lu, treeparse
from support.reports.markdown import Opening, report, this_machine
from support.reports.timing import take_turns
from torch import Tensor

from treeparse import NonProjectiveCRF
from treeparse.device import cuda
from treeparse.trees.families import Backend

Named = tuple[tuple[str, str], Callable[[], object]]  # a call, and what it does by which method
LENGTHS, BATCHES = (20, 40, 80, 160), (32, 1024)
ROUND = 0.02  # seconds for which a fast call is repeated in a round; a slow one is called once
ROUNDS, BUDGET = 15, 8.0  # rounds a batch, and CPU seconds after which no further one begins
MIN_ROUNDS = 3
SAMPLES = 8  # trees drawn a sentence
BY_CPU = "treeparse, on the CPU and copied"
KEPT = ("N(0, 1)", TRAINED)
TIME_CELLS = "ms a batch | times treeparse's | quartiles"
GPU_TESTS = (sys.executable, "-m", "pytest", "-q", "-m", "gpu")
SANITIZERS = ("memcheck", "racecheck")
ROOT = Path(__file__).parents[1]
OPENING = Opening(
    title="Trees on a CUDA device: time a batch",
    measured="wall time of sums over non-projective trees, best trees and samples by treeparse's CUDA kernels, its form"
    " in torch operations, LU and peers on the same device, and by treeparse on the CPU with the copies there and back;"
    " and how wrong the sums are.",
    on=f"batches of {' and '.join(map(str, BATCHES))} sentences of {LENGTHS[0]} to {LENGTHS[-1]} words whose scores "
    "are N(0, 1), and like a trained parser's.",
    read="medians over rounds in which the methods take turns; a ratio is a method's time over that of treeparse as its"
    " users call it, for the same batch in the same round, so 2 means twice as slow.",
    repeat="python scripts/bench_device.py --all --supar DIR --torch-struct DIR"
    " --output scripts/results/bench_device.md",
    details="Errors are as in `bench_sums.md`, against the CPU's kernel.",
)


def methods_on(device: torch.device, supar_at: Path | None, torch_struct_at: Path | None) -> list[Method]:
    """The library in its forms, determinants and peers, on scores of a device."""
    on_cpu = dataclasses.replace(treeparse(torch.float32, "numba"), name=BY_CPU)
    found = [treeparse(torch.float32), treeparse(torch.float32, "torch"), on_cpu]
    found += clones(supar_at, torch_struct_at)
    found += [lu(torch.float64), lu(torch.float32)]
    return [dataclasses.replace(method, lay_out=partial(_lay_out, method, device)) for method in found]


def _lay_out(method: Method, device: torch.device, scores: Array) -> Tensor:
    return method.lay_out(scores).to(device)


def batch_of(kind: str, n: int, size: int) -> Array:
    """Scores ``(size, n+1, n+1)``; float32 numbers, so that no method has to round them."""
    stream = np.random.default_rng(1)
    scores = peaked_scores(stream, n, size) if kind == TRAINED else random_scores(stream, n, size) * KINDS[kind]
    return scores.astype(np.float32).astype(np.float64)


def errors_table(methods: list[Method], kind: str, lengths: Iterable[int]) -> Iterator[str]:
    """How far off the log partitions and marginals of every method are, in batches of the smaller size."""
    yield f"\n## Errors: {kind}\n"
    yield "| n | method | error of log Z | error of a marginal | wrong |"
    yield "|--:|:--|--:|--:|--:|"
    for n in lengths:
        scores = batch_of(kind, n, BATCHES[0])
        for method in methods:
            yield f"| {n} | {method.name} | {' | '.join(errors(method, scores))} |"


def times_table(
    functions: Callable[[Array], list[Named]],
    title: str,
    kind: str,
    lengths: Iterable[int],
    batches: Iterable[int],
    clock: Callable[[], float],
) -> Iterator[str]:
    """A line for every call that ``functions`` makes of a batch; ratios are to the first of those that do the same."""
    yield f"\n## {title}: {kind}\n"
    yield f"| n | batch | what | method | {TIME_CELLS} |"
    yield "|--:|--:|:--|:--|--:|--:|--:|"
    for size, n in itertools.product(batches, lengths):
        found = functions(batch_of(kind, n, size))
        for _, group in itertools.groupby(found, key=lambda pair: pair[0][0]):
            entries = [SumRun(call, (str(n), str(size), *cells), clock=clock) for cells, call in group]
            for entry in entries:
                entry.call()  # compiles
                entry.fill_round(ROUND, 1000)
            take_turns(entries, fewest=MIN_ROUNDS, most=ROUNDS, budget=BUDGET)
            yield from rows(entries, entries[0])


def sums_of(methods: list[Method], scores: Array) -> list[Named]:
    """All sums by all methods."""
    found = [pair for method in methods for pair in calls(method, scores)]
    return sorted(found, key=lambda pair: SUMS.index(pair[0][0]))


def trees_of(device: torch.device, scores: Array) -> list[Named]:
    """Best trees and samples on the device, and by way of the CPU."""
    tensor = torch.tensor(scores, dtype=torch.float32, device=device)
    forms: dict[str, Backend | None] = {"treeparse": None, BY_CPU: "numba"}
    makers = {
        name: partial(NonProjectiveCRF, tensor, backend=backend, validate_args=False) for name, backend in forms.items()
    }
    calls = {"best trees": _mode, f"{SAMPLES} samples": _sample}
    return [((what, name), partial(call, make)) for what, call in calls.items() for name, make in makers.items()]


def _mode(make: Callable[[], NonProjectiveCRF]) -> Tensor:
    return make().mode


def _sample(make: Callable[[], NonProjectiveCRF]) -> Tensor:
    return make().sample((SAMPLES,))


def clock_of(device: torch.device) -> Callable[[], float]:
    """The wall's clock, read when the device has done all it was asked to."""

    def clock() -> float:
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        return time.perf_counter()

    return clock


def run_tests() -> None:
    """Run the tests that need a device, by themselves and under the sanitizers; leaves with an error if any fails."""
    subprocess.run(GPU_TESTS, cwd=ROOT, check=True)
    sanitizer = shutil.which("compute-sanitizer")
    for tool in SANITIZERS if sanitizer else ():
        command = [str(sanitizer), "--tool", tool, "--error-exitcode", "1", *GPU_TESTS, "tests/device"]
        subprocess.run(command, cwd=ROOT, check=True)
    if not sanitizer:
        print("compute-sanitizer is not installed: memory and races were not checked.")


def main() -> None:
    """Test, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", action="store_true", help="also run the tests that need a device")
    add_clone_arguments(parser)
    parser.add_argument("--lengths", type=int, nargs="+", default=LENGTHS, metavar="N", help="words a sentence")
    parser.add_argument("--batches", type=int, nargs="+", default=BATCHES, metavar="B", help="sentences a batch")
    parser.add_argument("--output", type=Path, metavar="FILE", help="also write the tables here, as markdown")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("There is no CUDA device, or this build of torch has no CUDA.")
    if options.all:
        run_tests()
    device = torch.device("cuda", torch.cuda.current_device())
    cuda.launcher_of(torch.cuda.current_device())  # raises where the kernels cannot be had, rather than time others
    methods, clock = methods_on(device, options.supar, options.torch_struct), clock_of(device)
    sizes = options.lengths, options.batches, clock
    tables = [errors_table(methods, kind, options.lengths) for kind in KINDS]
    tables += [times_table(partial(sums_of, methods), "Sums", kind, *sizes) for kind in KEPT]
    tables += [times_table(partial(trees_of, device), "Trees", kind, *sizes) for kind in KEPT]
    machine = f"{torch.cuda.get_device_name(device)}; {this_machine()}"
    report(itertools.chain([OPENING.text(machine)], *tables), options.output)


if __name__ == "__main__":
    main()
