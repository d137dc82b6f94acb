#!/usr/bin/env python
"""How far sums over trees are off, beside 60-digit arithmetic over all trees, by the size of scores."""

import argparse
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

import torch
from support.reports.markdown import Opening, report

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))  # where the oracle lies

from fuzz.scores import KINDS, Item, errors
from helpers.tree_cases import CASES, SECOND_ORDER, Case

MAGNITUDES = (-3, 0, 2, 3, 4, 6, 8, 10, 12)
WORDS = 3
SEEDS = 3
# What the table shows together: the largest error of each.
COLUMNS = {
    "log partition": ("log partition", "gradient of log partition"),
    "marginals": ("marginals",),
    "log probabilities": ("log probabilities",),
    "entropy": ("entropy", "gradient of entropy"),
    "cross-entropy, KL": (
        "cross-entropy",
        "KL divergence",
        "gradient of cross-entropy",
        "gradient of cross-entropy, of q",
    ),
    "risk": ("risk", "gradient of risk"),
}
OPENING = Opening(
    title="How far sums over trees are off",
    measured="the largest error of each quantity and of its gradients in the scores: absolute in nats and "
    "probabilities, or relative where the value is above 1.",
    on=f"sentences of {WORDS} words whose scores are random, tied, tied but for their last digits, equal, alternating "
    "or far apart, of up to the given size; float64; single and multi-root, with and without labels.",
    read="beside 60-digit arithmetic over all trees; 0 is below 1e-15.",
    repeat="OMP_NUM_THREADS=1 scripts/measure_accuracy.py --output scripts/results/measure_accuracy.md",
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table, and write it if asked."""
    parser = argparse.ArgumentParser(description="Measure the errors of sums over trees beside 60 digits.")
    parser.add_argument("--magnitudes", nargs="+", type=float, default=MAGNITUDES, help="log10 of the largest score")
    parser.add_argument("--output", type=Path, metavar="FILE", help="also write the table here")
    options = parser.parse_args(arguments)
    report(chain(OPENING.text().splitlines(), table(options.magnitudes)), options.output)


def table(magnitudes: Sequence[float]) -> Iterator[str]:
    """The lines of the table, a row for each family of trees and size of scores."""
    yield from ("", "## Errors", "")
    yield f"| trees | scores up to | {' | '.join(COLUMNS)} |"
    yield f"|:--|--:|{'--:|' * len(COLUMNS)}"
    families: dict[str, list[Case]] = defaultdict(list)
    for case in CASES + SECOND_ORDER:
        families[f"{case.kind.name}{', labels' if case.labels else ''}"].append(case)
    for name, cases in families.items():
        for magnitude in magnitudes:
            found = largest_errors(cases, magnitude)
            row = (shown(max(found[quantity] for quantity in column)) for column in COLUMNS.values())
            yield f"| {name} | 1e{magnitude:g} | {' | '.join(row)} |"


def shown(error: float) -> str:
    """One digit of an error."""
    return "0" if error < 1e-15 else f"{error:.0e}"


def largest_errors(cases: Sequence[Case], magnitude: float) -> dict[str, float]:
    """The largest error of each quantity over all kinds of scores."""
    largest: dict[str, float] = defaultdict(float)
    for case in cases:
        for kind in KINDS:
            for seed in range(SEEDS):
                parameters = Item(kind, WORDS, magnitude, 0.0, seed).parameters(case, torch.float64)
                for quantity, error in errors(case, parameters, seed=seed).items():
                    largest[quantity] = max(largest[quantity], error)
    return largest


if __name__ == "__main__":
    main()
