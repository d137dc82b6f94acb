#!/usr/bin/env python
"""Words per second of a training step and of parsing on a treebank, and the share of each part of them.

    scripts/bench_parsing.py --treebank $TREEPARSE_TREEBANKS/UD_English-EWT/en_ewt-ud-dev.conllu --model runs/fast/model

A training step is cut into batches (vocabularies to tensors), scorer (encoder, arcs), objective (tree loss and labels
of the gold arcs) and optimiser, each with its gradients. Parsing batch by batch is cut into batches, scorer and trees
(the best tree, its labels and its log probability). ``Parser.parse`` is timed as a whole, as users call it: by the
clock, and in seconds of all cores, which other work on the machine disturbs less. Figures are medians over passes.
Without --model the scorer is untrained, which is the hard case of a decoder.

Two versions of treeparse are compared by one script, --parsing alone, on a machine that does nothing else:

    git worktree add ../before 9f6a782
    PYTHONPATH=../before scripts/bench_parsing.py --treebank ... --model runs/fast/model --parsing --parses before.json
    scripts/bench_parsing.py --treebank ... --model runs/fast/model --parsing --parses after.json
    cmp before.json after.json      # the trees are the same

With --supar and --stanza, clones of these, a last table has their own parsers on the same sentences, with random
weights, and treeparse's parses once more, in turns with theirs. Random scores are the hard case of their decoders:
almost every sentence has cycles, which of a trained parser's sentences few have. So their encoder and scorer alone are
timed within the same passes: a trained peer takes longer than these and less than the whole.
"""

import argparse
import json
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import torch
from support.peers import parsers
from support.peers.parser_race import peer_table

import treeparse
from treeparse.core import Sentence
from treeparse.data import load_treebank
from treeparse.data.batches.batching import BucketBatchSampler
from treeparse.model import Parser, ParserConfig
from treeparse.nn import BiaffineScores
from treeparse.objectives import HeadSelection, Objective, TreeLikelihood

Times = dict[str, float]


class Clock:
    """Adds up the seconds spent in named blocks."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)

    @contextmanager
    def __call__(self, part: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self.seconds[part] += time.perf_counter() - start


def main() -> None:
    """Print the tables."""
    options = _options()
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    sentences = [sentence.words for sentence in load_treebank([options.treebank])]
    words = sum(map(len, sentences))
    parser = Parser.from_pretrained(options.model) if options.model else Parser.build(ParserConfig(), sentences)
    batches = list(BucketBatchSampler(list(map(len, sentences)), max_words=options.batch_words, shuffle=True, seed=1))
    precision = torch.bfloat16 if options.precision == "bf16" else None
    print(f"treeparse of {Path(treeparse.__file__).parent}")
    print(f"{len(sentences)} sentences, {words} words, {len(batches)} batches, {options.threads} threads, ", end="")
    print(f"scorer in {options.precision}, {options.model or 'untrained'}\n")
    for objective in () if options.parsing else (TreeLikelihood(), HeadSelection()):
        optimizer = torch.optim.AdamW(parser.train().parameters(), lr=1e-9, fused=True)
        name = f"Training step, {type(objective).__name__}"
        train = _median(lambda o=objective, a=optimizer: _train(parser, sentences, batches, o, a, precision), options)
        _report(name, train, words, "objective")
    parser.eval()
    if options.precision == "int8":
        parser.use_precision("int8")
    parts = _median(lambda: _parse(parser, sentences, batches, precision), options)
    _report("Parsing batch by batch", parts, words, "trees")
    _report_whole(_median(lambda: _parse_all(parser, sentences, precision), options), words)
    _report_peers(parser, sentences, options, precision)
    if options.parses:
        trees = [(parse.heads, parse.labels) for parse in parser.parse(sentences)]
        Path(options.parses).write_text("\n".join(map(json.dumps, trees)) + "\n", encoding="utf-8")


def _train(
    parser: Parser,
    sentences: Sequence[Sentence],
    batches: Sequence[list[int]],
    objective: Objective,
    optimizer: torch.optim.Optimizer,
    precision: torch.dtype | None,
) -> Times:
    clock = Clock()
    for places in batches:
        with clock("batches"):
            batch = parser.collate([sentences[place] for place in places])
        with _scorer_of(parser, clock) as cut:
            with clock("objective"), torch.autocast("cpu", precision, enabled=precision is not None):
                loss = parser.loss(batch, objective)
            with clock("objective"):
                loss.backward()
        with clock("scorer"):
            torch.autograd.backward(cut.made, [part.grad for part in cut.given])
        with clock("optimiser"):
            torch.nn.utils.clip_grad_norm_(parser.parameters(), 5.0)
            optimizer.step()
            optimizer.zero_grad()
    clock.seconds["objective"] -= clock.seconds["scorer within"]
    clock.seconds["scorer"] += clock.seconds.pop("scorer within")
    return dict(clock.seconds)


def _parse(
    parser: Parser, sentences: Sequence[Sentence], batches: Sequence[list[int]], precision: torch.dtype | None
) -> Times:
    clock = Clock()
    for places in batches:
        chosen = [sentences[place] for place in places]
        with clock("batches"):
            batch = parser.collate(chosen)
        with _scorer_of(parser, clock), clock("trees"), torch.autocast("cpu", precision, enabled=precision is not None):
            parser.parse_batch(batch, chosen)
    clock.seconds["trees"] -= clock.seconds["scorer within"]
    clock.seconds["scorer"] = clock.seconds.pop("scorer within")
    return dict(clock.seconds)


def _parse_all(parser: Parser, sentences: Sequence[Sentence], precision: torch.dtype | None) -> Times:
    clock, cores = time.perf_counter(), time.process_time()
    with torch.autocast("cpu", precision, enabled=precision is not None):
        parser.parse(sentences)
    return {"clock": time.perf_counter() - clock, "cores": time.process_time() - cores}


class Cut:
    """The scorer's output, and the same cut off from the scorer, so that gradients can be timed by themselves."""

    made: list[torch.Tensor]
    given: list[torch.Tensor]


@contextmanager
def _scorer_of(parser: Parser, clock: Clock) -> Iterator[Cut]:
    """Time the scorer where it is called, and cut its output off."""
    cut, start = Cut(), [0.0]
    names = ("arcs", "label_heads", "label_dependents")

    def begin(*_: object) -> None:
        start[0] = time.perf_counter()

    def end(module: object, arguments: object, scores: BiaffineScores) -> BiaffineScores:
        clock.seconds["scorer within"] += time.perf_counter() - start[0]
        cut.made = [getattr(scores, name) for name in names]
        if not torch.is_grad_enabled():
            return scores
        cut.given = [part.detach().requires_grad_() for part in cut.made]
        return replace(scores, **dict(zip(names, cut.given, strict=True)))

    hooks = parser.scorer.register_forward_pre_hook(begin), parser.scorer.register_forward_hook(end)
    try:
        yield cut
    finally:
        for hook in hooks:
            hook.remove()


def _median(run: Callable[[], Times], options: argparse.Namespace) -> Times:
    run()  # compiles the kernels and warms the caches
    passes = [run() for _ in range(options.passes)]
    return {part: statistics.median(times[part] for times in passes) for part in passes[0]}


def _report(name: str, times: Times, words: int, exact: str) -> None:
    total = sum(times.values())
    print(f"| {name} | ms per 1,000 words | share |\n|---|---:|---:|")
    for part, seconds in times.items():
        print(f"| {part} | {1e6 * seconds / words:.2f} | {100 * seconds / total:.1f}% |")
    print(f"| all: {words / total:,.0f} words/s; {exact}: | {1e6 * total / words:.2f} | {times[exact] / total:.1%} |\n")


def _report_whole(times: Times, words: int) -> None:
    print("| Parser.parse | ms per 1,000 words | words/s |\n|---|---:|---:|")
    for part, seconds in times.items():
        print(f"| {part} | {1e6 * seconds / words:.2f} | {words / seconds:,.0f} |")
    print()


def _report_peers(
    parser: Parser, sentences: Sequence[Sentence], options: argparse.Namespace, precision: torch.dtype | None
) -> None:
    clones = (parsers.supar, options.supar), (parsers.stanza, options.stanza)
    peers = [build(clone, sentences, parser.label_names) for build, clone in clones if clone]
    if peers:
        print("Peers have random weights.\n")
        ours = partial(_parse_all, parser, sentences, precision)
        print(*peer_table(ours, peers, sentences, options.passes), sep="\n", end="\n\n")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--treebank", required=True, help="a CoNLL-U file")
    parser.add_argument("--model", help="a model folder; without, an untrained scorer of the default sizes")
    parser.add_argument("--batch-words", type=int, default=1000, help="most words of a batch (default 1000)")
    parser.add_argument("--threads", type=int, default=2, help="default 2")
    parser.add_argument("--passes", type=int, default=3, help="passes over the treebank (default 3)")
    parser.add_argument("--parsing", action="store_true", help="leave training out")
    parser.add_argument("--parses", metavar="FILE", help="write the trees there, one a line")
    for name in ("SuPar", "Stanza"):
        text = f"a clone of {name}: time its parser too, with random weights"
        parser.add_argument(f"--{name.lower()}", type=Path, metavar="DIR", help=text)
    choices = ("32", "bf16", "int8")
    parser.add_argument("--precision", default="32", choices=choices, help="of the scorer; int8 in parsing alone")
    return parser.parse_args()


if __name__ == "__main__":
    main()
