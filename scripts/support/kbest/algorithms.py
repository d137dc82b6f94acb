"""The K-best algorithms that ``reproduce_kbest.py`` times: the library's, those of ``camerini``, the paper's own."""

import itertools
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scripts.support.graphs.scored import Scored
from scripts.support.kbest import camerini
from scripts.support.peers.clones import import_package
from scripts.support.reports.timing import Entry

from treeparse.kernels.lists.nonprojective_lists import NonprojectiveKBest

ROUNDING = 1e-6  # of a tree's score, relative
TREEPARSE = "treeparse"
SIMPLIFIED, CAMERINI = "[KBest], compiled", "Camerini, compiled"
SIMPLIFIED_PYTHON, CAMERINI_PYTHON = "[KBest], authors", "Camerini, authors"

Lists = list[NDArray[np.float64]]  # of every sentence the scores of its K best trees, best first


def compiled_entries(batches: Sequence[Scored], k: int) -> list[Entry]:
    """The library's kernel, and both algorithms of the literature, compiled; any number of roots."""

    def literature(original: bool) -> Lists:
        found = (camerini.k_best(batch.scores, batch.lengths, k, original=original)[1] for batch in batches)
        return without_gaps(itertools.chain.from_iterable(found))

    return [
        Entry(
            lambda: without_gaps(row for lists in treeparse_lists(batches, k) for row in lists.scores[:, :k]), TREEPARSE
        ),
        Entry(lambda: literature(False), SIMPLIFIED),
        Entry(lambda: literature(True), CAMERINI),
    ]


def treeparse_lists(batches: Sequence[Scored], k: int) -> Iterator[NonprojectiveKBest]:
    """The kernel's lists, batch by batch."""
    for batch in batches:
        lists = NonprojectiveKBest(batch.scores, batch.lengths, single_root=False)
        lists.extend(k)
        yield lists


def without_gaps(rows: Iterator[NDArray[np.float64]]) -> Lists:
    """The scores up to the last tree of every sentence."""
    return [row[row > -np.inf] for row in rows]


def authors_entries(batches: Sequence[Scored], k: int, directory: Path) -> list[Entry]:
    """Both algorithms in the paper's own code, sentence by sentence."""
    solvers = {
        SIMPLIFIED_PYTHON: import_package(directory, "spanningtrees.kbest").KBest,
        CAMERINI_PYTHON: import_package(directory, "spanningtrees.kbest_camerini").KBestCamerini,
    }
    items = [batch.scores[item, : n + 1, : n + 1] for batch in batches for item, n in enumerate(batch.lengths.tolist())]

    def lists(solver: Any) -> Lists:
        with warnings.catch_warnings(action="ignore"):  # of NaN, which stands for what was taken out
            graphs = [solver(item) for item in items]
            return [np.array([graph.weight(tree) for tree in itertools.islice(graph.kbest(), k)]) for graph in graphs]

    return [Entry(lambda solver=solver: lists(solver), name) for name, solver in solvers.items()]


def sample_of(batches: Sequence[Scored], count: int) -> list[Scored]:
    """About so many sentences, taken evenly over the lengths, in batches of one."""
    items = [(batch, item) for batch in batches for item in range(len(batch.lengths))]
    chosen = items[:: max(1, len(items) // count)]
    return [Scored(batch.scores[item : item + 1], batch.lengths[item : item + 1]) for batch, item in chosen]


def different(answer: Lists, expected: Lists) -> int:
    """How many lists differ in their scores at any rank, rounding aside."""
    return sum(
        len(one) != len(other) or not np.allclose(one, other, rtol=ROUNDING, atol=ROUNDING)
        for one, other in zip(answer, expected, strict=True)
    )
