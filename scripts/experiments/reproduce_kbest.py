"""Repeat two experiments of Zmigrod, Vieira and Cotterell 2021 ([KBest]), as tables and a plot.

    export TREEPARSE_TREEBANKS=...   # the folder of UD_English-EWT, UD_Turkish-IMST and UD_Latin-Perseus
    python -m scripts.experiments.reproduce_kbest --models runs/kbest --spanningtrees DIR --output FILE

Table 1 of the paper: time of their K-best spanning trees against the algorithm of Camerini et al. 1980, on sentences of
treebanks as trained parsers score them. Fig. 1 and Appendix A: how many of the K best trees have several roots where
decoding leaves the number of roots open. Parsers are trained by ``configs/fast.yaml`` where the folder of models lacks
them, on EWT, its first 500 sentences, Turkish-IMST and Latin-Perseus (whose last 134 training sentences serve as dev
set), under two objectives: the likelihood of trees with one root, and the choice of every word's head by itself.

The paper's own code, in Python, comes from a clone of rycolab/spanningtrees; without --spanningtrees it is left out.
The plot is written beside the output file and needs matplotlib (``pip install treeparse[bench]``).
"""

import argparse
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scripts.support.graphs.scored import Scored, scored_batches
from scripts.support.kbest import algorithms
from scripts.support.reports import plots
from scripts.support.reports.markdown import Opening, parse_with_plot, report
from scripts.support.reports.timing import Entry, race
from scripts.support.training.models import trained_parser
from scripts.support.training.treebanks import EWT, EWT_500, LATIN, TURKISH, gold_sentences

from treeparse.data.parses import with_parses
from treeparse.errors import TreeparseError
from treeparse.metrics import attachment_scores
from treeparse.model import Parser
from treeparse.sentence import Sentence

TREEBANKS = (EWT, TURKISH, LATIN, EWT_500)
OBJECTIVES = ("TreeLikelihood", "HeadSelection")
TIMED_SIZES, LIST_SIZES = (10, 20, 50), (1, 5, 10, 20, 50)  # K of Table 1, and of Fig. 1
# [KBest] Table 1: seconds a sentence by Camerini et al.'s algorithm, by the simplified one, and the ratio, by K
PAPER_TIMES = {10: (0.0695, 0.0489, 1.42), 20: (0.1404, 0.1010, 1.39), 50: (0.3511, 0.2563, 1.37)}
PAPER_GROWTH = 13  # [KBest], abstract: violations at K = 50 over those at K = 1, on average
# [KBest], Appendix A, in percent: Stanza's parsers on the English and Turkish test files of UD 2.3
PAPER_RATES = {EWT.name: (0.48, 9.12, 10.73, 11.12, 11.34), TURKISH.name: (2.54, 12.47, 15.53, 17.09, 18.73)}
OPENING = Opening(
    title="[KBest] repeated: time of K-best spanning trees, and violations of the root constraint",
    measured="CPU time of K-best trees by Camerini et al.'s algorithm, by [KBest]'s and by treeparse "
    "(its Table 1); and how many of the K best trees have several roots where decoding leaves their number open"
    " (its Fig. 1).",
    on="the test sentences of EWT, Turkish-IMST and Latin-Perseus, as parsers trained by "
    "`configs/fast.yaml` score their arcs, without labels; EWT-500 is a parser of EWT's first 500 training "
    "sentences.",
    read="a ratio is Camerini et al.'s time over another's in the same round, so 2 means that the other is "
    "twice as fast; violations are in percent of trees or of sentences.",
    repeat="python -m scripts.experiments.reproduce_kbest --models runs/kbest --spanningtrees DIR --output "
    "scripts/experiments/results/reproduce_kbest.md",
    details="""`TreeLikelihood` trains on trees with one root, which leaves a constant on all root arcs undetermined;
`HeadSelection` trains every word's choice of a head by itself, as the paper's parsers were trained.""",
)
HOW_TIMED = """
CPU time, medians over rounds in which the algorithms take turns, one thread, any number of roots; quartiles in
brackets; ratios are of times in the same round; scores by the `TreeLikelihood` parser. `compiled`: Camerini et al.'s
algorithm and [KBest]'s simplification, written alike for this comparison on one compiled contraction, so that they
differ in nothing but the algorithm. `authors`: the paper's own code for both, in Python, on a sample of the sentences.
`treeparse`: the library's kernel. Lists differ from treeparse's where their scores do at any rank.

In [KBest] times are of Python, on an Intel Core i7-7500U, over the English test set of UD 2.3, which Stanza scored. A
tree of the list costs Camerini et al.'s algorithm one contraction more, the third, but both search twice for the arc to
change; by the ratios here that search takes most of the time.
"""
HOW_COUNTED = """
Among the K best trees of a sentence, or all where it has fewer, a violation is a tree with several roots. The three
tables give the share of trees, over all sentences; of sentences with any such tree; and of sentences whose K-th tree is
such (the last one where there are fewer). `TreeLikelihood` leaves to chance whether root arcs are dear or cheap as
compared to others, and its rows show little but that: a parser trained for one root must be decoded for one root."""
SHARES = ("Trees with several roots", "Sentences with any such tree", "Sentences whose K-th tree is such")


@dataclass(frozen=True)
class Subject:
    """A parser, by its treebank and objective, and the test sentences as it scores them."""

    treebank: str
    objective: str
    uas: float
    batches: Sequence[Scored]

    @property
    def count(self) -> int:
        return sum(len(batch.lengths) for batch in self.batches)


def subjects(options: argparse.Namespace) -> Iterator[Subject]:
    """All parsers; those that are missing are trained."""
    for treebank in TREEBANKS:
        sentences = gold_sentences(treebank, options.treebanks, options.sentences)
        for objective in OBJECTIVES:
            parser = trained_parser(treebank, options.treebanks, options.models, options.config, objective)
            batches = list(scored_batches(parser, sentences))
            yield Subject(treebank.name, objective, uas(parser, sentences), batches)


def uas(parser: Parser, gold: Sequence[Sentence]) -> float:
    """Of the best labelled trees, in percent."""
    parses = parser.parse(gold)
    system = with_parses(gold, parses)
    return 100 * attachment_scores(gold, system).uas


def time_table(subjects: Sequence[Subject], options: argparse.Namespace) -> Iterator[str]:
    """Table 1: Camerini's time over the others'."""
    yield "\n## Table 1: time of Camerini et al.'s algorithm over that of others"
    yield HOW_TIMED
    yield (
        "| treebank | K | over [KBest], authors | over [KBest], compiled | over treeparse | "
        "µs a sentence, treeparse | lists that differ |"
    )
    yield "|:--|--:|--:|--:|--:|--:|:--|"
    for subject in subjects:
        if subject.objective == OBJECTIVES[0]:
            for k in TIMED_SIZES:
                yield time_row(subject, k, options)
    for k, (original, simplified, ratio) in PAPER_TIMES.items():
        times = f"{1e3 * original:.1f} ms over {1e3 * simplified:.1f} ms"
        yield f"| {EWT.name}, in [KBest] | {k} | {ratio} ({times}) | | | | |"


def time_row(subject: Subject, k: int, options: argparse.Namespace) -> str:
    """One treebank and K."""
    entries = algorithms.compiled_entries(subject.batches, k)
    mistakes = list(count_mistakes(entries, entries[0]))
    measured = race(entries, options.rounds)
    in_python = ""
    if options.spanningtrees:
        sample = algorithms.sample_of(subject.batches, options.sample)
        slow = algorithms.authors_entries(sample, k, options.spanningtrees)
        mistakes += count_mistakes(slow, algorithms.compiled_entries(sample, k)[0])
        times = race(slow, options.rounds)
        in_python = spread(times[algorithms.CAMERINI_PYTHON].over(times[algorithms.SIMPLIFIED_PYTHON]))
    ours = measured[algorithms.TREEPARSE]
    over = [spread(measured[algorithms.CAMERINI].over(other)) for other in (measured[algorithms.SIMPLIFIED], ours)]
    cells = [in_python, *over, f"{1e6 * ours.median / subject.count:.1f}", "; ".join(mistakes) or "none"]
    return f"| {subject.treebank} | {k} | {' | '.join(cells)} |"


def count_mistakes(entries: Sequence[Entry], ours: Entry) -> Iterator[str]:
    """How many lists differ from ours, of each algorithm that has such lists; this compiles, too."""
    expected = ours.call()
    for entry in entries:
        if count := algorithms.different(entry.call(), expected):
            yield f"{count} of {len(expected)} {entry.name}"


def spread(quartiles: Sequence[float]) -> str:
    """Median and quartiles."""
    low, middle, high = quartiles
    return f"{middle:.2f} ({low:.2f} - {high:.2f})"


def violations(batches: Sequence[Scored], counts: Sequence[int]) -> NDArray[np.float64]:
    """The three shares of violations for every K, (3, K)."""
    of_trees, any_tree, last_tree = [], [], []
    for lists in algorithms.treeparse_lists(batches, max(counts)):
        roots = (lists.heads[:, : max(counts), 1:] == 0).sum(-1)
        exists, several = lists.scores[:, : max(counts)] > -np.inf, roots > 1
        for k in counts:
            of_trees.append((several[:, :k].sum(), exists[:, :k].sum()))
            any_tree.append((several[:, :k].any(1).sum(), len(several)))
            last = exists[:, :k].sum(1) - 1
            last_tree.append((np.take_along_axis(several, last[:, None], 1).sum(), len(several)))
    totals = np.array([of_trees, any_tree, last_tree], float).reshape(3, -1, len(counts), 2).sum(1)
    return totals[..., 0] / totals[..., 1]


def violation_tables(subjects: Sequence[Subject], shares: Mapping[tuple[str, str], NDArray]) -> Iterator[str]:
    """Fig. 1 and Appendix A as tables, in percent."""
    yield "\n## Fig. 1: violations of the root constraint where the number of roots is left open"
    yield HOW_COUNTED
    for place, title in enumerate(SHARES):
        yield f"\n### {title}, %\n"
        yield f"| treebank | objective | UAS | {' | '.join(f'K = {k}' for k in LIST_SIZES)} |"
        yield "|:--|:--|--:|" + "--:|" * len(LIST_SIZES)
        for subject in subjects:
            values = shares[subject.treebank, subject.objective][place]
            cells = " | ".join(f"{100 * value:.2f}" for value in values)
            yield f"| {subject.treebank} | {subject.objective} | {subject.uas:.2f} | {cells} |"
        for treebank, rates in PAPER_RATES.items() if place == 0 else ():
            yield f"| {treebank} | in [KBest] | | {' | '.join(f'{rate:.2f}' for rate in rates)} |"
    first, last = LIST_SIZES[0], LIST_SIZES[-1]
    for objective in OBJECTIVES:
        own = [share[0] for (_, name), share in shares.items() if name == objective]
        growth = [share[-1] / share[0] for share in own if share[0] > 0]
        if growth:
            yield (
                f"\n{objective}: from K = {first} to K = {last} the share of trees grows {mean(growth):.1f} "
                f"times on average ({min(growth):.1f} to {max(growth):.1f}; {len(own) - len(growth)} of {len(own)} "
                f"parsers without a violation at K = {first}). In [KBest] it grows {PAPER_GROWTH} times on average, "
                "over other treebanks."
            )


def plot(report: Path) -> None:
    """Draw the violations, a colour a treebank."""
    tables = {table.title: table for table in plots.read_tables(report)}
    figure = plots.new_figure(11, 4)
    panels = figure.subplots(1, len(SHARES))
    for axes, title in zip(panels, SHARES, strict=True):
        for record in tables[f"{title}, %"].records():
            if record["objective"] in OBJECTIVES:
                style = "-" if record["objective"] == OBJECTIVES[0] else "--"
                rates = [float(record[f"K = {k}"]) for k in LIST_SIZES]
                axes.plot(LIST_SIZES, rates, style, label=record["treebank"], **_look(record["treebank"]))
        axes.set(title=title, xlabel="trees a sentence (K)", ylabel="violations, %", ylim=(0, None), xscale="log")
        plots.label_plainly(axes.xaxis, LIST_SIZES)
    styles = [plots.style_key(f"trained by {name}", style) for name, style in zip(OBJECTIVES, ("-", "--"), strict=True)]
    plots.legend_below(figure, panels, 3, styles)
    figure.savefig(report.with_suffix(".png"), dpi=100)


def _look(treebank: str) -> dict[str, Any]:
    return plots.look(treebank) if treebank in plots.LOOKS else {"color": "0.5", "marker": "o"}


def lines(options: argparse.Namespace) -> Iterator[str]:
    """The whole report, as it is measured."""
    yield OPENING.text()
    found = list(subjects(options))
    yield from time_table(found, options)
    shares = {(subject.treebank, subject.objective): violations(subject.batches, LIST_SIZES) for subject in found}
    yield from violation_tables(found, shares)


def main(arguments: Sequence[str] | None = None) -> None:
    """Train what is missing, measure and print."""
    options = _options(arguments)
    if options.replot:
        return plot(options.replot)
    torch.set_num_threads(1)
    try:
        report(lines(options), options.output, plot)
    except TreeparseError as error:
        sys.exit(f"reproduce_kbest: {error}")


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    treebanks = os.environ.get("TREEPARSE_TREEBANKS", ".")
    parser.add_argument("--treebanks", type=Path, default=treebanks, metavar="DIR", help="default: the variable's")
    parser.add_argument("--models", type=Path, default="runs/kbest", metavar="DIR", help="default: runs/kbest")
    parser.add_argument("--config", default="fast", help="a YAML file, or a name from treeparse config (default: fast)")
    parser.add_argument("--spanningtrees", type=Path, metavar="DIR", help="a clone of rycolab/spanningtrees")
    parser.add_argument("--sample", type=int, default=100, metavar="N", help="sentences for it (default 100)")
    parser.add_argument("--sentences", type=int, metavar="N", help="only the first ones of each test file")
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="2 or more (default 5)")
    options = parse_with_plot(parser, arguments)
    if options.rounds < 2:
        parser.error("quartiles need 2 rounds or more")
    return options


if __name__ == "__main__":
    main()
