r"""What a training step costs under each objective, as a ratio to the same step under the likelihood of trees.

    python -m scripts.benchmarks.bench_objectives --treebank $EWT-train.conllu \
        --model runs/fast/model --output scripts/experiments/results/bench_objectives.md

A step is all that training does with a batch: scores, trees, loss, gradients, clipping and the optimiser; the parser is
a trained one, whose probabilities are those of training. All objectives take turns on the same batches, so that a busy
machine slows all of them alike; times are CPU time of one thread. A teacher scores the batch too, which is no work on
trees: it is in the row of its own, and left out in the other.
"""

import argparse
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
from scripts.support.reports.markdown import Opening, report
from scripts.support.reports.timing import Entry, take_turns
from scripts.support.semisup.files import write_constraints
from scripts.support.training.parts import take_step

from treeparse.batch import Batch
from treeparse.data import load_treebank
from treeparse.data.batches.mixing import BucketBatchSampler
from treeparse.model import Parser, Teacher
from treeparse.objectives import (
    Divergence,
    Entropy,
    GeneralizedExpectation,
    HeadSelection,
    KBestRisk,
    MaxMargin,
    MinimumRisk,
    Objective,
    Reference,
    SampledRisk,
    TreeLikelihood,
    Weighted,
    WeightedSum,
)
from treeparse.trees import LabeledCRF, TreeDistribution

LIKELIHOOD = "likelihood of the tree"
CONSTRAINTS = 20
OPENING = Opening(
    title="What objectives cost",
    measured="CPU time of a training step (scores, trees, loss, gradients, clipping, AdamW).",
    on="batches of the training set of UD English-EWT, for a parser that the config fast trained.",
    read="ratios to the likelihood's step on the same batch: medians and quartiles over batches and rounds.",
    repeat="python -m scripts.benchmarks.bench_objectives --treebank ... --model ... --output "
    "scripts/experiments/results/bench_objectives.md",
)


class Prepared(Reference):
    """What a reference says of some batches, computed before."""

    def __init__(self, reference: Reference, parser: Parser, batches: Sequence[Batch], bf16: bool) -> None:
        with torch.no_grad(), autocast(bf16):
            self.known = {id(batch): reference.distributions(parser.distribution(batch), batch) for batch in batches}
            for p in (each for found in self.known.values() for each in found):
                p.entropy()  # its own sums

    def distributions(self, own: LabeledCRF, batch: Batch) -> Sequence[TreeDistribution]:
        return self.known[id(batch)]


def autocast(bf16: bool) -> torch.autocast:
    """The precision of training."""
    return torch.autocast("cpu", torch.bfloat16, enabled=bf16)


def with_likelihood(objective: Objective) -> Objective:
    """The likelihood and this."""
    return WeightedSum([Weighted(TreeLikelihood()), Weighted(objective, 0.1, "all")])


def objectives(
    model: str, constraints: Path, parser: Parser, batches: Sequence[Batch], bf16: bool
) -> dict[str, Objective]:
    """What is compared, by the names of the table."""
    teacher = Teacher([model])
    return {
        LIKELIHOOD: TreeLikelihood(),
        "head selection": HeadSelection(),
        "exact minimum risk": MinimumRisk(),
        "likelihood and entropy": with_likelihood(Entropy()),
        "KL to a teacher, whose scores are there": Divergence(Prepared(teacher, parser, batches, bf16), "kl"),
        "KL to a teacher of the same size": Divergence(teacher, "kl"),
        f"likelihood and {CONSTRAINTS} constraints": with_likelihood(GeneralizedExpectation(str(constraints))),
        "max-margin": MaxMargin(),
        "minimum risk, 8 different trees drawn": SampledRisk(8),
        "minimum risk, 8 best trees": KBestRisk(8),
    }


def tables(options: argparse.Namespace, constraints: Path) -> Iterator[str]:
    """The report, measured as it is written."""
    torch.manual_seed(1)
    sentences = [sentence.words for sentence in load_treebank(options.treebank)]
    parser = Parser.from_pretrained(options.model).train()
    sampler = BucketBatchSampler(list(map(len, sentences)), max_words=1000, max_squared=40000, shuffle=True, seed=1)
    batches = [parser.collate(sentences[place] for place in places) for places in list(sampler)[: options.batches]]
    optimizer = torch.optim.AdamW(parser.parameters(), lr=1e-7, fused=True)

    def step(objective: Objective, batch: Batch) -> None:
        take_step(parser, optimizer, batch, objective, lambda: autocast(options.bf16))

    steps = []
    for name, objective in objectives(options.model, constraints, parser, batches, options.bf16).items():
        turns = iter(batches * (options.rounds + 2))
        steps.append(Entry(lambda o=objective, t=turns: step(o, next(t)), name=name))
    for each in steps:
        each.call()  # compiles the kernels
    take_turns(steps, fewest=options.rounds * len(batches), most=options.rounds * len(batches), budget=0)
    words = sum(batch.num_words for batch in batches) / len(batches)
    kind = "bfloat16" if options.bf16 else "float32"
    yield from OPENING.text().splitlines()
    yield from ("", "## Training steps", "")
    yield f"{len(batches)} batches of {words:.0f} words on average, {options.rounds} rounds, {kind} scorer, one thread."
    yield ""
    yield "| objective | ms a step | over the likelihood | quartiles |"
    yield "|:--|--:|--:|--:|"
    for each in steps:
        low, median, high = each.over(steps[0])
        yield f"| {each.name} | {1000 * each.median:.0f} | {median:.2f} | {low:.2f} to {high:.2f} |"


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--treebank", required=True, metavar="CONLLU", help="training sentences with UPOS")
    parser.add_argument("--model", required=True, metavar="DIR", help="a trained parser")
    parser.add_argument("--batches", type=int, default=12, metavar="N", help="default: 12")
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="over all batches (default: 5)")
    parser.add_argument("--bf16", action=argparse.BooleanOptionalAction, default=True, help="the scorer in bfloat16")
    parser.add_argument("--output", type=Path, metavar="FILE", help="also write the table here")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        constraints = write_constraints(Path(options.treebank), CONSTRAINTS, Path(folder) / "constraints.yaml")
        report(tables(options, constraints), options.output)


if __name__ == "__main__":
    main()
