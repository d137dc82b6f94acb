"""Time the sums over non-projective trees that training takes against peers on the same batches, on one thread.

    taskset -c 0 python -m scripts.benchmarks.bench_sums_race --supar DIR --torch-struct DIR [--output FILE]

The peers, and all other sums with their errors, are in ``bench_sums.py``.
"""

import argparse
import itertools
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import torch
from scripts.benchmarks.bench_sums import LENGTHS, TRAINED, SumRun, batches, time_sums, with_gradient
from scripts.support.peers.sums import Method, add_clone_arguments, clones, lu, treeparse
from scripts.support.reports.markdown import Opening, report
from torch import Tensor

OPENING = Opening(
    title="Sums over non-projective trees that training takes: treeparse against peers, one thread",
    measured="CPU time of log partitions with their gradient, and of marginals differentiated in one direction.",
    on="batches of 32 sentences of 10 to 160 words whose scores are N(0, 1), and like a trained parser's.",
    read="medians over rounds in which the methods take turns; how many times as long as treeparse's float64 sums of "
    "float32 scores the others take in the same round.",
    repeat="OMP_NUM_THREADS=1 taskset -c 0 python -m scripts.benchmarks.bench_sums_race --supar DIR --torch-struct DIR "
    "--output scripts/experiments/results/bench_sums_race.md",
)


def marginals_with_backward(method: Method, leaf: Tensor) -> Callable[[], object]:
    """The call that takes marginals and then differentiates them in one direction."""
    direction = torch.randn(leaf.shape, dtype=leaf.dtype, generator=torch.Generator().manual_seed(1))
    return lambda: torch.autograd.grad(method.marginals(leaf), leaf, direction)


SUMS: dict[str, Callable[[Method, Tensor], Callable[[], object]]] = {
    "log partition with gradient": lambda method, leaf: with_gradient(method.log_partition, leaf),
    "marginals with backward": marginals_with_backward,
}


def race_table(methods: list[Method], kind: str, lengths: Iterable[int]) -> Iterator[str]:
    """By how much every other method is slower than ours, the first."""
    yield f"\n## How many times as long as treeparse, float32, others take: {kind}\n"
    yield f"| n | sum | {' | '.join(method.name for method in methods[1:])} |"
    yield "|--:|:--|" + "--:|" * (len(methods) - 1)
    for n, scores in batches(kind, lengths):
        for name, call in SUMS.items():
            leaves = [method.lay_out(scores).requires_grad_() for method in methods]
            entries = [SumRun(call(*pair), (str(n), name)) for pair in zip(methods, leaves, strict=True)]
            time_sums(entries)
            ratios = (f"{entry.over(entries[0])[1]:.2f}" for entry in entries[1:])
            yield f"| {n} | {name} | {' | '.join(ratios)} |"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_clone_arguments(parser)
    parser.add_argument("--lengths", type=int, nargs="+", default=LENGTHS, metavar="N", help="words a sentence")
    parser.add_argument("--output", type=Path, metavar="FILE", help="also write the tables here, as markdown")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    methods = [treeparse(torch.float32)]
    methods += clones(arguments.supar, arguments.torch_struct)
    methods += [lu(torch.float64), lu(torch.float32)]
    tables = (race_table(methods, kind, arguments.lengths) for kind in ("N(0, 1)", TRAINED))
    report(itertools.chain([OPENING.text()], *tables), arguments.output)


if __name__ == "__main__":
    main()
