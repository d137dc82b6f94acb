"""Repeat two timings of Zmigrod, Vieira and Cotterell 2021 ([Exp]), as tables and a plot.

    taskset -c 0 python -m scripts.experiments.reproduce_expectations --output FILE

Table 1 of the paper: entropy by T1 against Smith and Eisner's O(n^4), over treebanks of five languages; here at their
mean lengths of sentences, with random lengths around them, and over a treebank's sentences. §6.4: the gradient of a
generalised expectation objective with 20 features over the sentences of 5 to 150 words of the English test set, T2
against T2h, which materialises the Hessian. Scores are N(0, 1); no algorithm's time depends on them. The treebank is
EWT's test file under TREEPARSE_TREEBANKS, or the demo treebank where that is unset, unless --treebank names another.

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
from typing import NamedTuple

import numpy as np
import torch
from scripts.support.expectations import baselines
from scripts.support.expectations.workloads import Batch, draw_lengths, random_batches, tagged_batches
from scripts.support.reports import plots
from scripts.support.reports.markdown import Opening, parse_with_plot, report
from scripts.support.reports.timing import Entry, race
from scripts.support.training.treebanks import EWT
from torch import Tensor

from treeparse import NonProjectiveCRF
from treeparse.data import load_treebank
from treeparse.sentence import Sentence

DEMO = Path(__file__).parents[2] / "data" / "demo-test.conllu"
FEATURES = 20
SHORTEST, LONGEST = 5, 150  # words of a sentence of [Exp] §6.4
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
    on="N(0, 1) scores of sentences of random lengths, at the mean lengths of the treebanks of five languages in [Exp] "
    "(UD 2.3), and of the sentences of EWT's test set as it is now. All answers agree within 1e-8.",
    read="medians over rounds in which the algorithms take turns, quartiles in brackets; a ratio is of "
    "times in the same round, so 10 means ten times as long as the algorithm it is compared with.",
    repeat="taskset -c 0 python -m scripts.experiments.reproduce_expectations --output "
    "scripts/experiments/results/reproduce_expectations.md",
    details="""`treeparse` is the whole of `NonProjectiveCRF`, checks and tensors included; the others are written for
this comparison: `torch` by batched LU of tensors, which is the paper's technology, in batches of the size that suits
each algorithm; `compiled` by loops like treeparse's, with LU. [Exp] has a parser's weights on an Intel Core i7-7500U,
sentence by sentence. [Exp] §6.4 has almost 1,500 sentences, and gradients by T2 and T2h that agree within 1e-16.""",
)


Race = dict[str, Entry]  # by name


class Reported(NamedTuple):
    """A row of [Exp] Table 1: times in ms a sentence, on an Intel Core i7-7500U, by a parser's weights."""

    language: str
    t1: float
    smith_eisner: float
    ratio: float


PAPER_ENTROPY = {  # [Exp] Table 1, by the mean number of words
    9.23: Reported("Finnish", 0.4623, 1.882, 4.1),
    12.45: Reported("English", 0.5102, 2.778, 5.4),
    17.56: Reported("German", 0.5583, 4.104, 7.3),
    24.65: Reported("French", 0.5635, 5.742, 10.2),
    36.05: Reported("Arabic", 0.6220, 9.368, 15.1),
}


def compare(entries: Sequence[Entry], rounds: int) -> Race:
    """Time all algorithms, whose answers must agree."""
    for name, difference in differences(entries).items():
        if not difference <= TOLERANCE:
            raise SystemExit(f"reproduce_expectations: {name} differs from {entries[0].name} by {difference}")
    return race(entries, rounds)


def differences(entries: Sequence[Entry]) -> dict[str, float]:
    """By how much each algorithm's answers differ from those of the first one, at most; this compiles them, too."""
    answers = [entry.call() for entry in entries]
    return {
        entry.name: max(float((a - b).abs().max()) for a, b in zip(answers[0], answer, strict=True))
        for entry, answer in zip(entries, answers, strict=True)
    }


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
    names = " | ".join(f"{slow} / {fast}" for slow, fast in ENTROPY_RATIOS)
    yield f"| mean words | {names} | [Exp] Table 1 | language there | T1 there, µs | Smith and Eisner there, µs |"
    yield "|--:" * (2 + len(ENTROPY_RATIOS)) + "|:--|--:|--:|"
    reported = {str(words): row for words, row in PAPER_ENTROPY.items()}
    for name, measured in races.items():
        ratios = " | ".join(spread(measured[slow].over(measured[fast])) for slow, fast in ENTROPY_RATIOS)
        yield f"| {name} | {ratios} | {paper_cells(reported.get(name))} |"


def paper_cells(row: Reported | None) -> str:
    """The paper's ratio, language and times, empty where it has none."""
    if row is None:
        return " | | | "
    return f"{row.ratio} | {row.language} | {1e3 * row.t1:.1f} | {1e3 * row.smith_eisner:,.0f}"


def gradient_table(sentences: Sequence[Sentence], rounds: int, measured: Race) -> Iterator[str]:
    """Markdown lines about the gradients of an objective over these sentences, which fills ``measured``."""
    sentences = [sentence for sentence in sentences if SHORTEST <= len(sentence) <= LONGEST]
    entries = gradient_entries(tagged_batches(sentences, FEATURES, seed=2, max_cells=CELLS))
    measured |= compare(entries, rounds)
    furthest = differences(entries)
    yield (
        f"\n## Gradient of a generalised expectation objective, {FEATURES} features, {len(sentences)} sentences of "
        f"{SHORTEST} to {LONGEST} words\n"
    )
    yield "| algorithm | µs a sentence | times T2, treeparse | times T2, compiled | [Exp] §6.4 | largest difference |"
    yield "|:--|--:|--:|--:|--:|--:|"
    for name, entry in measured.items():
        ratios = " | ".join(spread(entry.over(measured[other])) for other in ("T2, treeparse", "T2, compiled"))
        paper = PAPER_GRADIENT if name.startswith("T2h") else ""
        yield f"| {name} | {1e6 * entry.median / len(sentences):.1f} | {ratios} | {paper} | {furthest[name]:.0e} |"


def spread(quartiles: Sequence[float]) -> str:
    """Median and quartiles."""
    low, middle, high = quartiles
    return f"{middle:.1f} ({low:.1f} - {high:.1f})"


def plot(report: Path) -> None:
    """Draw the ratios of both experiments, in the colours of the faster one's technology."""
    _, ratios, gradients = plots.read_tables(report)
    figure = plots.new_figure(11, 5)
    left, right = figure.subplots(1, 2)
    shown = plots.Table(ratios.title, ratios.columns, [row for row in ratios.rows if row[0] in map(str, PAPER_ENTROPY)])
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
    treebank = options.treebank or default_treebank()
    sentences = [sentence.words for sentence in load_treebank([treebank])]
    if options.quick:
        sentences, options.sentences, options.rounds = sentences[:20], 20, 2
    stream = np.random.default_rng(0)
    workloads = {str(mean): draw_lengths(stream, mean, options.sentences) for mean in PAPER_ENTROPY}
    workloads[f"{statistics.mean(map(len, sentences)):.1f}, {treebank.stem}"] = list(map(len, sentences))
    races: dict[str, Race] = {}
    measured: Race = {}
    tables = (entropy_tables(workloads, options.rounds, races), gradient_table(sentences, options.rounds, measured))
    report(itertools.chain([OPENING.text()], *tables), options.output, plot)


def default_treebank() -> Path:
    """EWT's test file where the folder of treebanks is known."""
    treebanks = os.environ.get("TREEPARSE_TREEBANKS")
    return Path(treebanks, EWT.test) if treebanks else DEMO


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
