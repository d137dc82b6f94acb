"""Time projective trees with scores of siblings against SuPar's Dependency2oCRF on the same batches, on one thread.

    taskset -c 0 python -m scripts.benchmarks.bench_second_order --supar DIR --output FILE

Scores are N(0, 1) in float32. SuPar, whose first dependents have no scores, comes from a clone of its repository.
"""

import argparse
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

import torch
from scripts.support.peers.second_order import Calls, kernels_alone, supar, with_arcs, with_grandparents, with_siblings
from scripts.support.reports.markdown import Opening, report
from scripts.support.reports.timing import Entry, race
from torch import Tensor

BATCH = 32
LENGTHS = (10, 20, 40)
ROUNDS = 11
OURS, OTHERS = "`SiblingCRF`", ("SuPar", "its kernel alone", "`ProjectiveCRF`", "`SecondOrderCRF`")
TOLERANCE = 2e-5  # of log Z over its size, and of marginals: SuPar computes in float32
OPENING = Opening(
    title="Projective trees with scores of siblings and grandparents: time a batch of 32 sentences, one thread",
    measured="CPU time of sums, best trees, lists and samples, through the distributions' public interfaces.",
    on="batches of 32 sentences of 10 to 40 words whose scores of all parts are N(0, 1), float32.",
    read="medians over rounds in which all take turns; a ratio is the median of a time over treeparse's `SiblingCRF` "
    "in the same round, so 2 means twice as slow.",
    repeat="OMP_NUM_THREADS=1 taskset -c 0 python -m scripts.benchmarks.bench_second_order --supar DIR "
    "--output scripts/experiments/results/bench_second_order.md",
    details="SuPar's `Dependency2oCRF` scores siblings, too; its log partitions, marginals and best trees are compared "
    "with treeparse's before they are timed. The kernel alone takes and returns arrays. `ProjectiveCRF` scores arcs "
    "alone, `SecondOrderCRF` grandparents as well, in O(n^4).",
)


def random_parts(words: int) -> tuple[Tensor, Tensor]:
    """Scores of a batch; those of first dependents are 0, because SuPar has none."""
    stream = torch.Generator().manual_seed(words)
    arcs, siblings = (torch.randn(BATCH, *(words + 1,) * axes, generator=stream) for axes in (2, 3))
    node = torch.arange(words + 1)
    siblings[:, node, :, node] = 0.0
    return arcs, siblings


def check(ours: Calls, theirs: Calls) -> None:
    """Raise unless both compute the same."""
    log_z, other = ours["log partition"](), theirs["log partition"]()
    torch.testing.assert_close(other.double(), log_z.double(), rtol=TOLERANCE, atol=0)
    torch.testing.assert_close(theirs["marginals"](), ours["marginals"](), rtol=0, atol=10 * TOLERANCE)
    if not torch.equal(theirs["best tree"]()[:, 1:], ours["best tree"]()[:, 1:]):
        raise SystemExit("SuPar's best trees are other ones.")


def table(supar_at: Path | None, lengths: Iterable[int]) -> Iterator[str]:
    """Times and ratios of every quantity and length."""
    yield f"\n| n | what | {OURS}, ms | {' | '.join(OTHERS)} |\n|--:|:--|--:|{'--:|' * len(OTHERS)}"
    for words in lengths:
        arcs, siblings = random_parts(words)
        methods = {OURS: with_siblings(arcs, siblings)}
        if supar_at:
            methods["SuPar"] = supar(supar_at, arcs, siblings)
            check(methods[OURS], methods["SuPar"])
        methods["its kernel alone"] = kernels_alone(arcs, siblings)
        methods["`ProjectiveCRF`"] = with_arcs(arcs)
        methods["`SecondOrderCRF`"] = with_grandparents(arcs, siblings, torch.randn(siblings.shape))
        for what in methods[OURS]:
            entries = [Entry(calls[what], name=name) for name, calls in methods.items() if what in calls]
            timed = race(entries, ROUNDS)
            own = timed[OURS]
            ratios = (f"{timed[name].over(own)[1]:.2f}" if name in timed else "" for name in OTHERS)
            yield f"| {words} | {what} | {1e3 * own.median:.3f} | {' | '.join(ratios)} |"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--supar", type=Path, metavar="DIR", help="a clone of SuPar")
    parser.add_argument("--lengths", type=int, nargs="+", default=LENGTHS, metavar="N", help="words a sentence")
    parser.add_argument("--output", type=Path, metavar="FILE", help="also write the table here, as markdown")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    report(
        chain([OPENING.text(), "\n## Times and ratios"], table(arguments.supar, arguments.lengths)), arguments.output
    )


if __name__ == "__main__":
    main()
