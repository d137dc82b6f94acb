#!/usr/bin/env python
"""Words per second of a training step and of parsing on a treebank, and the share of each part of them.

    scripts/bench_parsing.py --treebank $TREEPARSE_TREEBANKS/UD_English-EWT/en_ewt-ud-dev.conllu --model runs/fast/model

A training step is cut into batches (vocabularies to tensors), scorer (encoder, arcs), labels (scores and cross-entropy
of the gold arcs' labels), tree loss and optimiser; the gradients of scorer and labels are timed with the scorer, that
of the tree loss with itself. Parsing is cut into batches, scorer, labels (the best one of every arc) and decoder (the
best tree and its log probability). Figures are medians over passes. Without --model the scorer is untrained, which is
the hard case of a decoder.
"""

import argparse
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch

from treeparse.core import Sentence
from treeparse.data import load_treebank
from treeparse.data.batching import BucketBatchSampler
from treeparse.model import Parser, ParserConfig
from treeparse.objectives import HeadSelection, Objective, TreeLikelihood, label_cross_entropy
from treeparse.trees import NonProjectiveCRF

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
    """Print the two tables."""
    options = _options()
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    sentences = [sentence.words for sentence in load_treebank([options.treebank])]
    words = sum(map(len, sentences))
    parser = Parser.from_pretrained(options.model) if options.model else Parser.build(ParserConfig(), sentences)
    batches = list(BucketBatchSampler(list(map(len, sentences)), max_words=options.batch_words, shuffle=True, seed=1))
    precision = torch.bfloat16 if options.bf16 else None
    print(f"{len(sentences)} sentences, {words} words, {len(batches)} batches, {options.threads} threads, ", end="")
    print(f"{'bfloat16' if options.bf16 else 'float32'} scorer, {options.model or 'untrained'}\n")
    for objective in (TreeLikelihood(), HeadSelection()):
        optimizer = torch.optim.AdamW(parser.train().parameters(), lr=1e-9, fused=True)
        name = f"Training step, {type(objective).__name__}"
        train = _median(lambda o=objective, a=optimizer: _train(parser, sentences, batches, o, a, precision), options)
        _report(name, train, words, ("tree loss",))
    parser.eval()
    _report("Parsing", _median(lambda: _parse(parser, sentences, batches, precision), options), words, ("decoder",))


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
        assert batch.heads is not None and batch.labels is not None
        with torch.autocast("cpu", precision, enabled=precision is not None):
            with clock("scorer"):
                scores = parser.scorer(batch)
            with clock("labels"):
                words = batch.word_mask()
                label_loss = label_cross_entropy(scores.labels(batch.heads, words), batch.labels[words])
        # The tree loss is cut off from the scorer, so that its gradient can be timed by itself.
        arcs = scores.arcs.detach().requires_grad_()
        with clock("tree loss"):
            objective(NonProjectiveCRF(arcs, batch.lengths), batch.heads).sum().backward()
        with clock("scorer"):
            torch.autograd.backward([scores.arcs, label_loss], [arcs.grad, None])
        with clock("optimiser"):
            torch.nn.utils.clip_grad_norm_(parser.parameters(), 5.0)
            optimizer.step()
            optimizer.zero_grad()
    return dict(clock.seconds)


@torch.inference_mode()
def _parse(
    parser: Parser, sentences: Sequence[Sentence], batches: Sequence[list[int]], precision: torch.dtype | None
) -> Times:
    clock = Clock()
    for places in batches:
        with clock("batches"):
            batch = parser.collate([sentences[place] for place in places])
        with clock("scorer"), torch.autocast("cpu", precision, enabled=precision is not None):
            scores = parser.scorer(batch)
        with clock("labels"), torch.autocast("cpu", precision, enabled=precision is not None):
            label_log_probs, _ = parser.best_labels(scores)
        with clock("decoder"):
            trees = NonProjectiveCRF(scores.arcs, batch.lengths)
            trees.log_prob(trees.with_scores(scores.arcs + label_log_probs).mode)
    return dict(clock.seconds)


def _median(run: Callable[[], Times], options: argparse.Namespace) -> Times:
    run()  # compiles the kernels and warms the caches
    passes = [run() for _ in range(options.passes)]
    return {part: statistics.median(times[part] for times in passes) for part in passes[0]}


def _report(name: str, times: Times, words: int, exact: Sequence[str]) -> None:
    total = sum(times.values())
    print(f"| {name} | ms per 1,000 words | share |\n|---|---:|---:|")
    for part, seconds in times.items():
        print(f"| {part} | {1e6 * seconds / words:.2f} | {100 * seconds / total:.1f}% |")
    share = sum(times[part] for part in exact) / total
    print(f"| all: {words / total:,.0f} words/s; {' and '.join(exact)}: | {1e6 * total / words:.2f} | {share:.1%} |\n")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--treebank", required=True, help="a CoNLL-U file")
    parser.add_argument("--model", help="a model folder; without, an untrained scorer of the default sizes")
    parser.add_argument("--batch-words", type=int, default=1000, help="most words of a batch (default 1000)")
    parser.add_argument("--threads", type=int, default=2, help="default 2")
    parser.add_argument("--passes", type=int, default=3, help="passes over the treebank (default 3)")
    parser.add_argument("--bf16", action="store_true", help="run the scorer in bfloat16")
    return parser.parse_args()


if __name__ == "__main__":
    main()
