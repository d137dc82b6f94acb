"""What ``reproduce_sampling.py`` measures and how much of it, and how tables are filled as it does."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from scripts.support.graphs.scored import Scored, Weights, random_graphs
from scripts.support.reports.timing import Entry, race


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    nodes: Sequence[int] = (5, 10, 15, 20, 25, 30, 40, 50, 60, 80, 100)  # of [Samp] Fig. 6, the root included
    slow_nodes: Sequence[int] = (10, 20, 40, 80)  # at which its authors' Python is timed
    words: Sequence[int] = (5, 10, 20, 30, 40, 60, 80, 120, 160)
    bounds: Sequence[int] = (5, 10, 15, 20, 25, 30, 40, 50, 80)  # of a treebank's lengths
    distinct: Sequence[int] = (1, 10, 30, 100, 300, 1000, 3000)  # trees without replacement
    slow_distinct: Sequence[int] = (10, 100, 300)
    distinct_words: Sequence[int] = (5, 10, 20, 30, 40, 60, 80)
    beam_words: Sequence[int] = (30, 45, 60)  # of [Unb] Fig. 5
    beam_distinct: Sequence[int] = (1, 10, 30, 100, 300)
    device_words: Sequence[int] = (30, 45, 60, 75, 90, 100)  # of [Unb] Fig. 6
    device_distinct: Sequence[int] = (10, 100)
    simulated_words: Sequence[int] = (5, 10, 20, 40)
    draws: Sequence[int] = (10, 100, 1000, 10_000, 100_000)
    shifts: Sequence[float] = (-8, -6, -4, -2, 0, 2, 4)
    graphs: int = 100
    some_graphs: int = 30
    few_graphs: int = 10
    slow_graphs: int = 3
    sentences: int = 100  # of a range of lengths
    few_words: int = 9  # of [Samp] Fig. 6 without replacement
    list_words: int = 14  # of [Unb] Fig. 3
    some_words: int = 20
    rows_of_tries: int = 7
    some_trees: int = 100
    simulated_graphs: int = 10_000  # of [Unb] Fig. 7
    patience: int = 1000  # steps by n^2


TINY = Sizes(
    nodes=(5,),
    slow_nodes=(5,),
    words=(4, 5),
    bounds=(5, 10),
    distinct=(1, 10),
    slow_distinct=(10,),
    distinct_words=(4,),
    beam_words=(4, 5),
    beam_distinct=(1, 10),
    device_words=(4,),
    device_distinct=(3,),
    simulated_words=(3,),
    draws=(10, 100),
    shifts=(-2, 0),
    graphs=4,
    some_graphs=3,
    few_graphs=2,
    slow_graphs=1,
    sentences=2,
    few_words=4,
    list_words=4,
    some_words=5,
    some_trees=10,
    simulated_graphs=50,
    patience=10,
)


@dataclass
class Experiment:
    """What the tables need; the sentences, as a parser scores them, are in batches by ranges of length."""

    sizes: Sizes
    rounds: int
    treesample: Path | None
    sentences: Mapping[str, Scored]

    def random(self, words: Sequence[int], weights: Weights = "normal", graphs: int | None = None) -> dict[str, Scored]:
        """Random graphs by their number of words."""
        return {str(n): random_graphs(n, graphs or self.sizes.graphs, weights, n) for n in words}


def digits(value: float) -> str:
    """Three significant digits, or a larger number's before the point."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def line(*cells: object) -> str:
    """A row of a Markdown table."""
    return f"| {' | '.join(map(str, cells))} |"


def rule(columns: int) -> str:
    """What stands below the names of columns, which are set right."""
    return "|--:" * columns + "|"


def times(entries: Sequence[Entry], trees: Sequence[int], run: Experiment) -> dict[str, float]:
    """Microseconds a tree of every sampler, each by its number of trees."""
    measured = race(entries, run.rounds).values()
    return {entry.name: 1e6 * entry.median / max(count, 1) for entry, count in zip(measured, trees, strict=True)}
