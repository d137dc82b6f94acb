r"""How much the gradient of sampled minimum risk varies on a trained parser, by how its trees are drawn.

    python -m scripts.experiments.compare_risk_estimators --treebank $EWT-test.conllu \
        --model runs/fast/model --output scripts/experiments/results/compare_risk_estimators.md

Of some sentences the gradient of the expected number of wrong words in the scores of arcs is estimated many times from
a few drawn trees, and compared with the exact one: with replacement (a mean, each tree's cost less that of the others)
and without (Kool et al. 2020). Both are unbiased; shown is the squared distance to the exact gradient, a sentence on
average, over the squared length of the exact gradient; and how far the mean of all estimates is from the exact
gradient, in standard errors of that mean, which for an unbiased estimate is about 1.
"""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
from scripts.support.reports.markdown import Opening, report
from torch import Tensor

from treeparse.batch import Batch
from treeparse.data import load_treebank
from treeparse.model import Parser
from treeparse.objectives import MinimumRisk, Objective, SampledRisk
from treeparse.trees import LabeledCRF

COUNTS = (2, 4, 8, 16)
LENGTHS = range(10, 31)  # of sentences
OPENING = Opening(
    title="Estimates of minimum risk",
    measured="the squared error of gradients from a few drawn trees, over the exact gradient's squared length.",
    on="test sentences of UD English-EWT of 10 to 30 words, under a parser that the config fast trained.",
    read="less is better; in brackets the distance of the mean estimate from the exact gradient, in standard errors.",
    repeat="python -m scripts.experiments.compare_risk_estimators --treebank ... --model ... --output ...",
)


def gradient(objective: Objective, arcs: Tensor, labels: Tensor, p: LabeledCRF, batch: Batch) -> Tensor:
    """The objective's gradient in the scores of arcs ``(B, n+1, n+1)``, under the scores of a distribution."""
    arcs = arcs.clone().requires_grad_()
    q = LabeledCRF(p.base.with_scores(arcs), labels)
    return torch.autograd.grad(objective(q, batch).sum(), arcs)[0].nan_to_num(0.0)


def tables(options: argparse.Namespace) -> Iterator[str]:
    """The report."""
    sentences = [s.words for s in load_treebank(options.treebank) if len(s.words) in LENGTHS][: options.sentences]
    parser = Parser.from_pretrained(options.model)
    batch = parser.collate(sentences)
    with torch.no_grad():
        p = parser.distribution(batch)
        arcs, labels = p.scores, p.labels.source.from_heads(0, p.scores.shape[-1])
    exact = gradient(MinimumRisk(), arcs, labels, p, batch)
    length = exact.square().sum()
    yield from OPENING.text().splitlines()
    yield from ("", "## Squared error over squared length", "")
    yield f"{len(sentences)} sentences, {options.repeats} estimates of each."
    yield ""
    yield "| trees | with replacement | without | ratio |"
    yield "|--:|--:|--:|--:|"
    for count in COUNTS:
        cells, errors = [], []
        for replacement in (True, False):
            torch.manual_seed(1)
            objective = SampledRisk(count, replacement)
            draws = torch.stack([gradient(objective, arcs, labels, p, batch) for _ in range(options.repeats)])
            errors.append(float((draws - exact).square().sum() / options.repeats / length))
            off = (draws.mean(0) - exact).square().sum() / (draws.var(0).sum() / options.repeats)
            cells.append(f"{errors[-1]:.3f} ({float(off.sqrt()):.2f})")
        yield f"| {count} | {' | '.join(cells)} | {errors[1] / errors[0]:.2f} |"


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--treebank", required=True, metavar="CONLLU", help="sentences with gold trees")
    parser.add_argument("--model", required=True, metavar="DIR", help="a trained parser")
    parser.add_argument("--sentences", type=int, default=64, metavar="N", help="default: 64")
    parser.add_argument("--repeats", type=int, default=200, metavar="N", help="default: 200")
    parser.add_argument("--output", type=Path, metavar="FILE", help="also write the table here")
    options = parser.parse_args(arguments)
    report(tables(options), options.output)


if __name__ == "__main__":
    main()
