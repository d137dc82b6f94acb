"""Time samplers of trees against peers on the same batches, in one run on one thread, and test what they draw.

    taskset -c 0 python -m scripts.benchmarks.bench_samplers --treesample DIR --synjax DIR --supar DIR
        --torch-struct DIR

Random and peaked scores are those of ``support/graphs/random_scores.py``; of the latter, sentences with two words that
prefer each other stand apart, as trapped ones. SynJax's samplers on JAX and treesample's trie are taken if JAX and
unique_randomizer can be imported, the rest of the peers comes from clones; those that are not named are left out. Every
call includes what a sampler has to make ready for its scores. The map of which sampler is fastest is drawn beside the
output file, which needs matplotlib.
"""

import argparse
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import NoReturn

import numpy as np
import torch
from scripts.support.graphs.random_scores import peaked_scores, random_scores
from scripts.support.peers import samplers as peers
from scripts.support.peers.samplers import Array, Heads, Sampler
from scripts.support.reports.markdown import Opening, parse_with_plot, report
from scripts.support.reports.timing import Timed, take_turns
from scripts.support.sampling import speed_map
from scripts.support.sampling.laws import DRAWS, Law, MakeDistribution, law_of, quality
from scripts.support.sampling.methods import COLBOURN, WILSON_REJECT
from scripts.support.sampling.speed_map import Map

from treeparse import NonProjectiveCRF, ProjectiveCRF

Shape = tuple[int, int]
SHARED, ALONE, LISTS = (4, 100), (32, 1), (4, 100)  # sentences a call, and trees of each of them
FEW_DRAWS = (("random", SHARED), ("random", ALONE), ("peaked", SHARED), ("peaked", ALONE))
EVERY_DRAW = (*FEW_DRAWS, ("trapped", SHARED))
PATIENCE = 5.0  # seconds after which a call of a peer is given up
ROUND = 0.05  # CPU seconds a fast sampler gets a round, a slow one gets one call
MIN_ROUNDS, MAX_ROUNDS, BUDGET = 3, 15, 2.0  # rounds a batch, and CPU seconds after which no further one begins
OPENING = Opening(
    title="Samples of dependency trees: time a tree, one thread",
    measured="CPU time of random trees, with and without replacement, by treeparse and its peers; and "
    "whether they have the law that they should. Then which of treeparse's own samplers is fastest where.",
    on="batches of sentences of random scores, N(0, 1), and of peaked ones, which are like a trained "
    "parser's; trapped ones are those in which two words prefer each other. The maps: N(0, 1) scores times a "
    "scale, by the kernels alone.",
    read='medians over rounds in which the samplers take turns on the same scores; "times P" is so many '
    "times as many trees a second as the peer P, so 10 means ten times as fast.",
    repeat="OMP_NUM_THREADS=1 taskset -c 0 python -m scripts.benchmarks.bench_samplers --treesample DIR --synjax "
    "DIR --supar DIR --torch-struct DIR --output scripts/experiments/results/bench_samplers.md",
    details=f"""A call draws so many trees of each sentence, from scores to heads; what a sampler makes ready for its
scores is part of it. Slow peers get fewer trees or sentences a call than the others, which changes their time a tree
little. What was drawn last is checked: how many were no tree, or are missing; by how many standard errors their mean
log probability is off; without replacement, how many were repeated, and the probability of all trees of a list
together, on average over the sentences that the sampler was given. The law is tested apart: the p-value of a chi-square
test of {DRAWS} draws of all trees of four words or, without replacement, of ordered pairs of trees of three words,
under N(0, 1) scores. treesample and SynJax's kernel draw by the same seeds in every run, as treeparse does.

In the maps, the loss is how much longer than the fastest of the samplers what `sample` chooses takes; where sentences
of one batch differ, it can be faster than any. Steps are those of the random walks, a tree; past a limit, a tree is
drawn by expansion instead.""",
)


@dataclass(frozen=True)
class Contest:
    """What samplers of one table compete at: trees of a family, of batches of a kind and shape.

    The first sampler is what treeparse does by itself.
    """

    title: str
    samplers: Sequence[Sampler]
    family: MakeDistribution = NonProjectiveCRF
    batches: Sequence[tuple[str, Shape]] = EVERY_DRAW
    distinct: bool = False


@dataclass
class SamplerRun(Timed):
    """One sampler on one batch."""

    sampler: Sampler
    shape: Shape  # sentences, and trees asked for of each
    heads: Heads = field(init=False)  # of the last call
    failure: str = ""  # why there are no more trees

    @property
    def trees(self) -> int:
        """How many a call drew, which may be fewer than it was asked for without replacement."""
        return self.shape[0] * self.shape[1] if self.failure else int((self.heads[..., 1] >= 0).sum())

    def speed(self, other: "SamplerRun") -> float:
        """How many times as many trees a second as the other's."""
        return self.trees / other.trees * other.over(self)[1]


def untrapped_scores(stream: np.random.Generator, n: int, batch: int) -> Array:
    """Peaked scores without the sentences in which two words prefer each other."""
    scores = peaked_scores(stream, n, batch + batch // 4 + 1)
    return scores[np.arange(len(scores)) % 5 > 0][:batch]


def trapped_scores(stream: np.random.Generator, n: int, batch: int) -> Array:
    """Peaked scores of nothing but such sentences."""
    return np.concatenate([peaked_scores(stream, n, 1) for _ in range(batch)])


KINDS: Mapping[str, Callable[[np.random.Generator, int, int], Array]] = {
    "random": random_scores,
    "peaked": untrapped_scores,
    "trapped": trapped_scores,
}


def enter(sampler: Sampler, scores: Array, count: int) -> SamplerRun:
    """Prepare a sampler for a batch. A peer that fails, or takes too long, is called no more."""
    items, trees = min(len(scores), sampler.max_sentences), min(count, sampler.max_trees)
    draw = sampler.prepare(scores[:items], trees)

    def call() -> None:
        if entry.failure:
            return
        try:
            with limited(PATIENCE if sampler.is_peer else 0.0):
                entry.heads = draw()
        except (TimeoutError, ValueError, np.linalg.LinAlgError) as error:
            if not sampler.is_peer:
                raise
            entry.failure = f"{error}"

    entry = SamplerRun(call, sampler, (items, trees))
    entry.run()
    if entry.times.pop() < ROUND:
        entry.fill_round(ROUND, 200)
    return entry


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise TimeoutError after so many seconds, if any; not of CPU time, whose timers make its clock coarse."""

    def give_up(*_: object) -> NoReturn:
        raise TimeoutError(f"none in {seconds:g} s")

    if seconds == 0:
        yield
        return
    handler = signal.signal(signal.SIGALRM, give_up)
    timer = signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, *timer)
        signal.signal(signal.SIGALRM, handler)


def time_samplers(contest: Contest, scores: Array, count: int) -> list[SamplerRun]:
    """Time all samplers on one batch."""
    entries = [enter(sampler, scores, count) for sampler in contest.samplers]
    take_turns(entries, fewest=MIN_ROUNDS, most=MAX_ROUNDS, budget=BUDGET)
    return entries


def tables(contest: Contest, lengths: Sequence[int]) -> Iterator[str]:
    """The lines of a contest's markdown tables, as they are measured."""
    laws = {sampler.name: law_of(sampler, contest.family, contest.distinct) for sampler in contest.samplers}
    columns = ["sampler", "trees a call", "µs a tree", "quartiles", "trees/s"]
    columns += [f"times {sampler.name}" for sampler in contest.samplers if sampler.is_peer]
    columns += ["no tree", *(["repeated", "mass"] if contest.distinct else ["standard errors off"]), "law: p"]
    for kind, (sentences, count) in contest.batches:
        stream = np.random.default_rng(1)
        for n in lengths:
            amount = "a tree" if count == 1 else f"{count} trees"
            yield f"\n## {contest.title}: {kind} scores, {n} words, {amount} of each of {sentences} sentences\n"
            yield f"| {' | '.join(columns)} |"
            yield f"|:--|{'--:|' * (len(columns) - 1)}"
            scores = KINDS[kind](stream, n, sentences)
            entries = time_samplers(contest, scores, count)
            for entry in entries:
                cells = [*measured(contest, entry, entries, scores), shown(laws[entry.sampler.name])]
                yield f"| {' | '.join(cells)} |"


def measured(contest: Contest, entry: SamplerRun, entries: Sequence[SamplerRun], scores: Array) -> list[str]:
    """The cells of a sampler's row, but for its law."""
    rivals = [other for other in entries if other.sampler.is_peer]
    names = [entry.sampler.name, f"{entry.trees}"]
    if entry.failure:
        return [*names, entry.failure, *[""] * (len(rivals) + (5 if contest.distinct else 4))]
    low, middle, high = np.quantile(entry.times, [0.25, 0.5, 0.75]) * 1e6 / entry.trees
    times = [f"{middle:.4g}", f"{low:.4g} - {high:.4g}", f"{1e6 / middle:.0f}"]
    ratios = ["-" if rival.failure else f"{entry.speed(rival):.3g}" for rival in rivals]
    wrong, repeated, mass, errors = quality(contest.family(torch.from_numpy(scores[: len(entry.heads)])), entry.heads)
    found = [f"{repeated}", f"{mass:.4g}"] if contest.distinct else ["-" if np.isnan(errors) else f"{errors:+.1f}"]
    return [*names, *times, *ratios, f"{wrong}", *found]


def shown(law: Law) -> str:
    """The cell of a law."""
    return f"{law.p:.2g}" + (f", {law.wrong} of {DRAWS} no tree" if law.wrong else "")


def contests(options: argparse.Namespace) -> list[Contest]:
    """All contests, with the peers that are there."""
    one: list[Sampler | None] = [peers.treeparse(method) for method in (None, "expansion", "wilson_marginal")]
    one += [peers.compared(WILSON_REJECT, "wilson_reject"), peers.compared(COLBOURN, "colbourn")]
    free = None, "expansion", "wilson"
    any_number: list[Sampler | None] = [peers.treeparse(method, single_root=False) for method in free]
    any_number.append(peers.compared(COLBOURN, "colbourn", single_root=False))
    distinct: list[Sampler | None] = [peers.treeparse_distinct(method) for method in (None, "repeat", "trie", "beam")]
    projective: list[Sampler | None] = [peers.treeparse_projective()]
    if options.treesample:
        kinds = "WilsonRCMarginalSample", "WilsonRCRejectSample", "ColbournSample"
        one += [peers.treesample(options.treesample, kind) for kind in kinds]
        any_number.append(peers.treesample(options.treesample, "WilsonSample"))
        distinct += [peers.treesample(options.treesample, "TreeSwor"), peers.treesample_trie(options.treesample)]
    if options.synjax:
        one += [peers.synjax_wilson(options.synjax), peers.synjax_crf(options.synjax)]
        any_number.append(peers.synjax_wilson(options.synjax, single_root=False))
        any_number.append(peers.synjax_crf(options.synjax, single_root=False))
        distinct.append(peers.synjax_crf(options.synjax, distinct=True))
        projective.append(peers.synjax_crf(options.synjax, projective=True))
    if options.supar:
        projective.append(peers.supar_projective(options.supar))
    if options.torch_struct:
        projective.append(peers.torch_struct_projective(options.torch_struct))
    labeled = [peers.treeparse_labeled(NonProjectiveCRF)], [peers.treeparse_labeled(ProjectiveCRF)]
    lists = [(kind, LISTS) for kind in KINDS]
    any_roots = partial(NonProjectiveCRF, single_root=False)
    return [
        Contest("One root", there(one)),
        Contest("Any number of roots", there(any_number), any_roots, FEW_DRAWS),
        Contest("Without replacement", there(distinct), batches=lists, distinct=True),
        Contest("Projective trees", there(projective), ProjectiveCRF, FEW_DRAWS),
        Contest(f"One root, with {peers.LABELS} labels", labeled[0], batches=FEW_DRAWS),
        Contest(f"Projective trees, with {peers.LABELS} labels", labeled[1], ProjectiveCRF, FEW_DRAWS),
    ]


def there(samplers: Iterable[Sampler | None]) -> list[Sampler]:
    """Without those whose packages are missing."""
    return [sampler for sampler in samplers if sampler is not None]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("treesample", "SynJax", "SuPar", "torch-struct"):
        parser.add_argument(f"--{name.lower()}", type=Path, metavar="DIR", help=f"a clone of {name}")
    parser.add_argument("--lengths", type=int, nargs="+", default=[40], metavar="N", help="words a sentence")
    parser.add_argument("--map-lengths", type=int, nargs="+", default=[10, 20, 40, 80, 160], metavar="N", help="of map")
    parser.add_argument("--scales", type=float, nargs="+", default=speed_map.SCALES, metavar="X", help="of the map")
    parser.add_argument(
        "--shifts", type=float, nargs="+", default=speed_map.ROOT_SHIFTS, metavar="X", help="of the map"
    )
    options = parse_with_plot(parser, arguments)
    if options.replot:
        return speed_map.plot(options.replot)
    torch.set_num_threads(1)
    charts = [Map(options.map_lengths, options.scales), Map(options.shifts, options.scales, words=options.lengths[0])]
    report(all_lines(contests(options), charts, options.lengths), options.output, speed_map.plot)


def all_lines(contests: Iterable[Contest], charts: Iterable[Map], lengths: Sequence[int]) -> Iterator[str]:
    """The whole report, as it is measured."""
    yield OPENING.text()
    for contest in contests:
        yield from tables(contest, lengths)
    for chart in charts:
        yield from speed_map.lines(chart)


if __name__ == "__main__":
    main()
