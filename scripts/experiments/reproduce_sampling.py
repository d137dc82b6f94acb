r"""Repeat the experiments of two papers on sampling dependency trees, as tables and plots.

    export TREEPARSE_TREEBANKS=...   # the folder of UD_English-EWT
    OMP_NUM_THREADS=1 taskset -c 0 python -m scripts.experiments.reproduce_sampling --model runs/fast/model \
        --treesample DIR --output scripts/experiments/results/reproduce_sampling.md
    OMP_NUM_THREADS=1 taskset -c 0 python -m scripts.experiments.reproduce_sampling --only unb-7 \
        --output FILE   # these tables anew; the others stay as they stand there

[Samp] Zmigrod, Vieira and Cotterell 2021, *Efficient Sampling of Dependency Structure*: Fig. 6, time with replacement
over the length; and without replacement over the number of trees, which their program times, too. Random weights,
lengths and numbers of trees are from that program, ``notes/runtime_experiment.py`` of rycolab/treesample as of 2022.

[Unb] Stanojević 2022, *Unbiased and Efficient Sampling of Dependency Trees*: Fig. 1, a graph on which WilsonRC is
biased; Figs. 2a and 2b, time of 100 trees with replacement over the length, of random weights and of a trained
parser's; section 4.3.1, how many trees rejection draws for one that it keeps; Figs. 3 and 5, time without replacement
over the number of trees, of 14 words and of 30, 45 and 60; Fig. 6, of which one panel is Fig. 4, stochastic beam search
on a CPU and a GPU; Fig. 7, the ratio of mean weights of trees by the kind of weights. Random weights are uniform.

The parser is a folder that ``treeparse train`` wrote; without --model its rows are left out. The authors' Python comes
from a clone of rycolab/treesample; without --treesample it is left out. The plot is written beside the output file and
needs matplotlib (``pip install treeparse[bench]``).
"""

import argparse
import os
import sys
import textwrap
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from scripts.support.graphs.scored import by_length, scored_batches
from scripts.support.reports import plots
from scripts.support.reports.markdown import Opening, parse_with_plot, report
from scripts.support.reports.sections import Section, renewed
from scripts.support.sampling import tables
from scripts.support.sampling.entries import BY_DEVICE, DISTINCT, PYTHON
from scripts.support.sampling.experiment import TINY, Experiment, Sizes
from scripts.support.sampling.ratios import unb_ratios
from scripts.support.sampling.small_graphs import unb_example
from scripts.support.training.treebanks import EWT, gold_sentences

from treeparse.errors import TreeparseError
from treeparse.model import Parser

OPENING = Opening(
    title="[Samp] and [Unb] repeated: time of samplers of dependency trees, and the bias of one of them",
    measured="CPU time of random trees with a single root, with and without replacement, by treeparse "
    "and by the algorithms of [Samp] (Zmigrod, Vieira and Cotterell 2021) and [Unb] (Stanojević 2022); the bias"
    " of WilsonRC; the tries of rejection.",
    on="random graphs, of weights uniform in (0, 1) as in both papers or, where the tables say random weights, of "
    "N(0, 1) scores; and the test sentences of EWT as a parser trained by `configs/fast.yaml` scores them.",
    read="medians over rounds in which the samplers take turns, µs a tree found; a sampler's set-up for "
    "a graph is counted with its trees. A slope is that of the line of time over nodes, both as logarithms.",
    repeat="OMP_NUM_THREADS=1 taskset -c 0 python -m scripts.experiments.reproduce_sampling --model runs/fast/model "
    "--treesample DIR --output scripts/experiments/results/reproduce_sampling.md",
    details="""`WilsonRC` ([Samp] Fig. 3), which is biased, and the `list` version without replacement ([Samp] Fig. 7)
are compiled like treeparse's samplers for this comparison, WilsonRC on the same walks. `WilsonReject` draws trees
with any number of roots until one has a single one, with the constant on root arcs that makes this cheapest.
`treeparse's choice` is what `sample` does by itself. Without replacement, `repeat` draws with replacement and drops
repeats, `trie` and `beam` are treeparse's forms of the two algorithms of [Unb]; they are called with checks and
tensors, on all graphs in one batch. A list is wrong if it repeats a tree, lacks one, or has what is none; treeparse's
never are.

[Samp] Fig. 6 has 20 samples of each of 100 random graphs of 3 to 100 nodes, for WilsonRC and Colbourn; the
distribution of weights is from its authors' program. [Unb] draws 100 trees of each graph with replacement, and times
Python and NumPy; its trained weights are Stanza's English parser's on the News Commentary corpus, v16, where these
tables have EWT's test sentences and a parser of treeparse. Its plots print no numbers; those of its text are repeated
in the end.""",
)
DIFFERENCES = """
## Where this differs from the papers

- [Samp]: Wilson's walks are faster than Colbourn's algorithm, and here by much more than in the authors' Python,
  where a step of a walk costs as much as a whole row of a matrix. That is why its slopes are so low: 1.42 for Colbourn
  and 1.14 for WilsonRC in the paper, and of the same order in their code here. Compiled, Colbourn's O(n^3) shows. Their
  program leaves out set-up, which these tables count.
- [Unb] Fig. 1: two draws in three should hang from word A; of WilsonRC's it is one in two. Every other sampler has the
  law.
- [Unb] Figs. 2a and 2b: both of the paper's samplers are faster than Colbourn's; WilsonMarginal is the faster one on
  random weights, on trained ones they are alike. Here WilsonMarginal is the faster one on both, because WilsonReject
  pays for its search of the best constant; that makes it slower than Colbourn's, too, up to some ten words.
- [Samp] has O(K n^3 + K^2 n) for the list, [Unb] O(K n^3) for the trie. Compiled, the K^2 n is small: only trees
  that have the same heads so far are looked at again. For few words the list is as fast as the trie up to thousands
  of trees; the authors' Python slows down by hundreds. For more words the trie is faster because treeparse opens its
  nodes only once trees drawn have half of their mass: most trees take no matrix. To draw again and drop repeats,
  which is the same law and in neither paper, is the fastest of all as long as no few trees have most of the mass.
- [Unb] Fig. 3 has 14 words because beyond them the list, in Python, met rounding. Compiled, with its authors' limits,
  it loses no tree of random weights up to 80 words. On a parser's weights it does, in short sentences, where there are
  hardly more trees than are asked for: differences have few digits where little is left, and the limits in the authors'
  code, which hide that, leave out what is improbable.
- [Unb] Figs. 3 and 5: in NumPy stochastic beam search is somewhat faster than the trie, and both than the list.
  Compiled, on one thread of a CPU, it is by far the slowest: nothing is shared by the trees of the beam, and each takes
  a matrix in log space a word, while the trie takes few.
- [Unb] Figs. 4 and 6: in JAX a GPU (Quadro P1000) is up to 5 times as fast as a CPU (Xeon W-2135) at 100 words.
- [Unb] section 4.3.1: rejection takes about e tries at most, on average, where the weights of arcs are independent and
  alike, which rests on the ratio of Fig. 7; and 1.06 by Stanza's weights, where trees with one root have more than 95%
  of the mass of nearly every sentence. Here training on trees with one root leaves a constant on all root arcs
  undetermined, on which the tries depend; so they are as chance had it, and for some sentences many, which the mean
  shows. On the parser's weights nearly every first try will do once the best constant is added, but to find it takes
  longer than the trees. WilsonMarginal needs neither.
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
    "[Unb] Fig. 7: mean weight of trees with any number of roots over that of trees with one": (
        "[Unb] Fig. 7: ratio of mean weights of trees, its mean and 95% quantile (dashed)"
    ),
    "[Unb] Appendix E: the bias of WilsonRC": "[Unb] Appendix E: error of estimated probabilities",
}
TABLES = {  # by name: what their headings begin with, and how they are measured
    "samp-6": ("[Samp] Fig. 6", tables.samp_with_replacement),
    "samp-program": ("[Samp], authors' program", tables.samp_without_replacement),
    "unb-1": ("[Unb] Fig. 1", unb_example),
    "unb-2a": ("[Unb] Fig. 2a", tables.unb_speed_random),
    "unb-2b": ("[Unb] Fig. 2b", tables.unb_speed_parser),
    "unb-alg-3": ("[Unb] Alg. 3", tables.printed_marginal),
    "unb-tries": ("[Unb] section 4.3.1", tables.unb_tries),
    "unb-7": ("[Unb] Fig. 7", unb_ratios),
    "unb-bias": ("[Unb] Appendix E", tables.unb_bias),
    "unb-3": ("[Unb] Fig. 3", tables.unb_without_replacement),
    "unb-5": ("[Unb] Fig. 5", tables.unb_trie_and_beam),
    "unb-6": ("[Unb] Fig. 6", tables.unb_devices),
    "lengths": ("Over the length", tables.without_replacement_by_length),
}
OF_A_PARSER = {"unb-2b", "unb-tries", "unb-bias", "lengths"}  # in whole or in part
# What is drawn by the kind of weights: columns, the styles of their lines, and what the legend adds, if it has them.
TRIES: dict[str, tuple[str, str | None]] = {"tries": ("-", ""), "tries, best constant": ("--", ", best constant")}
RATIOS: dict[str, tuple[str, str | None]] = {"mean": ("-", ""), "95%": ("--", None)}


def sections(run: Experiment) -> dict[str, Section]:
    """All tables, to be measured or left as they stand."""
    return {name: Section(heading, partial(table, run)) for name, (heading, table) in TABLES.items()}


def plot(report: Path) -> None:
    """Draw a panel for every heading whose tables have a sampler's times, errors or tries."""
    found: dict[str, list[plots.Table]] = {}
    for table in plots.read_tables(report):
        if samplers_of(table) or by_weights(table):
            found.setdefault(table.title, []).append(table)
    shown = sorted(found, key=lambda title: ("without" in title or "beam" in title, by_weights(found[title][0])))
    rows = -(-len(shown) // 3)
    figure = plots.new_figure(12, 3.6 * rows + 1)
    panels = figure.subplots(rows, 3, squeeze=False).flatten()
    for axes, title in zip(panels, shown, strict=False):
        axes.set_title(textwrap.fill(TITLES.get(title, title), 40), fontsize="medium")
        if by_weights(found[title][0]):
            draw_by_weights(axes, found[title][0])
        else:
            draw_samplers(axes, found[title])
    for axes in panels[len(shown) :]:
        axes.remove()
    others = [axes for axes, title in zip(panels, shown, strict=False) if not by_weights(found[title][0])]
    plots.legend_below(figure, others, 4, [plots.style_key(PYTHON.removeprefix(", "), "--")])
    figure.savefig(report.with_suffix(".png"), dpi=100)


def samplers_of(table: plots.Table) -> list[str]:
    """Its columns that are samplers."""
    known = (*tables.WITH_REPLACEMENT, *DISTINCT, *BY_DEVICE)
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


def by_weights(table: plots.Table) -> bool:
    """Whether it has figures of no sampler, by the kind of weights."""
    return any(set(columns) <= set(table.columns) for columns in (TRIES, RATIOS))


def draw_by_weights(axes: Any, table: plots.Table) -> None:
    """Expected tries, or ratios of weights, over the length, a colour for the kind of weights."""
    tries = "tries" in table.columns
    for weights in dict.fromkeys(record["weights"] for record in table.records()):
        own = plots.Table("", table.columns, [row for row in table.rows if row[0] == weights])
        for column, (style, name) in (TRIES if tries else RATIOS).items():
            if points := own.line("words", column):
                label = None if name is None else weights + name
                axes.plot(*zip(*points, strict=True), style, label=label, **plots.look(weights))
    if tries:
        axes.set(ylabel="expected tries, median", yscale="log", ylim=(0.9, 12))
        plots.label_plainly(axes.yaxis, [1, 2, 3])
    else:
        axes.set(ylabel="ratio", ylim=(0.9, 2.4))
    axes.set(xlabel=x_label(table))
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
        before = read_text(options.output) if options.only else ""
        report(renewed(before, OPENING, sections(run), options.only or TABLES, DIFFERENCES), options.output, plot)
    except TreeparseError as error:
        sys.exit(f"reproduce_sampling: {error}")


def read_text(path: Path | None) -> str:
    """A file's text, nothing if there is no file."""
    return path.read_text(encoding="utf-8") if path and path.exists() else ""


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    treebanks = os.environ.get("TREEPARSE_TREEBANKS", ".")
    parser.add_argument("--treebanks", type=Path, default=treebanks, metavar="DIR", help="default: the variable's")
    parser.add_argument("--model", type=Path, metavar="DIR", help="a parser trained on EWT")
    parser.add_argument("--treesample", type=Path, metavar="DIR", help="a clone of rycolab/treesample")
    parser.add_argument(
        "--only", nargs="+", choices=TABLES, metavar="TABLE", help=f"of {', '.join(TABLES)}; others stay as they stand"
    )
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="of timing (default 5)")
    parser.add_argument("--quick", action="store_true", help="a trial: small graphs, few of them")
    options = parse_with_plot(parser, arguments)
    if options.only and not options.model and (lost := OF_A_PARSER & set(options.only)):
        parser.error(f"{', '.join(sorted(lost))} would lose rows of a parser's weights: name one with --model")
    return options


if __name__ == "__main__":
    main()
