#!/usr/bin/env python
r"""Repeat the experiments of two papers on sampling dependency trees, as tables and plots.

    export TREEPARSE_TREEBANKS=...   # the folder of UD_English-EWT
    OMP_NUM_THREADS=1 taskset -c 0 python scripts/reproduce_sampling.py --model runs/fast/model \
        --treesample DIR --output scripts/results/reproduce_sampling.md

[Samp] Zmigrod, Vieira and Cotterell 2021, *Efficient Sampling of Dependency Structure*: Fig. 6, time with replacement
over the length; and without replacement over the number of trees, which their program times, too. Random weights,
lengths and numbers of trees are from that program, ``notes/runtime_experiment.py`` of rycolab/treesample as of 2022.

[Unb] Stanojević 2022, *Unbiased and Efficient Sampling of Dependency Trees*: Figs. 2a and 2b, time with replacement
over the length, of random weights and of a trained parser's; section 4.3.1, how many trees rejection draws for one that
it keeps; Figs. 3, 5 and 7. No program of that paper is public, and its figures were not at hand: known were its
abstract, its algorithms, and that Figs. 2a and 2b set random weights against trained ones. So the random weights are a
choice made here, N(0, 1) scores; Fig. 3 is taken to be about the bias of WilsonRC, Fig. 5 about the trie and the list
over the number of trees, Fig. 7 about stochastic beam search over the length.

The parser is a folder that ``treeparse train`` wrote; without --model its rows are left out. The authors' Python comes
from a clone of rycolab/treesample; without --treesample it is left out. The plot is written beside the output file and
needs matplotlib (``pip install treeparse[bench]``).
"""

import argparse
import itertools
import os
import sys
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from support.graphs.scored import by_length, scored_batches
from support.reports import plots
from support.reports.markdown import Opening, parse_with_plot, report
from support.sampling import tables
from support.sampling.entries import DISTINCT, PYTHON
from support.sampling.experiment import TINY, Experiment, Sizes
from support.training.treebanks import EWT, gold_sentences

from treeparse.core import TreeparseError
from treeparse.model import Parser

OPENING = Opening(
    title="[Samp] and [Unb] repeated: time of samplers of dependency trees, and the bias of one of them",
    measured="CPU time of random trees with a single root, with and without replacement, by treeparse "
    "and by the algorithms of [Samp] (Zmigrod, Vieira and Cotterell 2021) and [Unb] (Stanojević 2022); the bias"
    " of WilsonRC; the tries of rejection.",
    on="random graphs, of weights uniform in (0, 1) as in [Samp] or of N(0, 1) scores, and the test "
    "sentences of EWT as a parser trained by `configs/fast.yaml` scores them.",
    read="medians over rounds in which the samplers take turns, µs a tree found; a sampler's set-up for "
    "a graph is counted with its trees. A slope is that of the line of time over nodes, both as logarithms.",
    repeat="OMP_NUM_THREADS=1 taskset -c 0 python scripts/reproduce_sampling.py --model runs/fast/model "
    "--treesample DIR --output scripts/results/reproduce_sampling.md",
    details="""`WilsonRC` ([Samp] Fig. 3), which is biased, and the `list` version without replacement ([Samp] Fig. 7)
are compiled like treeparse's samplers for this comparison, WilsonRC on the same walks. `WilsonReject` draws trees
with any number of roots until one has a single one, with the constant on root arcs that makes this cheapest.
`treeparse's choice` is what `sample` does by itself. Without replacement, `repeat` draws with replacement and drops
repeats, `trie` and `beam` are treeparse's forms of the two algorithms of [Unb]; they are called with checks and
tensors, on all graphs in one batch. A list is wrong if it repeats a tree, lacks one, or has what is none; treeparse's
never are.

[Samp] Fig. 6 has 20 samples of each of 100 random graphs of 3 to 100 nodes, for WilsonRC and Colbourn; the
distribution of weights is from its authors' program. Of [Unb] no program is public, and its figures were not at hand:
known were its abstract, its algorithms, and that Figs. 2a and 2b set random weights against trained ones. The random
weights here are N(0, 1) scores; Fig. 3 is taken to be about the bias of WilsonRC, Figs. 5 and 7 about samplers without
replacement, over the number of trees and over the length.""",
)
DIFFERENCES = """
## Where this differs from the papers

- [Samp]: Wilson's walks are faster than Colbourn's algorithm, and here by much more than in the authors' Python,
  where a step of a walk costs as much as a whole row of a matrix. That is why its slopes are so low: 1.42 for Colbourn
  and 1.14 for WilsonRC in the paper, and of the same order in their code here. Compiled, Colbourn's O(n^3) shows. Their
  program leaves out set-up, which these tables count.
- [Samp] has O(K n^3 + K^2 n) for the list, [Unb] O(K n^3) for the trie. Compiled, the K^2 n is small: only trees
  that have the same heads so far are looked at again. For few words the list is as fast as the trie up to thousands
  of trees; the authors' Python slows down by hundreds. For more words the trie is faster because treeparse opens its
  nodes only once trees drawn have half of their mass: most trees take no matrix. To draw again and drop repeats,
  which is the same law and in neither paper, is the fastest of all as long as no few trees have most of the mass.
- The list loses trees: differences have few digits where little is left, and the limits in the authors' code, which
  hide that, leave out what is improbable. It shows in short sentences, where there are hardly more trees than are
  asked for.
- [Unb] has stochastic beam search as the parallel algorithm. On one thread of a CPU it is by far the slowest:
  nothing is shared by the trees of the beam, and each takes a matrix in log space a word.
- [Unb] section 4.3.1: training on trees with one root leaves a constant on all root arcs undetermined, on which the
  tries depend; so they are as chance had it, and for some sentences many, which the mean shows. On the parser's
  weights nearly every first try will do once the best constant is added, but to find it takes longer than the trees.
  WilsonMarginal needs neither.
- [Unb] Alg. 3 has the walks of WilsonMarginal end at node 0, where only the root arc of the word drawn leads: the
  less this weighs beside the word's other heads, the longer they take, without a bound. To end at that word is the
  same law.
- WilsonRC is slow on a parser's weights: it draws improbable root words, and walks up to these are long. A tree of
  more than 10,000 steps is given up, so that times are lower bounds. How often this happens depends on the parser."""
X_LABELS = {
    "nodes": "nodes, root included",
    "words": "words a sentence",
    "K": "trees of a graph (K)",
    "samples": "samples",
}
TITLES = {  # of headings that do not say what is drawn of their tables
    "[Unb] section 4.3.1: how many trees with any number of roots are drawn until one has a single root": (
        "[Unb] section 4.3.1: tries of rejection until there is a single root"
    ),
    "[Unb] Fig. 3: the bias of WilsonRC": "[Unb] Fig. 3: error of estimated probabilities",
}
TABLES = (
    tables.samp_with_replacement,
    tables.samp_without_replacement,
    tables.unb_speed,
    tables.printed_marginal,
    tables.unb_tries,
    tables.unb_bias,
    tables.unb_without_replacement,
)


def lines(run: Experiment) -> Iterator[str]:
    """The whole report, as it is measured."""
    return itertools.chain([OPENING.text()], *(table(run) for table in TABLES), [DIFFERENCES])


def plot(report: Path) -> None:
    """Draw a panel for every heading whose tables have a sampler's times, errors or tries."""
    found: dict[str, list[plots.Table]] = {}
    for table in plots.read_tables(report):
        if samplers_of(table) or "tries" in table.columns:
            found.setdefault(table.title, []).append(table)
    shown = sorted(found, key=lambda title: ("without" in title, "tries" in found[title][0].columns))
    rows = -(-len(shown) // 3)
    figure = plots.new_figure(12, 3.6 * rows + 1)
    panels = figure.subplots(rows, 3, squeeze=False).flatten()
    for axes, title in zip(panels, shown, strict=False):
        axes.set_title(textwrap.fill(TITLES.get(title, title), 40), fontsize="medium")
        if "tries" in found[title][0].columns:
            draw_tries(axes, found[title][0])
        else:
            draw_samplers(axes, found[title])
    for axes in panels[len(shown) :]:
        axes.remove()
    others = [axes for axes, title in zip(panels, shown, strict=False) if "tries" not in found[title][0].columns]
    plots.legend_below(figure, others, 4, [plots.style_key(PYTHON.removeprefix(", "), "--")])
    figure.savefig(report.with_suffix(".png"), dpi=100)


def samplers_of(table: plots.Table) -> list[str]:
    """Its columns that are samplers."""
    known = (*tables.WITH_REPLACEMENT, *DISTINCT)
    return [name for name in table.columns if name.removesuffix(PYTHON) in known]


def draw_samplers(axes: Any, found: Sequence[plots.Table]) -> None:
    """A line a sampler over the first column; dashed where it is its authors' Python, of a second table too."""
    for place, table in enumerate(found):
        for name in samplers_of(table):
            style = "--" if place or name.endswith(PYTHON) else "-"
            points = table.line(table.columns[0], name)
            axes.plot(*zip(*points, strict=True), style, label=name.removesuffix(PYTHON), **plots.look(name))
    x = found[0].columns[0]
    in_error = x == "samples"
    axes.set(xlabel=x_label(found[0]), ylabel="mean absolute error of arcs" if in_error else "µs a tree", yscale="log")
    plots.label_plainly(axes.yaxis)
    if x in ("K", "samples"):
        axes.set_xscale("log")
        plots.label_plainly(axes.xaxis)


def draw_tries(axes: Any, table: plots.Table) -> None:
    """Expected tries over the length, a colour for the kind of weights."""
    for weights in dict.fromkeys(record["weights"] for record in table.records()):
        own = plots.Table("", table.columns, [row for row in table.rows if row[0] == weights])
        for column, style in (("tries", "-"), ("tries, best constant", "--")):
            if points := own.line("words", column):
                label = weights + column.removeprefix("tries")
                axes.plot(*zip(*points, strict=True), style, label=label, **plots.look(weights))
    axes.set(xlabel=x_label(table), ylabel="expected tries, median", yscale="log", ylim=(0.9, 12))
    plots.label_plainly(axes.yaxis, [1, 2, 3])
    axes.legend(loc="upper left", fontsize="small", frameon=False)


def x_label(table: plots.Table) -> str:
    """What the first numbers of a table are, in words."""
    x = table.columns[1] if table.columns[0] == "weights" else table.columns[0]
    grouped = any(" - " in record[x] for record in table.records())
    return X_LABELS[x] + (" (middle of a group)" if grouped else "")


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    options = _options(arguments)
    if options.replot:
        return plot(options.replot)
    torch.set_num_threads(1)
    sizes = TINY if options.quick else Sizes()
    try:
        run = Experiment(sizes, options.rounds, options.treesample, {})
        if options.model:
            sentences = gold_sentences(EWT, options.treebanks)
            batches = scored_batches(Parser.from_pretrained(options.model), sentences)
            run.sentences = by_length(batches, sizes.bounds, sizes.sentences)
        report(lines(run), options.output, plot)
    except TreeparseError as error:
        sys.exit(f"reproduce_sampling: {error}")


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    treebanks = os.environ.get("TREEPARSE_TREEBANKS", ".")
    parser.add_argument("--treebanks", type=Path, default=treebanks, metavar="DIR", help="default: the variable's")
    parser.add_argument("--model", type=Path, metavar="DIR", help="a parser trained on EWT")
    parser.add_argument("--treesample", type=Path, metavar="DIR", help="a clone of rycolab/treesample")
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="of timing (default 5)")
    parser.add_argument("--quick", action="store_true", help="a trial: small graphs, few of them")
    options = parse_with_plot(parser, arguments)
    return options


if __name__ == "__main__":
    main()
