"""What scores of siblings and grandparents cost a training step and parsing, over scores of arcs alone.

    EWT=$TREEPARSE_TREEBANKS/UD_English-EWT/en_ewt-ud
    OMP_NUM_THREADS=1 python -m scripts.benchmarks.bench_trees --treebank $EWT-train.conllu --test $EWT-test.conllu
        --output FILE

A parser of each kind of trees learns for some epochs by the config ``second_order``, because the better a parser knows
its arcs, the fewer rounds its search for the best labelled trees takes, and the more arcs it can prune. A step is all
that training does with a batch: scores, trees, loss, gradients, clipping and AdamW; parsing is ``Parser.parse``. All
kinds take turns on the same batches, so that a busy machine slows all of them alike. As in ``treeparse train``, freed
memory is kept.
"""

import argparse
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from scripts.support.corpora.commands import train_briefly
from scripts.support.reports.markdown import Opening, report
from scripts.support.reports.timing import Entry, take_turns
from scripts.support.training.parts import take_step

from treeparse.cli.commands.train import keep_freed_memory
from treeparse.data import load_treebank
from treeparse.data.batches.mixing import BucketBatchSampler
from treeparse.data.parses import with_parses
from treeparse.metrics.attachment import attachment_scores
from treeparse.model import Parser
from treeparse.objectives import TreeLikelihood
from treeparse.sentence import Sentence

BFLOAT16 = partial(torch.autocast, "cpu", torch.bfloat16)
# Settings of each parser; the first is what the others are compared with.
PARSERS = {
    "projective": {"trees": "projective"},
    "siblings": {"trees": "siblings"},
    "second_order": {"trees": "second_order"},
    "second_order, pruned": {"trees": "second_order", "prune_below": 0.01},
}
OPENING = Opening(
    title="What scores of siblings and grandparents cost",
    measured="CPU time of training steps and of `Parser.parse`, one thread, through the whole parser.",
    on="batches of 1,000 words of a training set, bfloat16 scorer; the sentences of a test set, float32.",
    read="ratios of times over those of projective trees by their arcs, in the same round; words a second for parsing.",
    repeat="OMP_NUM_THREADS=1 python -m scripts.benchmarks.bench_trees --treebank "
    "$TREEPARSE_TREEBANKS/UD_English-EWT/en_ewt-ud-train."
    "conllu --test $TREEPARSE_TREEBANKS/UD_English-EWT/en_ewt-ud-test.conllu --output "
    "scripts/experiments/results/bench_trees.md",
    details="The parsers have learned for four epochs. The more a parser has learned, the fewer rounds it needs to "
    "find the best labels. UAS is of the test sentences, to show what pruning costs.",
)


def steps(parsers: dict[str, Parser], sentences: Sequence[Sentence], batches: int, rounds: int) -> Iterator[str]:
    """Training steps."""
    sampler = BucketBatchSampler(list(map(len, sentences)), max_words=1000, max_squared=40000, shuffle=True, seed=1)
    places = list(sampler)[:batches]
    entries = []
    for name, parser in parsers.items():
        own = [parser.collate(sentences[place] for place in each) for each in places]
        turns = iter(own * (rounds + 1))
        step = partial(take_step, parser.train(), torch.optim.AdamW(parser.parameters(), lr=1e-7, fused=True))
        call = partial(lambda step, turns: step(next(turns), TreeLikelihood(), BFLOAT16), step, turns)
        entries.append(Entry(call, name=name))
    _warm_and_race(entries, batches, rounds)
    yield "\n## A training step\n"
    yield "| trees | ms | over the first | quartiles |"
    yield "|:--|--:|--:|--:|"
    for each in entries:
        low, median, high = each.over(entries[0])
        yield f"| {each.name} | {1000 * each.median:.0f} | {median:.2f} | {low:.2f} to {high:.2f} |"


def parsing(parsers: dict[str, Parser], sentences: Sequence[Sentence], rounds: int) -> Iterator[str]:
    """Whole passes over a test set."""
    words = sum(map(len, sentences))
    entries = [Entry(partial(parser.eval().parse, sentences), name=name) for name, parser in parsers.items()]
    _warm_and_race(entries, 1, rounds)
    yield "\n## Parsing\n"
    yield "| trees | words/s | words/s over the first | quartiles | UAS |"
    yield "|:--|--:|--:|--:|--:|"
    for each, parser in zip(entries, parsers.values(), strict=True):
        low, median, high = (1 / ratio for ratio in each.over(entries[0]))
        uas = attachment_scores(sentences, with_parses(sentences, parser.parse(sentences))).uas
        speed = f"{words / each.median:,.0f} | {median:.2f} | {high:.2f} to {low:.2f}"
        yield f"| {each.name} | {speed} | {100 * uas:.1f} |"


def _warm_and_race(entries: Sequence[Entry], calls: int, rounds: int) -> None:
    for entry in entries:
        for _ in range(calls):  # compiles kernels, and lays out memory
            entry.call()
    take_turns(entries, fewest=calls * rounds, most=calls * rounds, budget=0)


def main() -> None:
    """Print the tables, and write them to a file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--treebank", type=Path, required=True, metavar="CONLLU", help="training sentences")
    parser.add_argument("--test", type=Path, required=True, metavar="CONLLU", help="sentences to parse")
    parser.add_argument("--epochs", type=int, default=4, metavar="N", help="of training (default: 4)")
    parser.add_argument("--batches", type=int, default=12, metavar="N", help="default: 12")
    parser.add_argument("--rounds", type=int, default=7, metavar="N", help="2 or more (default: 7)")
    parser.add_argument("--output", type=Path, metavar="FILE", help="also write the tables here, as markdown")
    args = parser.parse_args()
    torch.set_num_threads(1)
    train, test = ([each.words for each in load_treebank([path])] for path in (args.treebank, args.test))
    with TemporaryDirectory() as folder:
        parsers = {}
        for name, settings in PARSERS.items():
            options = [f"--model.{key}={value}" for key, value in settings.items()]
            options.append(f"--optimization.epochs={args.epochs}")
            train_briefly("second_order", args.treebank, Path(folder, name), *options)
            parsers[name] = Parser.from_pretrained(Path(folder, name))
        keep_freed_memory()
        lines = [*steps(parsers, train, args.batches, args.rounds), *parsing(parsers, test, args.rounds)]
        report([OPENING.text(), *lines], args.output)


if __name__ == "__main__":
    main()
