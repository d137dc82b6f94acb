"""How many times as fast as others the sums and trees of a CUDA device are meant to be."""

from collections.abc import Sequence
from dataclasses import dataclass

SHARE = 0.05  # of a training step, and of parsing, that trees may take


@dataclass(frozen=True)
class Target:
    """What is done, against methods whose names start so; how many times as fast, and for which batches."""

    what: Sequence[str]
    methods: Sequence[str]
    at_least: float
    shortest: int = 1
    longest: int = 160
    smallest: int = 1  # batch


SUMS = ("log partition with gradient", "log partition", "marginals, differentiable")
PEERS = ("SuPar", "torch-struct", "SynJax")
BY_CPU = "treeparse, on the CPU and copied"
NONPROJECTIVE = Target(SUMS, ["LU"], 10, longest=80), Target(SUMS, ["LU"], 4, shortest=81)
PROJECTIVE = (Target(["marginals, differentiable"], PEERS, 10),)
TREES = (Target(["best trees", "samples"], [BY_CPU], 20, smallest=1024),)


def verdict(targets: Sequence[Target], what: str, method: str, n: int, batch: int, ratio: float) -> str:
    """Whether a method takes so many times as long as is aimed at; nothing where nothing is."""
    for target in targets:
        is_meant = what in target.what and method.startswith(tuple(target.methods))
        if is_meant and target.shortest <= n <= target.longest and batch >= target.smallest:
            return f"{target.at_least:g}: {'ok' if ratio >= target.at_least else 'missed'}"
    return ""


def verdict_on_share(share: float) -> str:
    """The same of a share of time."""
    return f"at most {SHARE:.0%}: {'ok' if share <= SHARE else 'missed'}"
