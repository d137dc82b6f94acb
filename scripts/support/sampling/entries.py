"""The samplers that ``reproduce_sampling.py`` times: the library's, those of the literature, and its authors' code."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scripts.support.graphs.scored import Scored
from scripts.support.peers.clones import import_package
from scripts.support.reports.markdown import cpu_name
from scripts.support.reports.timing import Entry
from scripts.support.sampling import methods, published

from treeparse import NonProjectiveCRF
from treeparse.kernels.best.arborescence import are_trees
from treeparse.trees.families import DistinctMethod

IntArray = NDArray[np.int64]
WILSON_RC, LIST = "WilsonRC, biased", "list"
REJECT, MARGINAL, COLBOURN = "WilsonReject", "WilsonMarginal", "Colbourn"
SAMPLERS = {
    REJECT: methods.WILSON_REJECT,
    MARGINAL: methods.WILSON_MARGINAL,
    COLBOURN: methods.COLBOURN,
    "expansion": methods.EXPANSION,
    "treeparse's choice": methods.AUTO,
}
MOST_STEPS = 10_000  # steps for one tree of WilsonRC; then it is given up
LIBRARY_DISTINCT: tuple[DistinctMethod, ...] = ("repeat", "trie", "beam")
DISTINCT = (LIST, *LIBRARY_DISTINCT)
BY_DEVICE = ("beam, CPU", "beam, CUDA")
MOST_OF_BEAM = 10_000_000  # trees times words^3
PYTHON = ", authors' Python"
AUTHORS = {
    WILSON_RC: ("treesample.wilson", "WilsonRCBiasedSample"),
    REJECT: ("treesample.wilson", "WilsonRCRejectSample"),
    MARGINAL: ("treesample.wilson", "WilsonRCMarginalSample"),
    COLBOURN: ("treesample.colbourn", "ColbournSample"),
}


@dataclass
class Drawn:
    """What a sampler draws from a batch."""

    heads: IntArray  # (B, count, n+1), -1 where there is no tree
    steps: IntArray  # (B, count), of walks


def draw(name: str, batch: Scored, count: int, seed: int = 0) -> Drawn:
    """Trees with replacement."""
    seeds = (np.arange(len(batch.lengths)) + seed * 2**32).astype(np.uint64)
    arguments = batch.scores, batch.lengths, seeds, count
    if name == WILSON_RC:
        return Drawn(*published.wilson_rc(*arguments, limit=MOST_STEPS))
    return Drawn(*methods.sample_trees(*arguments, single_root=True, method=SAMPLERS[name]))


def entries(batch: Scored, count: int) -> list[Entry]:
    """All samplers with replacement."""
    return [Entry(partial(draw, name, batch, count), name) for name in (WILSON_RC, *SAMPLERS)]


def draw_distinct(name: DistinctMethod | None, batch: Scored, count: int) -> IntArray:
    """Trees without replacement, ``(B, count, n+1)``; by the list if no name is given."""
    if name is None:
        return published.draw_list(batch.scores, batch.lengths, np.arange(len(batch.lengths)).astype(np.uint64), count)
    trees = NonProjectiveCRF(torch.from_numpy(batch.scores), torch.from_numpy(batch.lengths), validate_args=False)
    generator = torch.Generator().manual_seed(0)
    return trees.sample_without_replacement(count, generator=generator, method=name).heads.transpose(0, 1).numpy()


def distinct_entries(batch: Scored, count: int) -> list[Entry]:
    """All samplers without replacement, but for stochastic beam search where it is too slow."""
    is_slow = count * int(batch.lengths.max()) ** 3 > MOST_OF_BEAM
    found = library_entries([name for name in LIBRARY_DISTINCT if name != "beam" or not is_slow], batch, count)
    return [Entry(partial(draw_distinct, None, batch, count), LIST), *found]


def library_entries(names: Sequence[DistinctMethod], batch: Scored, count: int) -> list[Entry]:
    """Of the library's samplers without replacement those of these names."""
    return [Entry(partial(draw_distinct, name, batch, count), name) for name in names]


def device_entries(batch: Scored, count: int) -> list[Entry]:
    """Stochastic beam search on the CPU and, if there is one, on a CUDA device, by the wall's clock."""
    names = BY_DEVICE if torch.cuda.is_available() else BY_DEVICE[:1]
    return [
        Entry(partial(_search, name.split(", ")[1].lower(), batch, count), name, clock=perf_counter) for name in names
    ]


def _search(device: str, batch: Scored, count: int) -> IntArray:
    """Trees by stochastic beam search on a device; the copy of its answer ends the wait for it."""
    scores, lengths = (torch.from_numpy(part).to(device) for part in (batch.scores, batch.lengths))
    trees = NonProjectiveCRF(scores, lengths, validate_args=False)
    generator = torch.Generator().manual_seed(0)
    return (
        trees.sample_without_replacement(count, generator=generator, method="beam").heads.transpose(0, 1).cpu().numpy()
    )


def devices() -> str:
    """What the two columns of ``BY_DEVICE`` were measured on."""
    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else "there was none"
    return f"CPU: {torch.get_num_threads()} thread of {cpu_name()}; CUDA: {gpu}"


def wrong_lists(heads: IntArray, batch: Scored) -> int:
    """How many lists ``(B, count, n+1)`` lack trees, repeat them, or have what is none; all arcs are finite."""
    wrong = 0
    for rows, n in zip(heads, batch.lengths.tolist(), strict=True):
        own = rows[rows[:, 1] >= 0][:, : n + 1]
        expected = min(len(rows), n ** (n - 1))
        different = len(np.unique(own, axis=0)) == len(own) == expected
        wrong += not (different and are_trees(own, np.full(len(own), n), single_root=True).all())
    return wrong


def authors_entries(batch: Scored, count: int, directory: Path) -> list[Entry]:
    """Samplers with replacement in Python by [Samp]'s authors, graph by graph."""
    return [
        Entry(partial(_take, _class(directory, *place), _weights(batch), count), name + PYTHON)
        for name, place in AUTHORS.items()
    ]


def authors_list(batch: Scored, count: int, directory: Path) -> Entry:
    """The list version without replacement, by its authors."""
    return Entry(
        partial(_take, _class(directory, "treesample.swor", "TreeSwor"), _weights(batch), count), LIST + PYTHON
    )


def _class(directory: Path, module: str, name: str) -> Callable[..., Any]:
    return getattr(import_package(directory, module), name)


def _weights(batch: Scored) -> list[NDArray[np.float64]]:
    is_loop = np.eye(batch.scores.shape[1], dtype=bool)
    return list(np.where(is_loop, 0.0, np.exp(batch.scores)))


def _take(sampler: Callable[..., Any], graphs: Sequence[NDArray[np.float64]], count: int) -> list[list[Any]]:
    return [list(itertools.islice(sampler(graph).sample(), count)) for graph in graphs]
