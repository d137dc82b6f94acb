"""The graph of [Unb] Fig. 1, on which WilsonRC is biased, and how far draws from it are from their law.

The figure has three words A, B and C and six arcs of equal weight, those of the root to A and to C among them; there
are three trees with one root, two of them below A. Which arcs join the words is in the picture alone, so all graphs of
which this is true are taken.
"""

import itertools
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scripts.support.graphs.scored import Array, Scored
from scripts.support.sampling.entries import SAMPLERS, WILSON_RC, draw
from scripts.support.sampling.experiment import Experiment, line
from scripts.support.sampling.laws import chi_square

WEIGHT, ARCS = 0.5, 6
A, B, C = 1, 2, 3
TREES_BELOW = {A: 2, C: 1}


def graphs_of_three_trees() -> list[Array]:
    """Scores (4, 4) of all such graphs, -inf where there is no arc."""
    between = [(head, word) for head in (A, B, C) for word in (A, B, C) if head != word]
    root = [(0, word) for word in TREES_BELOW]
    graphs = []
    for arcs in itertools.combinations(between, ARCS - len(root)):
        scores = np.full((4, 4), -np.inf)
        heads, words = zip(*root, *arcs, strict=True)
        scores[heads, words] = np.log(WEIGHT)
        found = (trees_of(scores) == 0).argmax(1) + 1
        if sorted(found) == sorted(word for word, count in TREES_BELOW.items() for _ in range(count)):
            graphs.append(scores)
    return graphs


def trees_of(scores: Array) -> NDArray[np.int64]:
    """The head lists (trees, 3) of all trees with a single root that have no forbidden arc."""
    words = np.arange(1, 4)
    lists = (heads for heads in itertools.product(range(4), repeat=3) if heads.count(0) == 1 and is_tree(heads))
    return np.array([heads for heads in lists if np.isfinite(scores[list(heads), words]).all()]).reshape(-1, 3)


def is_tree(heads: tuple[int, ...]) -> bool:
    """Whether every word's heads lead to the root."""
    above = np.array([0, *heads])
    return not above[above[above]].any()


def unb_example(run: Experiment) -> Iterator[str]:
    """[Unb] Fig. 1: what is drawn below A, which the law says of two draws in three, and the test of the law."""
    graphs = graphs_of_three_trees()
    batch = Scored(np.array(graphs), np.full(len(graphs), 3))
    count = run.sizes.draws[-1]
    yield f"\n## [Unb] Fig. 1: three trees of equal weight, two of them below word A, {count:,} draws\n"
    yield (
        f"{len(graphs)} graphs fit what the paper says of its figure; the first number is the least of any graph, the "
        "other one the greatest. WilsonRC draws the root arc to A, as that to C, in one half of the draws.\n"
    )
    yield line("sampler", "below A, %", "law, %", "p of a chi-square test of the three trees")
    yield "|:--|--:|--:|--:|"
    law = 100 * TREES_BELOW[A] / sum(TREES_BELOW.values())
    for name in (WILSON_RC, *SAMPLERS):
        heads = draw(name, batch, count).heads
        shares = 100 * (heads[:, :, A] == 0).mean(1)
        tests = [p_of(own[:, 1:], trees_of(scores)) for own, scores in zip(heads, graphs, strict=True)]
        share = f"{shares.min():.2f} - {shares.max():.2f}"
        yield line(name, share, f"{law:.2f}", f"{min(tests):.2g} - {max(tests):.2g}")


def p_of(drawn: NDArray[np.int64], trees: NDArray[np.int64]) -> float:
    """The p-value of draws (count, 3) if all of the trees are as probable; what is no tree is an error."""
    is_same = (drawn[:, None] == trees).all(-1)
    if not is_same.any(1).all():
        raise ValueError("what was drawn is no tree")
    return chi_square(is_same.sum(0), np.full(len(trees), 1 / len(trees)))
