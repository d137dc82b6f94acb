"""How far sums over trees are off, beside 60-digit arithmetic: random scores by their size, and a trained parser's."""

import argparse
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal, localcontext
from itertools import chain
from pathlib import Path

import torch
from scripts.support.reports.markdown import Opening, report
from torch import Tensor

from treeparse import NonProjectiveCRF, Parser
from treeparse.data.conllu import load_treebank

sys.path.append(str(Path(__file__).resolve().parents[2] / "tests"))  # where the oracle lies

from fuzz.scores import KINDS, Item, errors
from helpers.precise import CONTEXT
from helpers.tree_cases import CASES, SECOND_ORDER, Case

MAGNITUDES = (-3, 0, 2, 3, 4, 5, 6)
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
    "probabilities, or relative where the value is above 1; for gradients relative to the largest or to the value.",
    on=f"sentences of {WORDS} words whose scores are random, tied, tied but for their last digits, equal, alternating "
    "or far apart, of up to the given size; float64; single and multi-root, with and without labels.",
    read="beside 60-digit arithmetic over all trees; 0 is below 1e-15.",
    repeat="OMP_NUM_THREADS=1 python -m scripts.experiments.measure_accuracy --model MODEL --treebank "
    "en_ewt-ud-dev.conllu "
    "--output scripts/experiments/results/measure_accuracy.md",
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table, and write it if asked."""
    parser = argparse.ArgumentParser(description="Measure the errors of sums over trees beside 60 digits.")
    parser.add_argument("--magnitudes", nargs="+", type=float, default=MAGNITUDES, help="log10 of the largest score")
    parser.add_argument("--model", metavar="DIR", help="a trained parser, for a second table")
    parser.add_argument("--treebank", metavar="FILE", help="sentences for it")
    parser.add_argument("--sentences", type=int, default=300, metavar="N", help="how many of them")
    parser.add_argument("--output", type=Path, metavar="FILE", help="also write the tables here")
    options = parser.parse_args(arguments)
    if (options.model is None) != (options.treebank is None):
        parser.error("--model and --treebank go together")
    lines = [OPENING.text().splitlines(), table(options.magnitudes)]
    if options.model:
        lines.append(of_trained(options.model, options.treebank, options.sentences))
    report(chain(*lines), options.output)


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


def of_trained(model: str, treebank: str, count: int) -> Iterator[str]:
    """The lines of a table of the sums over a trained parser's scores."""
    parser = Parser.from_pretrained(model)
    sentences = [sentence for sentence in load_treebank([treebank]) if len(sentence.words) > 1][:count]
    largest: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for sentence in sentences:
        with torch.no_grad():
            scores = parser.distribution(parser.collate([sentence])).base.scores[0].double()
        log_z, marginals = precise_sums(scores)
        for backend in ("numba", "torch"):
            leaf = scores.clone().requires_grad_()
            p = NonProjectiveCRF(leaf, backend=backend)
            (gradient,) = torch.autograd.grad(p.log_partition, leaf, retain_graph=True)
            off = {
                "log partition": abs(p.log_partition.item() - log_z) / max(1.0, abs(log_z)),
                "marginals": (p.marginals.detach() - marginals).abs().max().item(),
                "gradient": (gradient - marginals).abs().max().item(),
            }
            for quantity, error in off.items():
                largest[backend][quantity] = max(largest[backend][quantity], error)
    lengths = [len(sentence.words) for sentence in sentences]
    yield from ("", "## A trained parser's scores", "")
    yield (
        f"The first {len(sentences)} sentences of two words or more of {Path(treebank).name}, up to {max(lengths)} "
        "words, single root; beside elimination in 60 digits."
    )
    yield from ("", "| backend | log partition | marginals | gradient of log partition |", "|:--|--:|--:|--:|")
    for backend, found in largest.items():
        yield f"| {backend} | {' | '.join(shown(error) for error in found.values())} |"


def precise_sums(scores: Tensor) -> tuple[float, Tensor]:
    """Return the log partition and marginals of single-root trees: the determinant and inverse of Koo et al. (2007)."""
    words, scores = range(1, len(scores)), scores.clone()
    with localcontext(CONTEXT):
        w = [[Decimal(score).exp() for score in row] for row in scores.fill_diagonal_(-torch.inf).tolist()]
        matrix = [[-w[i][j] if i != j else sum((w[h][j] for h in words), Decimal(0)) for j in words] for i in words]
        matrix[0] = [w[0][j] for j in words]
        determinant, inverse = _inverted(matrix)
        marginals = torch.zeros(scores.shape, dtype=torch.float64)
        for j in words:
            marginals[0, j] = float(w[0][j] * inverse[j - 1][0])
            for i in words:
                with_pivot = inverse[j - 1][j - 1] if j > 1 else Decimal(0)
                with_head = inverse[j - 1][i - 1] if i > 1 else Decimal(0)
                marginals[i, j] = float(w[i][j] * (with_pivot - with_head))
        return float(determinant.ln()), marginals


def _inverted(matrix: Iterable[Sequence[Decimal]]) -> tuple[Decimal, list[list[Decimal]]]:
    """Return the determinant and the inverse, by Gauss and Jordan with row pivots."""
    rows = [[*row] for row in matrix]
    size, determinant = len(rows), Decimal(1)
    for place, row in enumerate(rows):
        row.extend(Decimal(place == column) for column in range(size))
    for column in range(size):
        best = max(range(column, size), key=lambda place: abs(rows[place][column]))
        if best != column:
            rows[column], rows[best], determinant = rows[best], rows[column], -determinant
        pivot = rows[column][column]
        determinant *= pivot
        rows[column] = [entry / pivot for entry in rows[column]]
        for place in range(size):
            factor = rows[place][column]
            if place != column and factor:
                rows[place] = [a - factor * b for a, b in zip(rows[place], rows[column], strict=True)]
    return determinant, [row[size:] for row in rows]


if __name__ == "__main__":
    main()
