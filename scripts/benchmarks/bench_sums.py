"""Time sums over non-projective trees against peers on the same batches, in one run on one thread, with their errors.

    taskset -c 0 python -m scripts.benchmarks.bench_sums --supar DIR --torch-struct DIR --output FILE

Scores are N(0, 1), times 10, 50 and 100, and like a trained parser's (see ``support/graphs/random_scores.py``); every
method reads the same float32 numbers, laid out as it wants them. SuPar's MatrixTree (float64 inside) and torch-struct's
NonProjectiveDependencyCRF (float32, adds 1e-5 to every weight) come from clones of their repositories. LU is the log
determinant of the single-root Laplacian [MTT] in plain torch, its columns scaled by their maxima.
"""

import argparse
import importlib
import importlib.util
import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from scripts.support.graphs.random_scores import peaked_scores, random_scores
from scripts.support.peers.sums import Method, Sum, add_clone_arguments, clones, lu, treeparse
from scripts.support.reports.markdown import Opening, report
from scripts.support.reports.timing import Timed, take_turns
from torch import Tensor

from treeparse.kernels.sums.elimination import log_partition_and_marginals

Array = NDArray[np.float64]
LENGTHS = (10, 20, 40, 80, 160)
ROUND = 0.02  # CPU seconds for which a fast call is repeated in a round; a slow one is called once
MIN_ROUNDS, MAX_ROUNDS, BUDGET = 5, 25, 8.0  # rounds a batch, and CPU seconds after which no further one begins
WRONG_BY = 0.01  # nats of log Z, or of a marginal
TRAINED = "Like a trained parser's"
KINDS = {"N(0, 1)": 1, "N(0, 1) x 10": 10, "N(0, 1) x 50": 50, "N(0, 1) x 100": 100, TRAINED: 1}
SUMS = (
    "log partition with gradient",
    "log partition",
    "marginals, differentiable",
    "Hessian-vector product",
    "covariance",
    "entropy with gradient",
    "log marginals",
)
TIME_CELLS = "ms a batch of 32 | times treeparse's | quartiles"
OPENING = Opening(
    title="Sums over non-projective trees: time a batch of 32 sentences, one thread",
    measured="CPU time of log partitions with their gradient and of all other sums, by treeparse and its"
    " peers; and how wrong their results are.",
    on="batches of 32 sentences of 10 to 160 words whose scores are N(0, 1), times 10, 50 and 100, and "
    "like a trained parser's.",
    read="medians over rounds in which the methods take turns; a ratio is a method's time over that of "
    "treeparse's log partition with gradient of float32 scores in the same round, so 2 means twice as slow.",
    repeat="OMP_NUM_THREADS=1 taskset -c 0 python -m scripts.benchmarks.bench_sums --supar DIR --torch-struct DIR "
    "--output scripts/experiments/results/bench_sums.md",
    details="""Errors are the largest finite ones against treeparse's kernel (float64; a method that returns float32
rounds to it); a sentence is wrong if its log Z, in nats, or a marginal is off by 0.01 or NaN. A Hessian-vector
product differentiates marginals that are given; covariance is the variance of a tree's score.""",
)


@dataclass
class SumRun(Timed):
    """A call to be timed, and its row's first and last cells."""

    cells: tuple[str, ...]
    remarks: tuple[str, ...] = ()


def time_sums(entries: list[SumRun]) -> None:
    """Time all calls."""
    for entry in entries:
        entry.call()  # compiles
        entry.fill_round(ROUND, 200)
    take_turns(entries, fewest=MIN_ROUNDS, most=MAX_ROUNDS, budget=BUDGET)


def with_gradient(total: Sum, leaf: Tensor) -> Callable[[], None]:
    """The call that sums ``total`` of the leaf and leaves the gradient there."""

    def call() -> None:
        leaf.grad = None
        total(leaf).sum().backward()

    return call


def second_derivative(method: Method, leaf: Tensor) -> Callable[[], object]:
    """The call that differentiates marginals, taken when it is first called, in one direction."""

    @cache
    def given() -> tuple[Tensor, Tensor]:
        marginals = method.marginals(leaf)
        direction = torch.randn(marginals.shape, dtype=marginals.dtype, generator=torch.Generator().manual_seed(1))
        return marginals, direction.to(marginals.device)

    def call() -> object:
        marginals, direction = given()
        return torch.autograd.grad(marginals, leaf, direction, retain_graph=True)

    return call


def errors(method: Method, scores: Array) -> tuple[str, ...]:
    """The largest finite errors of log Z and of a marginal, and the count of wrong sentences, against our kernel."""
    lengths = np.full(len(scores), scores.shape[-1] - 1)
    true_log_z, true_marginals = log_partition_and_marginals(scores, lengths, single_root=True)
    leaf = method.lay_out(scores).requires_grad_()
    log_z = method.log_partition(leaf)
    (gradient,) = torch.autograd.grad(log_z.sum(), leaf)
    log_z_error = np.abs(log_z.detach().double().cpu().numpy() - true_log_z)
    loops = np.eye(scores.shape[-1]) == 1
    difference = np.abs(method.restore(gradient.double().cpu().numpy()) - true_marginals)
    error = np.where(loops, 0.0, difference)[:, :, 1:].max((1, 2))
    wrong = ~((log_z_error < WRONG_BY) & (error < WRONG_BY))  # NaN too
    return largest(log_z_error), largest(error), f"{wrong.sum()} of {len(wrong)}"


def largest(values: Array) -> str:
    """The largest finite value as a cell."""
    finite = values[np.isfinite(values)]
    return f"{finite.max():.0e}" if len(finite) else "none finite"


def precise_log_partition(scores: Array) -> float:
    """Log Z of one sentence without forbidden arcs ``(n+1, n+1)``, by elimination in 50-digit arithmetic."""
    mpmath = importlib.import_module("mpmath")
    with mpmath.workdps(50):
        weights = np.array([[mpmath.exp(score) for score in row] for row in scores.tolist()])
        factors = []
        for k in range(len(scores) - 1, 1, -1):
            factors.append(weights[1:k, k].sum())
            weights[:k, 1:k] += np.outer(weights[:k, k] / factors[-1], weights[k, 1:k])
        return float(mpmath.log(weights[0, 1]) + sum(map(mpmath.log, factors)))


def log_partition_table(methods: list[Method], kind: str, lengths: Iterable[int]) -> Iterator[str]:
    """Log partition with gradient under all methods, and how far off they are."""
    yield f"\n## Log partition with gradient: {kind}\n"
    yield f"| n | method | {TIME_CELLS} | error of log Z | error of a marginal | wrong |"
    yield "|--:|:--|--:|--:|--:|--:|--:|--:|"
    for n, scores in batches(kind, lengths):
        entries = []
        for method in methods:
            leaf = method.lay_out(scores).requires_grad_()
            call = with_gradient(method.log_partition, leaf)
            entries.append(SumRun(call, (str(n), method.name), errors(method, scores)))
        time_sums(entries)
        yield from rows(entries, entries[0])
        if importlib.util.find_spec("mpmath") is not None:
            yield precise_row(n, scores)


def precise_row(n: int, scores: Array) -> str:
    """How far our float64 kernel, by which all rows are judged, is off the 50-digit value in the first sentence."""
    exact = precise_log_partition(scores[0])
    log_z, _ = log_partition_and_marginals(scores[:1], np.array([n]), single_root=True)
    return (
        f"| {n} | the kernel against 50 digits, first sentence | | | | {abs(log_z[0] - exact):.0e} of {exact:.0f} | | |"
    )


def sums_table(methods: list[Method], kind: str, lengths: Iterable[int]) -> Iterator[str]:
    """Every other sum as a ratio to our log partition with gradient."""
    yield f"\n## All sums: {kind}\n"
    yield f"| n | sum | method | {TIME_CELLS} |"
    yield "|--:|:--|:--|--:|--:|--:|"
    for n, scores in batches(kind, lengths):
        entries = sorted(
            (SumRun(call, (str(n), *cells)) for method in methods for cells, call in calls(method, scores)),
            key=lambda entry: SUMS.index(entry.cells[1]),
        )
        time_sums(entries)
        yield from rows(entries, entries[0])


def calls(method: Method, scores: Array) -> Iterator[tuple[tuple[str, str], Callable[[], object]]]:
    """The sum, the method and the call of every sum that the method has."""
    leaf = method.lay_out(scores).requires_grad_()
    functions = {
        "log partition with gradient": with_gradient(method.log_partition, leaf),
        "marginals, differentiable": lambda: method.marginals(leaf),
        "Hessian-vector product": second_derivative(method, leaf),
    }
    if method.entropy is not None:
        functions["entropy with gradient"] = with_gradient(method.entropy, leaf)
    constant = method.lay_out(scores)
    for name, total in {"log partition": method.log_partition, **method.constants}.items():
        functions[name] = lambda total=total: total(constant)
    for name, function in functions.items():
        yield (name, method.name), function


def batches(kind: str, lengths: Iterable[int]) -> Iterator[tuple[int, Array]]:
    """A batch of every length; float32 numbers, so that no method has to round them."""
    stream = np.random.default_rng(1)
    for n in lengths:
        scores = peaked_scores(stream, n) if kind == TRAINED else random_scores(stream, n) * KINDS[kind]
        yield n, scores.astype(np.float32).astype(np.float64)


def rows(entries: list[SumRun], base: SumRun) -> Iterator[str]:
    """A row an entry, with ratios to the base in the same round."""
    for entry in entries:
        low, ratio, high = entry.over(base)
        cells = (f"{1e3 * entry.median:.3f}", f"{ratio:.2f}", f"{low:.2f} - {high:.2f}")
        yield f"| {' | '.join(entry.cells + cells + entry.remarks)} |"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_clone_arguments(parser)
    parser.add_argument("--lengths", type=int, nargs="+", default=LENGTHS, metavar="N", help="words a sentence")
    parser.add_argument("--output", type=Path, metavar="FILE", help="also write the tables here, as markdown")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    methods = [treeparse(torch.float32), treeparse(torch.float32, "torch")]
    methods += clones(arguments.supar, arguments.torch_struct)
    methods += [lu(torch.float64), lu(torch.float32)]
    in_double = [methods[0], treeparse(torch.float64), *methods[1:]]
    tables = [log_partition_table(in_double, kind, arguments.lengths) for kind in KINDS]
    tables += [sums_table(methods, kind, arguments.lengths) for kind in ("N(0, 1)", TRAINED)]
    report(itertools.chain([OPENING.text()], *tables), arguments.output)


if __name__ == "__main__":
    main()
