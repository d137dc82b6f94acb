"""Time best trees and K-best lists against peers on the same batches, in one run on one thread, with their mistakes.

    taskset -c 0 python -m scripts.benchmarks.bench_decoders --supar DIR --stanza DIR --synjax DIR --torch-struct DIR
        --spanningtrees DIR

Random scores are N(0, 1). Peaked ones are like a trained parser's: a gold tree 10 to 30 above such noise and, in every
fifth sentence, two words that prefer each other. Tied ones are 0, 1, 2 or 3. ufal.chu_liu_edmonds and networkx come
from pip, the other peers from a clone of their repository; those that are not named are left out. Decoders without a
rule for the root get scores whose root arcs are lowered by a constant larger than any difference between trees ([Root]
Stanojević and Cohen 2021). The plot of growth in n and K is written beside the output file and needs matplotlib.
"""

import argparse
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scripts.support.graphs.random_scores import BATCH, Array, peaked_scores, random_scores, tied_scores
from scripts.support.peers import decoders as peers
from scripts.support.peers.decoders import Decoder
from scripts.support.reports import plots
from scripts.support.reports.markdown import Opening, parse_with_plot, report
from scripts.support.reports.timing import Timed, take_turns

from treeparse.kernels.best.arborescence import are_trees
from treeparse.kernels.lists.nonprojective_lists import NonprojectiveKBest
from treeparse.kernels.lists.projective_lists import ProjectiveKBest

LENGTHS = (10, 20, 40, 80, 160)
LIST_SIZES = (1, 5, 10, 20, 50, 100, 200, 500, 1000)  # K, at 40 words
MISTAKES = ("trees lost", "repeated", "out of order")
ROUND = 0.02  # CPU seconds a fast decoder gets a round, a slow one gets one call
MIN_ROUNDS, MAX_ROUNDS, BUDGET = 3, 25, 12.0  # rounds a batch, and CPU seconds after which no further one begins
OPENING = Opening(
    title="Best trees and K-best lists: time a sentence, one thread",
    measured="CPU time of the best tree, of the K best and of their projective counterparts, by "
    "treeparse and its peers; and the mistakes in what the peers list.",
    on=f"batches of {BATCH} sentences (K-best lists: of 8 at 80 words, of 2 at 160) of random scores, N(0, 1), and of "
    "peaked ones, which are like a trained parser's; tied scores are 0, 1, 2 or 3.",
    read="medians over rounds in which the decoders take turns on the same scores; a ratio is a "
    "decoder's time over that of treeparse under the same rule for the root in the same round, so 10 means ten "
    "times as slow.",
    repeat="taskset -c 0 python -m scripts.benchmarks.bench_decoders --supar DIR --stanza DIR --synjax DIR "
    "--torch-struct "
    "DIR --spanningtrees DIR --output scripts/experiments/results/bench_decoders.md",
    details="""A tree is lost where the peer lists fewer different trees that score as high, within rounding, as
treeparse's; it is out of order where the tree listed before it scores lower.""",
)
CROWDED = 4  # decoders in a panel, above which random and peaked scores have one each


@dataclass(frozen=True)
class Contest:
    """What decoders of one table compete at: ``trees`` best trees of sentences of n words, for every (n, trees).

    The first decoder of either rule for the root is ours, which the others are compared with.
    """

    title: str
    decoders: Sequence[Decoder]
    sizes: Sequence[tuple[int, int]]
    kinds: Sequence[str] = ("random", "peaked")


@dataclass
class DecoderRun(Timed):
    """One decoder on one batch, and the mistakes in its lists."""

    decoder: Decoder
    sentences: int
    trees: int
    mistakes: NDArray[np.int64] = field(default_factory=lambda: np.zeros(3, np.int64))


KINDS: Mapping[str, Callable[[np.random.Generator, int, int], Array]] = {
    "random": random_scores,
    "peaked": peaked_scores,
    "tied": tied_scores,
}


def enter(decoder: Decoder, scores: Array, k: int, ours: Array) -> DecoderRun:
    """Prepare a decoder for a batch and compare its lists with the scores (B, k) of ours, -inf where there is none."""
    decode = decoder.prepare(scores, k)
    entry = DecoderRun(decode, decoder, len(scores), k)
    for item, trees in enumerate(decode()):
        entry.mistakes += mistakes(decoder, scores[item], np.atleast_2d(np.asarray(trees)), ours[item])
    entry.fill_round(ROUND, 200)
    return entry


def mistakes(decoder: Decoder, scores: Array, trees: NDArray[np.int64], ours: Array) -> tuple[int, int, int]:
    """How many trees the list (k, n+1) of a sentence lost, repeated, and has after a tree that scores lower.

    Raises where there is a better tree than ours, or what is no tree.
    """
    trees = trees.astype(np.int64, copy=True)
    trees[:, 0] = -1
    trees = trees[trees[:, 1] >= 0]  # without the slots past the number of trees
    if not are_trees(trees, np.full(len(trees), trees.shape[1] - 1), single_root=decoder.single_root).all():
        raise SystemExit(f"bench_decoders: {decoder.name} returned what is no tree by its rule for the root")
    ours = ours[ours > -np.inf]
    slack = decoder.rounding * np.abs(ours).max()
    different = np.unique(trees, axis=0)
    found = np.sort(tree_scores(scores, different))[::-1]
    if len(found) > len(ours) or (found > ours[: len(found)] + slack).any():
        raise SystemExit(f"bench_decoders: {decoder.name} found a better tree than treeparse")
    lost = len(ours) - int((found >= ours[-1] - slack).sum())
    return lost, len(trees) - len(different), int((np.diff(tree_scores(scores, trees)) > slack).sum())


def tree_scores(scores: Array, trees: NDArray[np.int64]) -> Array:
    """The scores (k,) of head lists (k, n+1) under one sentence's scores."""
    return np.take_along_axis(scores[:, 1:], trees[:, 1:], axis=0).sum(1)


def our_scores(decoder: Decoder, scores: Array, k: int) -> Array:
    """The scores (B, k) of our trees, -inf past their number."""
    result = np.full((len(scores), k), -np.inf)
    for item, trees in enumerate(decoder.prepare(scores, k)()):
        trees = np.atleast_2d(trees)
        trees = trees[trees[:, 1] >= 0]
        result[item, : len(trees)] = tree_scores(scores[item], trees)
    return result


def time_decoders(decoders: Sequence[Decoder], scores: Array, k: int) -> list[DecoderRun]:
    """Time all decoders that can do it on one batch."""
    n = scores.shape[-1] - 1
    able = [decoder for decoder in decoders if n <= decoder.max_words and k <= decoder.max_trees]
    ours = {rule: our_scores(first_with(decoders, rule), scores, k) for rule in {one.single_root for one in able}}
    entries = [enter(decoder, scores, k, ours[decoder.single_root]) for decoder in able]
    take_turns(entries, fewest=MIN_ROUNDS, most=MAX_ROUNDS, budget=BUDGET)
    return entries


def first_with(decoders: Sequence[Decoder], single_root: bool) -> Decoder:
    """Ours under this rule for the root."""
    return next(decoder for decoder in decoders if decoder.single_root == single_root)


def microseconds(entry: DecoderRun) -> float:
    """The median a sentence."""
    return 1e6 * entry.median / entry.sentences


def tables(contest: Contest) -> Iterator[str]:
    """The lines of a contest's markdown tables, as they are measured."""
    for kind in contest.kinds:
        yield f"\n## {contest.title}: {kind} scores\n"
        yield f"| n | K | decoder | µs a sentence | times treeparse's | quartiles | {' | '.join(MISTAKES)} |"
        yield "|--:|--:|:--|--:|--:|--:|--:|--:|--:|"
        stream = np.random.default_rng(1)
        for n, k in contest.sizes:
            batch = BATCH if k == 1 else max(2, min(BATCH, BATCH * 1600 // n**2))
            # float32 numbers, so that no decoder has to round them
            scores = KINDS[kind](stream, n, batch).astype(np.float32).astype(np.float64)
            entries = time_decoders(contest.decoders, scores, k)
            for entry in entries:
                yield row(n, k, entry, entries)


def row(n: int, k: int, entry: DecoderRun, entries: Sequence[DecoderRun]) -> str:
    """One decoder's row."""
    base = next(other for other in entries if other.decoder.single_root == entry.decoder.single_root)
    low, ratio, high = entry.over(base)
    counts = " | ".join(f"{count} of {entry.sentences * k}" for count in entry.mistakes)
    cells = f"{n} | {k} | {entry.decoder.name} | {microseconds(entry):.1f} | {ratio:.1f} | {low:.1f} - {high:.1f}"
    return f"| {cells} | {counts} |"


def plot(report: Path) -> None:
    """Draw the growth of time in n, and in K, beside a report."""
    tables = [table for table in plots.read_tables(report) if len(places(table)) > 1]
    panels: dict[str, list[plots.Table]] = {}
    for table in tables:
        crowded = len({record["decoder"] for record in table.records()}) > CROWDED
        panels.setdefault(table.title if crowded else table.title.partition(":")[0], []).append(table)
    rows, columns = -(-len(panels) // 3), min(3, len(panels))
    figure = plots.new_figure(4 * columns, 3.4 * rows + 1)
    grid = figure.subplots(rows, columns, squeeze=False).flatten()
    for axes, (title, shown) in zip(grid, panels.items(), strict=False):
        axes.set(title=title, xscale="log", yscale="log", ylabel="µs a sentence")
        for table in shown:
            draw_lines(axes, table)
        plots.label_plainly(axes.yaxis)
    for axes in grid[len(panels) :]:
        axes.remove()
    kinds = [plots.style_key("random scores", "-"), plots.style_key("peaked scores", "--")]
    plots.legend_below(figure, grid[: len(panels)], 4, kinds)
    figure.savefig(report.with_suffix(".png"), dpi=100)


def places(table: plots.Table) -> list[tuple[str, str]]:
    """The n and K of a table of decoders, in order."""
    return list(dict.fromkeys((record["n"], record["K"]) for record in table.records() if "decoder" in record))


def draw_lines(axes: Any, table: plots.Table) -> None:
    """A line a decoder: dashed for peaked scores, with hollow markers where the number of roots is left open."""
    in_n = len({n for n, _ in places(table)}) > 1
    lines: dict[str, list[tuple[float, float]]] = {}
    for record in table.records():
        point = float(record["n" if in_n else "K"]), float(record["µs a sentence"])
        lines.setdefault(record["decoder"], []).append(point)
    for name, points in lines.items():
        style = "--" if "peaked" in table.title else "-"
        face = {"markerfacecolor": "white"} if name.endswith("any roots") else {}
        axes.plot(*zip(*points, strict=True), style, label=shown_name(name), **plots.look(name), **face)
    axes.set(xlabel="words a sentence" if in_n else "trees a sentence (K)")
    plots.label_plainly(axes.xaxis, sorted({x for points in lines.values() for x, _ in points})[:: 1 if in_n else 2])


def shown_name(decoder: str) -> str:
    """A peer's name, without that of its function."""
    return decoder if "," in decoder else decoder.split()[0]


def contests(options: argparse.Namespace) -> list[Contest]:
    """All contests, with the peers that are there."""
    optional = [peers.ufal(True), peers.ufal(False), peers.networkx()]
    best = [peers.best_trees(), peers.reweighted_trees(), peers.best_trees(single_root=False)]
    best += [decoder for decoder in optional if decoder is not None]
    lists = [peers.k_best_trees(NonprojectiveKBest)]
    projective, projective_lists = [peers.projective_trees()], [peers.k_best_trees(ProjectiveKBest)]
    if options.supar:
        best.append(peers.supar_mst(options.supar))
        projective.append(peers.supar_projective(options.supar, lists=False))
        projective_lists.append(peers.supar_projective(options.supar, lists=True))
    if options.stanza:
        best.append(peers.stanza(options.stanza))
    if options.synjax:
        best.append(peers.synjax(options.synjax))
    if options.torch_struct:
        projective.append(peers.torch_struct_projective(options.torch_struct, lists=False))
        projective_lists.append(peers.torch_struct_projective(options.torch_struct, lists=True))
    if options.spanningtrees:
        lists.append(peers.spanningtrees(options.spanningtrees))
    lengths = options.lengths
    middle = 40 if 40 in lengths else lengths[0]
    return [
        Contest("Best tree", best, [(n, 1) for n in lengths]),
        Contest("50 best trees", lists, [(n, 50) for n in lengths]),
        Contest("All 64 trees", lists, [(4, 64)], ("random", "tied")),
        Contest(f"K best trees of {middle} words", lists, [(middle, k) for k in options.trees]),
        Contest("Best projective tree", projective, [(n, 1) for n in lengths]),
        Contest("10 best projective trees", projective_lists, [(n, 10) for n in lengths]),
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("SuPar", "Stanza", "SynJax", "torch-struct", "spanningtrees"):
        parser.add_argument(f"--{name.lower()}", type=Path, metavar="DIR", help=f"a clone of {name}")
    parser.add_argument("--lengths", type=int, nargs="+", default=LENGTHS, metavar="N", help="words a sentence")
    parser.add_argument("--trees", type=int, nargs="+", default=LIST_SIZES, metavar="K", help="for the growth in K")
    options = parse_with_plot(parser, arguments)
    if options.replot:
        return plot(options.replot)
    torch.set_num_threads(1)
    report(all_lines(contests(options)), options.output, plot)


def all_lines(contests: Iterable[Contest]) -> Iterator[str]:
    """The whole report, as it is measured."""
    yield OPENING.text()
    for contest in contests:
        yield from tables(contest)


if __name__ == "__main__":
    main()
