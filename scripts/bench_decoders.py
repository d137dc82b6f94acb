#!/usr/bin/env python
"""Time the best-tree decoder against its peers on the same batches, in one run on one thread.

    taskset -c 0 python scripts/bench_decoders.py --supar DIR --stanza DIR --output scripts/results/bench_decoders.md

Random scores are N(0, 1). Peaked ones are like a trained parser's: a gold tree 10 to 30 above such noise and, in every
fifth sentence, two words that prefer each other. ufal.chu_liu_edmonds and networkx come from pip; SuPar's and Stanza's
decoders come from a clone of their repository. Decoders without a rule for the root get scores whose root arcs are
lowered by a constant larger than any difference between trees ([Root] Stanojević and Cohen 2021).
"""

import argparse
import importlib
import importlib.util
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from timing import Timed, import_supar, report, take_turns

from treeparse.kernels.arborescence import best_trees

Array = NDArray[np.float64]
Decode = Callable[[], Iterable]
LENGTHS = (10, 20, 40, 80, 160)
BATCH = 32
ROUND = 0.02  # CPU seconds a fast decoder gets a round, a slow one gets one call
MIN_ROUNDS, MAX_ROUNDS, BUDGET = 3, 25, 12.0  # rounds a batch, and CPU seconds after which no further one begins
TOLERANCE = 1e-6  # of a tree's score


@dataclass(frozen=True)
class Decoder:
    """``prepare`` turns scores (B, n+1, n+1) into what the peer eats, untimed, and returns the call to be timed."""

    name: str
    prepare: Callable[[Array], Decode]
    single_root: bool = True
    max_words: int = max(LENGTHS)


@dataclass
class Entry(Timed):
    """One decoder on one batch, and how many of its trees score below ours."""

    decoder: Decoder
    worse: int = 0


def random_scores(stream: np.random.Generator, n: int) -> Array:
    """A batch of N(0, 1) scores."""
    return stream.normal(size=(BATCH, n + 1, n + 1))


def peaked_scores(stream: np.random.Generator, n: int) -> Array:
    """A batch as a trained parser scores it, with a cycle trap in every fifth sentence."""
    scores = random_scores(stream, n)
    for item in range(BATCH):
        order = stream.permutation(np.arange(1, n + 1))
        for place, word in enumerate(order):
            head = 0 if place == 0 else order[stream.integers(place)]
            scores[item, head, word] += stream.uniform(10, 30)
        if item % 5 == 0:
            scores[item, order[-1], order[-2]] += 40
            scores[item, order[-2], order[-1]] += 40
    return scores


def lower_root_arcs(scores: Array) -> Array:
    """Scores under which every best tree has one root arc, if the graph is complete."""
    lowered = scores.copy()
    lowered[:, 0] -= (np.ptp(scores) + 1) * scores.shape[-1]
    return lowered


def dependent_major(scores: Array) -> Array:
    """``scores[dependent, head]`` without self-loops or arcs into the root, the layout of most peers."""
    arcs = np.ascontiguousarray(scores.transpose(0, 2, 1))
    arcs[:, np.arange(arcs.shape[1]), np.arange(arcs.shape[1])] = -1e9
    arcs[:, 0] = -1e9
    return arcs


def ours(single_root: bool) -> Decoder:
    """The kernel, one call a batch."""

    def prepare(scores: Array) -> Decode:
        lengths = np.full(len(scores), scores.shape[-1] - 1)
        return lambda: best_trees(scores, lengths, single_root=single_root)

    return Decoder("treeparse" if single_root else "treeparse, any roots", prepare, single_root)


def ufal(single_root: bool) -> Decoder | None:
    """The C++ decoder from pip, which leaves the number of roots open."""
    if importlib.util.find_spec("ufal.chu_liu_edmonds") is None:
        return None
    chu_liu_edmonds = importlib.import_module("ufal.chu_liu_edmonds").chu_liu_edmonds

    def prepare(scores: Array) -> Decode:
        arcs = dependent_major(lower_root_arcs(scores) if single_root else scores)
        arcs[arcs == -1e9] = np.nan
        return lambda: [chu_liu_edmonds(item)[0] for item in arcs]

    return Decoder("ufal, root arcs lowered" if single_root else "ufal, any roots", prepare, single_root)


def networkx() -> Decoder | None:
    """Networkx's Edmonds, its graphs built beforehand."""
    if importlib.util.find_spec("networkx") is None:
        return None
    nx = importlib.import_module("networkx")

    def graph(scores: Array) -> object:
        arcs = [(i, j, float(s)) for (i, j), s in np.ndenumerate(scores) if j and i != j]
        result = nx.DiGraph()
        result.add_weighted_edges_from(arcs)
        return result

    def heads(arborescence: object, size: int) -> list[int]:
        found = {dependent: head for head, dependent in arborescence.edges}  # pyright: ignore[reportAttributeAccessIssue]
        return [-1] + [found[word] for word in range(1, size)]

    def prepare(scores: Array) -> Decode:
        graphs = [graph(item) for item in lower_root_arcs(scores)]
        size = scores.shape[-1]
        return lambda: [heads(nx.maximum_spanning_arborescence(item), size) for item in graphs]

    return Decoder("networkx, root arcs lowered", prepare, max_words=40)


def supar(directory: Path) -> Decoder:
    """``supar.structs.fn.mst`` with its single-root rule, without the rest of the package."""

    def pad(trees: list[torch.Tensor], total_length: int) -> torch.Tensor:
        return torch.stack([torch.nn.functional.pad(tree, (0, total_length - len(tree))) for tree in trees])

    mst = import_supar(directory, "supar.structs.fn", {"pad": pad}.get).mst

    def prepare(scores: Array) -> Decode:
        arcs = torch.from_numpy(dependent_major(scores))
        mask = torch.ones(arcs.shape[:2], dtype=torch.bool)
        mask[:, 0] = False
        return lambda: mst(arcs.clone(), mask).numpy()  # a clone, since it changes its input

    return Decoder("SuPar mst", prepare)


def stanza(directory: Path) -> Decoder:
    """``chuliu_edmonds_one_root``; its rule for the root takes negative scores for granted, so they are shifted."""
    path = directory / "stanza" / "models" / "common" / "chuliu_edmonds.py"
    spec = importlib.util.spec_from_file_location("stanza_chuliu_edmonds", path)
    if spec is None or spec.loader is None or not path.exists():
        raise SystemExit(f"bench_decoders: there is no {path}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    def prepare(scores: Array) -> Decode:
        arcs = np.ascontiguousarray((scores - np.max(scores)).transpose(0, 2, 1))
        return lambda: [module.chuliu_edmonds_one_root(item) for item in arcs]

    return Decoder("Stanza chuliu_edmonds_one_root", prepare)


def enter(decoder: Decoder, scores: Array) -> Entry:
    """Prepare a decoder for a batch and compare its trees with ours."""
    decode = decoder.prepare(scores)
    heads = np.array(list(decode()))
    totals, best = total_scores(scores, heads), best_scores(scores, decoder.single_root)
    if decoder.single_root and ((heads[:, 1:] == 0).sum(1) != 1).any():
        raise SystemExit(f"bench_decoders: {decoder.name} returned a tree of several roots")
    if (totals > best + TOLERANCE).any():
        raise SystemExit(f"bench_decoders: {decoder.name} found a better tree than treeparse")
    entry = Entry(decode, decoder, int((totals < best - TOLERANCE).sum()))
    entry.fill_round(ROUND, 200)
    return entry


def race(decoders: list[Decoder], scores: Array) -> list[Entry]:
    """Time all decoders on one batch."""
    entries = [enter(decoder, scores) for decoder in decoders]
    take_turns(entries, fewest=MIN_ROUNDS, most=MAX_ROUNDS, budget=BUDGET)
    return entries


def total_scores(scores: Array, heads: NDArray[np.int64]) -> Array:
    """The scores of head lists (B, n+1), as (B,)."""
    return np.take_along_axis(scores[:, :, 1:], heads[:, None, 1:], axis=1).sum((1, 2))


def best_scores(scores: Array, single_root: bool) -> Array:
    """The scores of our trees (B,)."""
    lengths = np.full(len(scores), scores.shape[-1] - 1)
    return total_scores(scores, best_trees(scores, lengths, single_root=single_root))


def table(title: str, decoders: list[Decoder], lengths: Iterable[int], make: Callable[[int], Array]) -> Iterable[str]:
    """The lines of one markdown table, as they are measured."""
    yield f"\n## {title}\n"
    yield "| n | decoder | ms a batch of 32 | times treeparse's | quartiles | worse trees |"
    yield "|--:|:--|--:|--:|--:|--:|"
    for n in lengths:
        entries = race([decoder for decoder in decoders if n <= decoder.max_words], make(n))
        for entry in entries:
            ours = next(other for other in entries if other.decoder.single_root == entry.decoder.single_root)
            low, ratio, high = entry.over(ours)
            yield (
                f"| {n} | {entry.decoder.name} | {1e3 * entry.median:.3f} | {ratio:.1f} | "
                f"{low:.1f} - {high:.1f} | {entry.worse} of {BATCH} |"
            )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--supar", type=Path, metavar="DIR", help="a clone of SuPar")
    parser.add_argument("--stanza", type=Path, metavar="DIR", help="a clone of Stanza")
    parser.add_argument("--lengths", type=int, nargs="+", default=LENGTHS, metavar="N", help="words a sentence")
    parser.add_argument("--output", type=Path, metavar="FILE", help="also write the tables here, as markdown")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    decoders = [ours(True), ours(False), ufal(True), ufal(False), networkx()]
    decoders += [supar(arguments.supar)] if arguments.supar else []
    decoders += [stanza(arguments.stanza)] if arguments.stanza else []
    present = [decoder for decoder in decoders if decoder is not None]
    report(all_lines(present, arguments.lengths), arguments.output)


def all_lines(decoders: list[Decoder], lengths: Iterable[int]) -> Iterator[str]:
    """The whole report, as it is measured."""
    yield "# Best tree: time a batch of 32 sentences, one thread"
    yield ""
    yield (
        "CPU time, medians over rounds in which the decoders take turns. Ratios are to treeparse under the same rule "
        "for the root, in the same round. A tree is worse if its score lies below ours by more than 1e-6."
    )
    for title, make in (("Random scores", random_scores), ("Peaked scores", peaked_scores)):
        stream = np.random.default_rng(1)
        yield from table(title, decoders, lengths, lambda n, make=make, stream=stream: make(stream, n))


if __name__ == "__main__":
    main()
