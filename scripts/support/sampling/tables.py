"""The tables of ``reproduce_sampling.py``: each yields Markdown lines as it is measured."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from scripts.support.graphs.scored import Scored, Weights, random_graphs
from scripts.support.reports.timing import Entry
from scripts.support.sampling import analysis
from scripts.support.sampling import entries as samplers
from scripts.support.sampling.experiment import Experiment, digits, line, rule, times

from treeparse.kernels.sums import elimination

TREES_A_GRAPH = 20  # with replacement, as in the program of [Samp]'s authors
TREES_OF_UNB = 100  # the same in [Unb]
PAPER_TRIES = 1.06  # [Unb] section 4.3.1: on average, of Stanza's English parser on News Commentary v16
WITH_REPLACEMENT = (samplers.WILSON_RC, *samplers.SAMPLERS)
WALKERS = (samplers.WILSON_RC, samplers.REJECT, samplers.MARGINAL)
WRONG_LISTS = "wrong lists"  # that repeat a tree, lack one, or have what is none
RANDOM: Mapping[Weights, str] = {"uniform": "weights uniform in (0, 1)", "normal": "random weights"}
PARSER = "a parser's weights"
Weighing = tuple[str, Mapping[str, Scored]]


def weighings(run: Experiment, words: Sequence[int], graphs: int | None = None) -> Iterator[Weighing]:
    """Random weights, then those of a trained parser if there is one."""
    yield RANDOM["normal"], run.random(words, graphs=graphs)
    if run.sentences:
        yield PARSER, run.sentences


def samp_with_replacement(run: Experiment) -> Iterator[str]:
    """[Samp] Fig. 6 over the length."""
    title = "[Samp] Fig. 6: with replacement, weights uniform in (0, 1)"
    yield f"\n## {title}\n\n{TREES_A_GRAPH} trees of each of {run.sizes.graphs} graphs, µs a tree:\n"
    yield line("nodes", *WITH_REPLACEMENT)
    yield rule(1 + len(WITH_REPLACEMENT))
    found = {}
    for words, batch in run.random([nodes - 1 for nodes in run.sizes.nodes], "uniform").items():
        nodes = int(words) + 1
        found[nodes] = sample_times(samplers.entries(batch, TREES_A_GRAPH), batch, run)
        yield line(nodes, *map(digits, found[nodes]))
    yield line("slope", *slopes(found))
    if run.treesample:
        yield f"\nThe authors' Python, {run.sizes.slow_graphs} graphs:\n"
        yield line("nodes", *samplers.AUTHORS)
        yield rule(1 + len(samplers.AUTHORS))
        found = {}
        for nodes in run.sizes.slow_nodes:
            batch = random_graphs(nodes - 1, run.sizes.slow_graphs, "uniform", nodes - 1)
            entries = samplers.authors_entries(batch, TREES_A_GRAPH, run.treesample)
            found[nodes] = sample_times(entries, batch, run)
            yield line(nodes, *map(digits, found[nodes]))
        yield line("slope", *slopes(found))


def slopes(found: Mapping[int, Sequence[float]]) -> Iterator[str]:
    """Those of the lines that fit best where both axes are logarithmic; "-" where a line has one point."""
    for values in zip(*found.values(), strict=True):
        yield f"{np.polyfit(np.log(list(found)), np.log(values), 1)[0]:.2f}" if len(found) > 1 else "-"


def sample_times(entries: Sequence[Entry], batch: Scored, run: Experiment, count: int = TREES_A_GRAPH) -> list[float]:
    """Microseconds a tree with replacement, of so many of each graph."""
    for entry in entries:
        entry.call()  # compiles
    return list(times(entries, [count * len(batch.lengths)] * len(entries), run).values())


def samp_without_replacement(run: Experiment) -> Iterator[str]:
    """What the program of [Samp]'s authors times without replacement, over the number of trees."""
    batch = random_graphs(run.sizes.few_words, run.sizes.few_graphs, "uniform", 1)
    title = f"[Samp], authors' program: without replacement, {run.sizes.few_words} words"
    return over_count(run, batch, title, run.treesample)


def over_count(run: Experiment, batch: Scored, title: str, treesample: Path | None = None) -> Iterator[str]:
    """Samplers without replacement over the number of trees."""
    names = [*samplers.DISTINCT, *(["list" + samplers.PYTHON] if treesample else [])]
    yield f"\n## {title}\n\nK trees of each of {len(batch.lengths)} graphs, µs a tree:\n"
    yield line("K", *names, WRONG_LISTS)
    yield rule(2 + len(names))
    few = Scored(batch.scores[: run.sizes.slow_graphs], batch.lengths[: run.sizes.slow_graphs])
    for k in run.sizes.distinct:
        cells, wrong = distinct_cells(run, batch, k)
        slow = [samplers.authors_list(few, k, treesample)] if treesample and k in run.sizes.slow_distinct else []
        cells += map(digits, times(slow, [k * len(few.lengths)] * len(slow), run).values())
        yield line(k, *cells, *[""] * (len(names) - len(cells)), wrong)


def distinct_cells(run: Experiment, batch: Scored, count: int) -> tuple[list[str], str]:
    """Times without replacement, by the trees found, and how many lists of the list version are wrong."""
    entries = samplers.distinct_entries(batch, count)
    lists = {entry.name: entry.call() for entry in entries}
    wrong = {name: samplers.wrong_lists(heads, batch) for name, heads in lists.items()}
    for name in lists:
        if name != samplers.LIST and wrong[name]:
            raise SystemExit(f"reproduce_sampling: {name} repeats or lacks a tree")
    counts = [int((heads[:, :, 1] >= 0).sum()) for heads in lists.values()]
    found = [digits(value) for value in times(entries, counts, run).values()]
    found += [""] * (len(samplers.DISTINCT) - len(found))
    return found, f"{wrong[samplers.LIST]} of {len(batch.lengths)}"


def unb_speed_random(run: Experiment) -> Iterator[str]:
    """[Unb] Fig. 2a."""
    batches = run.random(run.sizes.words, "uniform", run.sizes.some_graphs)
    return unb_speed(run, f"[Unb] Fig. 2a: with replacement, {RANDOM['uniform']}", batches)


def unb_speed_parser(run: Experiment) -> Iterator[str]:
    """[Unb] Fig. 2b, if there is a parser."""
    return unb_speed(run, f"[Unb] Fig. 2b: with replacement, {PARSER}", run.sentences) if run.sentences else iter(())


def unb_speed(run: Experiment, title: str, batches: Mapping[str, Scored]) -> Iterator[str]:
    """One panel of [Unb] Fig. 2."""
    count = TREES_OF_UNB
    yield f"\n## {title}\n\n{count} trees a graph, µs a tree; then steps of the walks a tree, on average:\n"
    yield line("words", "graphs", *WITH_REPLACEMENT, *(f"steps, {name}" for name in WALKERS), "given up, %")
    yield rule(3 + len(WITH_REPLACEMENT) + len(WALKERS))
    for words, batch in batches.items():
        items = len(batch.lengths)
        drawn = [samplers.draw(walker, batch, count) for walker in WALKERS]
        given_up = 100 * (drawn[0].heads[:, :, 1] < 0).mean()
        steps = [digits(each.steps.mean()) for each in drawn]
        found = sample_times(samplers.entries(batch, count), batch, run, count)
        yield line(words, items, *map(digits, found), *steps, f"{given_up:.1f}")


def printed_marginal(run: Experiment) -> Iterator[str]:
    """WilsonMarginal as printed."""
    words, most = run.sizes.some_words, run.sizes.patience
    batch = random_graphs(words, run.sizes.few_graphs, "normal", 3)
    printed = [analysis.with_root_shift(batch, shift) for shift in run.sizes.shifts]
    yield f"\n## [Unb] Alg. 3: steps of WilsonMarginal for a tree, random weights, {words} words\n"
    yield (
        "The constant is added to the scores of all root arcs, which changes no tree's probability. As printed, walks "
        f"end at node 0; here they end at the root word. As printed they are given up after {most:,} n^2 steps.\n"
    )
    yield line("constant, nats", *(f"{shift:g}" for shift in run.sizes.shifts))
    yield "|:--|" + "--:|" * len(printed)
    yield line("as printed", *(digits(analysis.steps_as_printed(each, TREES_A_GRAPH, most).mean()) for each in printed))
    yield line(
        "here", *(digits(samplers.draw(samplers.MARGINAL, each, TREES_A_GRAPH).steps.mean()) for each in printed)
    )


def unb_tries(run: Experiment) -> Iterator[str]:
    """[Unb] section 4.3.1."""
    yield "\n## [Unb] section 4.3.1: how many trees with any number of roots are drawn until one has a single root\n"
    yield (
        "Expected tries: medians over graphs, the mean, and medians once the constant that is best by tries times "
        "steps is added to the scores of all root arcs. If all arcs weigh the same, they are (1 + 1/n)^(n-1), below "
        "e.\n"
    )
    yield line("weights", "words", "tries", "mean", "tries, best constant", "steps a try", "constant, nats")
    yield rule(7)
    for n in run.sizes.words[: run.sizes.rows_of_tries]:
        yield line("equal weights", n, *[digits((1 + 1 / n) ** (n - 1))] * 2, "", "", "")
    words = run.sizes.words[: run.sizes.rows_of_tries]
    uniform = RANDOM["uniform"], run.random(words, "uniform", run.sizes.some_graphs)
    for name, batches in (uniform, *weighings(run, words, run.sizes.some_graphs)):
        for n, batch in batches.items():
            shifts = analysis.best_shifts(batch)
            shifted = analysis.with_root_shift(batch, shifts)
            plain, best = (np.exp(analysis.log_tries(each)) for each in (batch, shifted))
            steps = np.exp(analysis.log_steps(shifted))
            medians = [digits(float(np.median(values))) for values in (best, steps, shifts)]
            yield line(name, n, digits(float(np.median(plain))), digits(plain.mean()), *medians)
    yield line("Stanza's English parser", "news, in [Unb]", "", PAPER_TRIES, "", "", "")


def unb_bias(run: Experiment) -> Iterator[str]:
    """What [Unb] Appendix E proves, in figures."""
    yield "\n## [Unb] Appendix E: the bias of WilsonRC\n"
    yield "Total variation distance from the law, exactly, over graphs:\n"
    yield line("weights", "words", "median", "mean", "greatest")
    yield rule(5)
    uniform = RANDOM["uniform"], run.random(run.sizes.words, "uniform")
    for name, batches in (uniform, *weighings(run, run.sizes.words)):
        for words, batch in batches.items():
            found = analysis.bias(batch)
            yield line(name, words, *map(digits, (np.median(found), found.mean(), found.max())))
    yield from unb_estimates(run)


def unb_estimates(run: Experiment) -> Iterator[str]:
    """Arc marginals estimated from samples."""
    batch = random_graphs(run.sizes.few_words, run.sizes.few_graphs, "uniform", 0)
    _, true = elimination.log_partition_and_marginals(batch.scores, batch.lengths, single_root=True)
    limit = digits(error(analysis.wilson_rc_marginals(batch), true))
    yield (
        f"\nMean absolute error of all arcs' probabilities as estimated from samples, {run.sizes.few_words} words, "
        f"weights uniform in (0, 1). WilsonRC's tends to {limit}.\n"
    )
    yield line("samples", *WITH_REPLACEMENT)
    yield rule(1 + len(WITH_REPLACEMENT))
    for count in run.sizes.draws:
        drawn = {name: samplers.draw(name, batch, count, seed=1).heads for name in WITH_REPLACEMENT}
        found = {name: error(analysis.frequencies(heads), true) for name, heads in drawn.items()}
        yield line(count, *map(digits, found.values()))


def error(found: analysis.Array, true: analysis.Array) -> float:
    """The mean absolute difference of probabilities of arcs; column 0 has none."""
    return float(np.abs(found - true)[:, :, 1:].mean())


def unb_without_replacement(run: Experiment) -> Iterator[str]:
    """[Unb] Fig. 3."""
    batch = random_graphs(run.sizes.list_words, run.sizes.few_graphs, "uniform", 2)
    title = f"[Unb] Fig. 3: without replacement, {run.sizes.list_words} words, {RANDOM['uniform']}"
    return over_count(run, batch, title, run.treesample)


def unb_trie_and_beam(run: Experiment) -> Iterator[str]:
    """[Unb] Fig. 5."""
    for words in run.sizes.beam_words:
        batch = random_graphs(words, run.sizes.slow_graphs, "uniform", words)
        yield f"\n## [Unb] Fig. 5: without replacement, {words} words, {RANDOM['uniform']}\n"
        yield f"K trees of each of {len(batch.lengths)} graphs, µs a tree:\n"
        yield line("K", *samplers.LIBRARY_DISTINCT)
        yield rule(1 + len(samplers.LIBRARY_DISTINCT))
        for k in run.sizes.beam_distinct:
            entries = samplers.library_entries(samplers.LIBRARY_DISTINCT, batch, k)
            yield line(k, *map(digits, times(entries, [k * len(batch.lengths)] * len(entries), run).values()))


def unb_devices(run: Experiment) -> Iterator[str]:
    """[Unb] Fig. 6, of which the last panel is Fig. 4."""
    for k in run.sizes.device_distinct:
        yield f"\n## [Unb] Fig. 6: stochastic beam search by device, {k} trees, {RANDOM['uniform']}\n"
        yield f"{run.sizes.slow_graphs} graphs at once, µs a tree by the wall's clock; {samplers.devices()}.\n"
        names = samplers.BY_DEVICE
        yield line("words", *names, "CPU's over CUDA's")
        yield rule(2 + len(names))
        for words in run.sizes.device_words:
            batch = random_graphs(words, run.sizes.slow_graphs, "uniform", words)
            entries = samplers.device_entries(batch, k)
            found = times(entries, [k * len(batch.lengths)] * len(entries), run)
            cells = [digits(found[name]) if name in found else "" for name in names]
            ratio = digits(found[names[0]] / found[names[1]]) if len(found) > 1 else ""
            yield line(words, *cells, ratio)


def without_replacement_by_length(run: Experiment) -> Iterator[str]:
    """What no paper has: samplers without replacement over the length."""
    for name, batches in weighings(run, run.sizes.distinct_words, run.sizes.few_graphs):
        title = f"Over the length: {run.sizes.some_trees} trees without replacement, {name}"
        yield f"\n## {title}\n\nUp to {run.sizes.few_graphs} graphs a row, µs a tree:\n"
        yield line("words", *samplers.DISTINCT, WRONG_LISTS)
        yield rule(2 + len(samplers.DISTINCT))
        for words, whole in batches.items():
            few = Scored(whole.scores[: run.sizes.few_graphs], whole.lengths[: run.sizes.few_graphs])
            cells, wrong = distinct_cells(run, few, run.sizes.some_trees)
            yield line(words, *cells, wrong)
