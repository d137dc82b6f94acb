"""Time what a CUDA device does for trees against peers there and against a copy to the CPU and back, in one run.

    python -m scripts.benchmarks.bench_device --all --supar DIR --torch-struct DIR --synjax DIR
        --treebank FILE --output OUT.md

``--all`` is everything that waits for a device. Piece by piece, where no command may run for long, ``--section`` (one
or several) measures some of it anew, and leaves what else stands in the output file:

    tests        the tests marked ``gpu``
    sanitizer    those of the kernels under NVIDIA's compute-sanitizer, where it is installed (memcheck, racecheck)
    sums         sums over all trees: time and errors
    projective   sums over projective trees
    best         best trees of both kinds
    samples      likewise
    training     what trees take of a training step and of parsing, words a second, a step as a graph

Without either, the tables of sums, projective, best and samples are made. ``--lengths`` and ``--batches`` cut a section
into smaller ones, which want an output file each. Methods are those of ``bench_sums.py``; times are wall time, with a
wait for the device at both ends of a round. A peer that is not named, or lacks what it needs, is left out with a line;
SynJax needs jax for the device, equinox, jaxtyping and typeguard 2.13. ``--device cpu --small`` runs everything on
small batches where there is no device, which shows that it runs.
"""

import argparse
import dataclasses
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import torch
from scripts.benchmarks.bench_sums import KINDS, SUMS, TRAINED, SumRun, calls, errors, rows, with_gradient
from scripts.support.device.checks import ROOT, SANITIZERS, sanitizer_lines, tests_lines
from scripts.support.device.targets import BY_CPU, NONPROJECTIVE, PROJECTIVE, TREES, Target, verdict
from scripts.support.device.training import Work, training_lines
from scripts.support.graphs.random_scores import peaked_scores, random_scores
from scripts.support.peers.sums import (
    Array,
    Method,
    add_clone_arguments,
    clones,
    lu,
    projective,
    synjax_calls,
    synjax_problem,
    treeparse,
)
from scripts.support.reports.markdown import Opening, report, this_machine
from scripts.support.reports.sections import Section, renewed
from scripts.support.reports.timing import take_turns
from scripts.support.training.parts import waiting_clock
from torch import Tensor

from treeparse import NonProjectiveCRF, ProjectiveCRF
from treeparse.batch import pick_device
from treeparse.device import cuda

Named = tuple[tuple[str, str], Callable[[], object]]  # a call, and what it does by which method
LENGTHS, BATCHES = (20, 40, 80, 160), (32, 1024)
SMALL_LENGTHS, SMALL_BATCHES, SMALL_SENTENCES = (5,), (3,), 8
ROUND = 0.02  # seconds for which a fast call is repeated in a round; a slow one is called once
ROUNDS = 15  # rounds a batch
BUDGET = 2.0  # CPU seconds after which no further one begins
MIN_ROUNDS = 3
SAMPLES = 8  # trees drawn a sentence
KEPT = ("N(0, 1)", TRAINED)
TABLES = ("sums", "projective", "best", "samples")
TIME_CELLS = "ms a batch | times treeparse's | quartiles | target"
OPENING = Opening(
    title="Trees on a CUDA device: time a batch",
    measured="wall time of sums over trees, best trees and samples by treeparse's CUDA kernels, its form"
    " in torch operations, LU and peers on the same device, and by treeparse on the CPU with the copies there and back;"
    " how wrong the sums are; and what trees take of training and parsing.",
    on=f"batches of {' and '.join(map(str, BATCHES))} sentences of {LENGTHS[0]} to {LENGTHS[-1]} words whose scores "
    "are N(0, 1), and like a trained parser's.",
    read="medians over rounds in which the methods take turns; a ratio is a method's time over that of treeparse as its"
    " users call it, for the same batch in the same round, so 2 means twice as slow; a target is the least ratio aimed"
    " at, and whether it is reached.",
    repeat="python -m scripts.benchmarks.bench_device --all --supar DIR --torch-struct DIR --synjax DIR --treebank FILE"
    " --output scripts/experiments/results/bench_device.md",
    details="Errors are as in `bench_sums.md`, against the CPU's kernel.",
)


def methods_on(device: torch.device, supar_at: Path | None, torch_struct_at: Path | None) -> list[Method]:
    """The library in its forms, determinants and peers, on scores of a device."""
    on_cpu = dataclasses.replace(treeparse(torch.float32, "numba"), name=BY_CPU)
    found = [treeparse(torch.float32), treeparse(torch.float32, "torch"), on_cpu]
    found += clones(supar_at, torch_struct_at)
    return on_device([*found, lu(torch.float64), lu(torch.float32)], device)


def on_device(methods: Iterable[Method], device: torch.device) -> list[Method]:
    """The same with scores on a device."""
    return [dataclasses.replace(method, lay_out=partial(_lay_out, method, device)) for method in methods]


def _lay_out(method: Method, device: torch.device, scores: Array) -> Tensor:
    return method.lay_out(scores).to(device)


def batch_of(kind: str, n: int, size: int) -> Array:
    """Scores ``(size, n+1, n+1)``; float32 numbers, so that no method has to round them."""
    stream = np.random.default_rng(1)
    scores = peaked_scores(stream, n, size) if kind == TRAINED else random_scores(stream, n, size) * KINDS[kind]
    return scores.astype(np.float32).astype(np.float64)


def errors_table(methods: list[Method], kind: str, lengths: Iterable[int], size: int) -> Iterator[str]:
    """How far off the log partitions and marginals of every method are, in batches of this size."""
    yield f"\n## Sums, errors: {kind}\n"
    yield "| n | method | error of log Z | error of a marginal | wrong |"
    yield "|--:|:--|--:|--:|--:|"
    for n in lengths:
        scores = batch_of(kind, n, size)
        for method in methods:
            yield f"| {n} | {method.name} | {' | '.join(errors(method, scores))} |"


def times_table(
    functions: Callable[[Array], Iterable[Named]],
    title: str,
    kind: str,
    lengths: Iterable[int],
    batches: Iterable[int],
    clock: Callable[[], float],
    budget: float,
    targets: Sequence[Target] = (),
) -> Iterator[str]:
    """A line for every call that ``functions`` makes of a batch; ratios are to the first of those that do the same."""
    yield f"\n## {title}: {kind}\n"
    yield f"| n | batch | what | method | {TIME_CELLS} |"
    yield "|--:|--:|:--|:--|--:|--:|--:|:--|"
    for size, n in itertools.product(batches, lengths):
        found = functions(batch_of(kind, n, size))
        for _, group in itertools.groupby(found, key=lambda pair: pair[0][0]):
            entries, failures = [], []
            for cells, call in group:
                entry = SumRun(call, (str(n), str(size), *cells), clock=clock)
                try:
                    entry.call()  # compiles
                    entry.fill_round(ROUND, 1000)
                except Exception as error:  # a peer's may be anything, and most are: no memory left
                    if not entries:
                        raise
                    torch.cuda.empty_cache()
                    failures.append(f"| {' | '.join(entry.cells)} | | | {type(error).__name__} | |")
                else:
                    entries.append(entry)
            take_turns(entries, fewest=MIN_ROUNDS, most=ROUNDS, budget=budget)
            for entry in entries:
                what, method = entry.cells[2:]
                entry.remarks = (verdict(targets, what, method, n, size, entry.over(entries[0])[1]),)
            yield from rows(entries, entries[0])
            yield from failures


def sums_of(methods: list[Method], synjax_at: Path | None, scores: Array) -> list[Named]:
    """All sums over all trees by all methods."""
    found = [pair for method in methods for pair in calls(method, scores)]
    return _by_sum(found + _synjax(synjax_at, scores))


def projective_sums_of(methods: list[Method], synjax_at: Path | None, scores: Array) -> list[Named]:
    """Log partitions and marginals of projective trees."""
    found: list[Named] = []
    for method in methods:
        leaf = method.lay_out(scores).requires_grad_()
        functions: dict[str, Callable[[], object]] = {
            "log partition with gradient": with_gradient(method.log_partition, leaf),
            "log partition": partial(method.log_partition, method.lay_out(scores)),
            "marginals, differentiable": partial(method.marginals, leaf),
        }
        found += [((what, method.name), call) for what, call in functions.items()]
    return _by_sum(found + _synjax(synjax_at, scores, crossing=False))


def _synjax(synjax_at: Path | None, scores: Array, *, crossing: bool = True) -> list[Named]:
    return [] if synjax_at is None else [*synjax_calls(synjax_at, scores, crossing=crossing)]


def _by_sum(found: list[Named]) -> list[Named]:
    return sorted(found, key=lambda pair: SUMS.index(pair[0][0]))


def trees_of(
    what: str, device: torch.device, family: type[NonProjectiveCRF | ProjectiveCRF], scores: Array
) -> list[Named]:
    """Best trees or samples on the device, and by way of the CPU."""
    tensor = torch.tensor(scores, dtype=torch.float32, device=device)
    choose = _mode if what == "best trees" else _sample

    def by_cpu() -> Tensor:
        return choose(family(tensor.cpu(), validate_args=False)).to(device)

    return [
        ((what, "treeparse"), lambda: choose(family(tensor, validate_args=False))),
        ((what, BY_CPU), by_cpu),
    ]


def _mode(p: NonProjectiveCRF | ProjectiveCRF) -> Tensor:
    return p.mode


def _sample(p: NonProjectiveCRF | ProjectiveCRF) -> Tensor:
    return p.sample((SAMPLES,))


def sections(options: argparse.Namespace, device: torch.device) -> dict[str, Section]:
    """All that there is to measure, by the names of the options."""
    sizes = options.lengths, options.batches, waiting_clock(device), options.budget
    peers = options.supar, options.torch_struct
    synjax_at = None if synjax_problem(options.synjax) else options.synjax

    def sums() -> Iterator[str]:
        methods = methods_on(device, *peers)
        for kind in KINDS:
            yield from errors_table(methods, kind, options.lengths, options.batches[0])
        for kind in KEPT:
            yield from times_table(partial(sums_of, methods, synjax_at), "Sums", kind, *sizes, NONPROJECTIVE)

    def projective_sums() -> Iterator[str]:
        methods = on_device([projective(torch.float32), *clones(*peers, crossing=False)], device)
        functions = partial(projective_sums_of, methods, synjax_at)
        for kind in KEPT:
            yield from times_table(functions, "Projective sums", kind, *sizes, PROJECTIVE)

    def trees(what: str, title: str) -> Iterator[str]:
        for family, kind in itertools.product((NonProjectiveCRF, ProjectiveCRF), KEPT):
            functions = partial(trees_of, what, device, family)
            yield from times_table(functions, f"{title}, {family.__name__}", kind, *sizes, TREES)

    work = Work(options.treebank, options.config, options.model, options.sentences, passes=1 if options.small else 3)
    return {
        "tests": Section("Tests", tests_lines),
        "sanitizer": Section("Sanitizer", partial(sanitizer_lines, options.tools)),
        "sums": Section("Sums", sums),
        "projective": Section("Projective sums", projective_sums),
        "best": Section("Best trees", partial(trees, "best trees", "Best trees")),
        "samples": Section("Samples", partial(trees, "samples", f"Samples, {SAMPLES} a sentence")),
        "training": Section("Training", partial(training_lines, work, device)),
    }


def left_out(options: argparse.Namespace) -> str:
    """A line about each peer that is not there."""
    places = {"SuPar": options.supar, "torch-struct": options.torch_struct}
    problems = {name: None if directory else "not named" for name, directory in places.items()}
    problems["SynJax"] = synjax_problem(options.synjax)
    return "\n".join(f"Without {name}: {problem}." for name, problem in problems.items() if problem)


def main(arguments: Sequence[str] | None = None) -> None:
    """Test, measure and print."""
    options = _options(arguments)
    device = pick_device(options.device)
    if device.type == "cpu" and not options.small:
        raise SystemExit("There is no CUDA device, or this build of torch has no CUDA: --device cpu --small tries out.")
    if device.type == "cuda":
        index = torch.cuda.current_device() if device.index is None else device.index
        cuda.launcher_of(index)  # raises where the kernels cannot be had, rather than time others
    machine = f"{torch.cuda.get_device_name(device)}; {this_machine()}" if device.type == "cuda" else this_machine()
    found = sections(options, device)
    chosen = list(found) if options.all else options.section or TABLES
    before = options.output.read_text(encoding="utf-8") if options.output and options.output.exists() else ""
    report(renewed(before, OPENING, found, chosen, f"\n{left_out(options)}".rstrip(), machine), options.output)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", action="store_true", help="all sections")
    names = ("tests", "sanitizer", *TABLES, "training")
    parser.add_argument("--section", nargs="+", choices=names, metavar="NAME", help=f"some of {', '.join(names)}")
    add_clone_arguments(parser)
    parser.add_argument("--synjax", type=Path, metavar="DIR", help="a clone of SynJax, which needs JAX")
    parser.add_argument("--lengths", type=int, nargs="+", metavar="N", help=f"words a sentence {LENGTHS}")
    parser.add_argument("--batches", type=int, nargs="+", metavar="B", help=f"sentences a batch {BATCHES}")
    parser.add_argument(
        "--budget", type=float, default=BUDGET, metavar="S", help=f"CPU seconds a table's row ({BUDGET})"
    )
    parser.add_argument("--tools", nargs="+", default=SANITIZERS, metavar="TOOL", help="of compute-sanitizer")
    parser.add_argument("--treebank", type=Path, metavar="FILE", help="to train on and parse (default: the demo's)")
    parser.add_argument("--model", type=Path, metavar="DIR", help="a trained model of it (default: untrained)")
    parser.add_argument("--config", type=Path, metavar="FILE", help="the parser's sizes (default: fast)")
    parser.add_argument("--sentences", type=int, default=4000, metavar="N", help="of the treebank (default 4000)")
    parser.add_argument("--device", default="cuda", help="cuda, cuda:1, or cpu to try out")
    parser.add_argument("--small", action="store_true", help="small batches, to try out")
    parser.add_argument("--output", type=Path, metavar="FILE", help="also write the tables here, as markdown")
    options = parser.parse_args(arguments)
    options.lengths = options.lengths or (SMALL_LENGTHS if options.small else LENGTHS)
    options.batches = options.batches or (SMALL_BATCHES if options.small else BATCHES)
    options.treebank = options.treebank or ROOT / "data" / ("demo-dev.conllu" if options.small else "demo-train.conllu")
    options.config = options.config or ROOT / "configs" / ("tiny.yaml" if options.small else "fast.yaml")
    options.sentences = min(options.sentences, SMALL_SENTENCES) if options.small else options.sentences
    return options


if __name__ == "__main__":
    main()
