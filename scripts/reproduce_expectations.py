#!/usr/bin/env python
"""Repeat two timings of Zmigrod, Vieira and Cotterell 2021 ([Exp]), as tables and a plot.

    taskset -c 0 python scripts/reproduce_expectations.py --output scripts/results/reproduce_expectations.md

Table 1 of the paper: entropy by T1 against Smith and Eisner's O(n^4), at five mean lengths of sentences, here with
random lengths, and over a treebank's sentences. §6.4: the gradient of a generalised expectation objective with 20
features over a treebank's sentences, T2 against T2h, which materialises the Hessian. Scores are N(0, 1). The treebank
is EWT's test file under TREEPARSE_TREEBANKS, or the demo treebank where that is unset, unless --treebank names another.

All algorithms take turns on the same sentences, on one thread, and must give the same answers. The plot is written
beside the output file and needs matplotlib (``pip install treeparse[bench]``).
"""

import argparse
import itertools
import os
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import torch
from support.expectations import baselines
from support.expectations.workloads import Batch, draw_lengths, random_batches, tagged_batches
from support.reports import plots
from support.reports.markdown import Opening, parse_with_plot, report
from support.reports.timing import Entry, race
from torch import Tensor

from treeparse import NonProjectiveCRF
from treeparse.core import Sentence
from treeparse.data import load_treebank

DEMO = Path(__file__).parents[1] / "data" / "demo-test.conllu"
EWT = Path(os.environ.get("TREEPARSE_TREEBANKS", "."), "UD_English-EWT", "en_ewt-ud-test.conllu")
MEANS = (9, 12, 18, 25, 36)
FEATURES = 20
PAPER_ENTROPY = {"9": 4.1, "36": 15.1}  # [Exp] Table 1: the least and the greatest
PAPER_GRADIENT = 9.0  # [Exp] §6.4
ENTROPY_RATIOS = (
    ("Smith and Eisner, torch", "T1, treeparse"),
    ("Smith and Eisner, torch", "T1, torch"),
    ("Smith and Eisner, compiled", "T1, treeparse"),
    ("Smith and Eisner, compiled", "T1, compiled"),
)
CELLS = 50_000  # of the score matrices of a batch, about what is best for every algorithm but one
CELLS_TORCH_QUARTIC = 10_000  # about what is best for Smith and Eisner's algorithm by torch, whose padding costs most
TOLERANCE = 1e-8  # by which answers may differ
OPENING = Opening(
    title="[Exp] repeated: time of entropies and of gradients of expectations, one thread",
    measured="CPU time of entropy by T1 and by Smith and Eisner's O(n^4) algorithm (Table 1 of [Exp]); "
    "and of the gradient of a generalised expectation objective by T2, T2v, T2h and Druck and Smith's algorithm"
    " (§6.4).",
    on="N(0, 1) scores of sentences of random lengths at five means, and of a treebank's sentences, which "
    "the tables name. All answers agree within 1e-8.",
    read="medians over rounds in which the algorithms take turns, quartiles in brackets; a ratio is of "
    "times in the same round, so 10 means ten times as long as the algorithm it is compared with.",
    repeat="taskset -c 0 python scripts/reproduce_expectations.py --output scripts/results/reproduce_expectations.md",
    details="""`treeparse` is the whole of `NonProjectiveCRF`, checks and tensors included; the others are written for
this comparison: `torch` by batched LU of tensors, which is the paper's technology, in batches of the size that suits
each algorithm; `compiled` by loops like treeparse's, with LU.""",
)


Race = dict[str, Entry]  # by name


def compare(entries: Sequence[Entry], rounds: int) -> Race:
    """Time all algorithms, whose answers must agree."""
    answers = [entry.call() for entry in entries]  # compiles, too
    for entry, answer in zip(entries, answers, strict=True):
        difference = max(float((a - b).abs().max()) for a, b in zip(answers[0], answer, strict=True))
        if not difference <= TOLERANCE:
            raise SystemExit(f"reproduce_expectations: {entry.name} differs from {entries[0].name} by {difference}")
    return race(entries, rounds)


def entropy_entries(lengths: Sequence[int]) -> list[Entry]:
    """Ours; T1 and Smith and Eisner's algorithm in two technologies each."""
    batches = random_batches(lengths, seed=1, max_cells=CELLS)
    small = random_batches(lengths, seed=1, max_cells=CELLS_TORCH_QUARTIC)

    def tensors(entropy: Callable[[Tensor, Tensor], Tensor], batches: Sequence[Batch]) -> list[Tensor]:
        return [torch.cat([entropy(batch.scores, batch.lengths) for batch in batches])]

    def arrays(entropy: Callable[..., baselines.Array]) -> list[Tensor]:
        found = [entropy(batch.scores.numpy(), batch.lengths.numpy()) for batch in batches]
        return [torch.from_numpy(np.concatenate(found))]

    return [
        Entry(lambda: tensors(lambda *batch: NonProjectiveCRF(*batch).entropy(), batches), "T1, treeparse"),
        Entry(lambda: tensors(baselines.t1_entropy_of_tensors, batches), "T1, torch"),
        Entry(lambda: arrays(baselines.t1_entropy), "T1, compiled"),
        Entry(lambda: tensors(baselines.smith_eisner_entropy_of_tensors, small), "Smith and Eisner, torch"),
        Entry(lambda: arrays(baselines.smith_eisner_entropy), "Smith and Eisner, compiled"),
    ]


def gradient_entries(batches: Sequence[Batch]) -> list[Entry]:
    """Ours by autograd, with features as a sparse tensor, and the algorithms of the literature, with dense features.

    Summing these up is about a third of the time of T2, and a fortieth of that of T2h.
    """
    leaves = [batch.scores.clone().requires_grad_() for batch in batches]
    sparse = [batch.features.to_sparse() for batch in batches]
    features = [batch.features.movedim(-1, 1).contiguous().numpy() for batch in batches]
    room = np.ones(baselines.hessian_size(max(int(batch.lengths.max()) for batch in batches)))

    def ours() -> list[Tensor]:
        return [gradient(*arguments) for arguments in zip(batches, sparse, leaves, strict=True)]

    def arrays(
        products: baselines.Products, way: Callable[..., baselines.Array] = baselines.ge_gradient
    ) -> list[Tensor]:
        return [
            torch.from_numpy(way(products, batch.scores.numpy(), batch.lengths.numpy(), own, batch.targets.numpy()))
            for batch, own in zip(batches, features, strict=True)
        ]

    return [
        Entry(ours, "T2, treeparse"),
        Entry(lambda: arrays(baselines.t2_products), "T2, compiled"),
        Entry(lambda: arrays(baselines.t2_products, baselines.ge_gradient_by_feature), "T2v, compiled"),
        Entry(lambda: arrays(partial(baselines.t2h_products, room=room)), "T2h, compiled"),
        Entry(lambda: arrays(baselines.druck_smith_products), "Druck and Smith, compiled"),
    ]


def gradient(batch: Batch, features: Tensor, scores: Tensor) -> Tensor:
    """The gradient of |E[f] - target|^2 / 2, summed over the batch, in the scores, a leaf."""
    residual = NonProjectiveCRF(scores, batch.lengths).expectation(features) - batch.targets
    return torch.autograd.grad(residual.square().sum() / 2, scores)[0]


def entropy_tables(workloads: Mapping[str, Sequence[int]], rounds: int, races: dict[str, Race]) -> Iterator[str]:
    """Markdown lines as the entropies of sentences of these lengths are timed, which fills ``races``."""
    yield "\n## Entropy, µs a sentence\n"
    for name, lengths in workloads.items():
        measured = compare(entropy_entries(lengths), rounds)
        if not races:
            yield f"| mean words | sentences | longest | {' | '.join(measured)} |"
            yield "|--:" * (3 + len(measured)) + "|"
        races[name] = measured
        times = " | ".join(f"{1e6 * entry.median / len(lengths):.2f}" for entry in measured.values())
        yield f"| {name} | {len(lengths)} | {max(lengths)} | {times} |"
    yield "\n## Entropy, Smith and Eisner's time over T1's\n"
    yield f"| mean words | {' | '.join(f'{slow} / {fast}' for slow, fast in ENTROPY_RATIOS)} | [Exp] Table 1 |"
    yield "|--:" * (2 + len(ENTROPY_RATIOS)) + "|"
    for name, measured in races.items():
        ratios = " | ".join(spread(measured[slow].over(measured[fast])) for slow, fast in ENTROPY_RATIOS)
        yield f"| {name} | {ratios} | {PAPER_ENTROPY.get(name, '')} |"


def gradient_table(sentences: Sequence[Sentence], rounds: int, measured: Race) -> Iterator[str]:
    """Markdown lines about the gradients of an objective over these sentences, which fills ``measured``."""
    measured |= compare(gradient_entries(tagged_batches(sentences, FEATURES, seed=2, max_cells=CELLS)), rounds)
    yield f"\n## Gradient of a generalised expectation objective, {FEATURES} features, {len(sentences)} sentences\n"
    yield "| algorithm | µs a sentence | times T2, treeparse | times T2, compiled | [Exp] §6.4 |"
    yield "|:--|--:|--:|--:|--:|"
    for name, entry in measured.items():
        ratios = " | ".join(spread(entry.over(measured[other])) for other in ("T2, treeparse", "T2, compiled"))
        paper = PAPER_GRADIENT if name.startswith("T2h") else ""
        yield f"| {name} | {1e6 * entry.median / len(sentences):.1f} | {ratios} | {paper} |"


def spread(quartiles: Sequence[float]) -> str:
    """Median and quartiles."""
    low, middle, high = quartiles
    return f"{middle:.1f} ({low:.1f} - {high:.1f})"


def plot(report: Path) -> None:
    """Draw the ratios of both experiments, in the colours of the faster one's technology."""
    _, ratios, gradients = plots.read_tables(report)
    figure = plots.new_figure(11, 5)
    left, right = figure.subplots(1, 2)
    shown = plots.Table(ratios.title, ratios.columns, [row for row in ratios.rows if row[0] in map(str, MEANS)])
    for slow, fast in ENTROPY_RATIOS:
        style = "-" if slow.endswith("torch") else "--"
        points = shown.line("mean words", f"{slow} / {fast}")
        left.plot(*zip(*points, strict=True), style, label=f"{slow} / {fast}", **plots.look(fast.split(", ")[1]))
    paper = shown.line("mean words", "[Exp] Table 1")
    left.plot(*zip(*paper, strict=True), "x", color="#CC79A7", markersize=9, markeredgewidth=2, label="[Exp] Table 1")
    left.set(title="Entropy: Smith and Eisner's time over that of T1", yscale="log")
    left.set(xlabel="mean words a sentence", ylabel="times as long as T1")
    plots.label_plainly(left.yaxis, [1, 2, 4, 8, 16])
    left.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), frameon=False)
    bars = {record["algorithm"]: record["times T2, treeparse"].split()[0] for record in gradients.records()}
    names = list(bars)[::-1]
    colors = [plots.look(name.split(", ")[1])["color"] for name in names]
    drawn = right.barh(names, [float(bars[name]) for name in names], color=colors)
    right.bar_label(drawn, [bars[name] for name in names], padding=3)
    right.axvline(PAPER_GRADIENT, color="#CC79A7", linestyle=":", linewidth=2.5, label="[Exp] §6.4: T2h over T2")
    right.set(title="Gradient of an expectation objective", xlabel="times as long as T2, treeparse")
    right.margins(x=0.12)
    right.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), frameon=False)
    figure.savefig(report.with_suffix(".png"), dpi=100)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    options = _options(arguments)
    if options.replot:
        return plot(options.replot)
    torch.set_num_threads(1)
    treebank = options.treebank or (EWT if "TREEPARSE_TREEBANKS" in os.environ else DEMO)
    sentences = [sentence.words for sentence in load_treebank([treebank])]
    if options.quick:
        sentences, options.sentences, options.rounds = sentences[:20], 20, 2
    stream = np.random.default_rng(0)
    workloads = {str(mean): draw_lengths(stream, mean, options.sentences) for mean in MEANS}
    workloads[f"{statistics.mean(map(len, sentences)):.1f}, {treebank.stem}"] = list(map(len, sentences))
    races: dict[str, Race] = {}
    measured: Race = {}
    tables = (entropy_tables(workloads, options.rounds, races), gradient_table(sentences, options.rounds, measured))
    report(itertools.chain([OPENING.text()], *tables), options.output, plot)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--treebank", type=Path, metavar="FILE", help="a CoNLL-U file with universal tags and trees")
    parser.add_argument(
        "--sentences", type=int, default=2000, metavar="N", help="of random length a mean (default 2000)"
    )
    parser.add_argument("--rounds", type=int, default=9, metavar="N", help="2 or more (default 9)")
    parser.add_argument("--quick", action="store_true", help="a trial: 20 sentences a table row, 2 rounds")
    options = parse_with_plot(parser, arguments)
    if options.rounds < 2:
        parser.error("quartiles need 2 rounds or more")
    return options


if __name__ == "__main__":
    main()
