"""Trees without replacement in the simplest way: draw with replacement and drop repeats, which is the same law.

Once the trees drawn have more than half of all mass, most further draws would be repeats: from there on trees come from
the trie. The trees drawn before stay, since either way each tree is drawn from those that all before it have left. The
same is done after so many draws that repeats dominate for certain, whatever rounding makes of the mass.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from treeparse.kernels.arrays import FloatArray, IntArray
from treeparse.kernels.samples import without_replacement
from treeparse.kernels.samples.trie import HASH_FACTOR
from treeparse.trees.families.arrays import floats, integers
from treeparse.trees.families.family import LabelDraws

LARGEST_MASS = 0.5  # of the trees drawn: what is left of all mass is a difference that loses one bit
MAX_DRAWS = 64  # times the trees asked for: where half of all mass is left, fewer draws bring them, but for 1 in 2^60


class DrawnArrays(NamedTuple):
    """Different trees of every item in the order in which they were drawn; past the last -1, -inf and -inf."""

    rows: IntArray  # (B, K, n+1) heads or, with labels, (B, K, 2n+2) heads and labels
    log_probs: FloatArray  # (B, K)
    keys: FloatArray  # (B, K) log probabilities plus Gumbel noise, descending


class Sampler(Protocol):
    """Draws rows ``(B, count, W)`` with replacement, -1 where an item has no tree; the first of more are the same."""

    def __call__(self, scores: FloatArray, lengths: IntArray, seeds: np.ndarray, count: int) -> IntArray: ...


class TrieSampler(Protocol):
    """``treeparse.kernels.samples.without_replacement.sample_distinct_trees`` of a family of trees."""

    def __call__(
        self,
        scores: FloatArray,
        lengths: IntArray,
        seeds: np.ndarray,
        count: int,
        *,
        known: IntArray | None = None,
        label_logs: FloatArray | None = None,
    ) -> tuple[IntArray, FloatArray, FloatArray]: ...


@dataclass(frozen=True)
class DrawKernels:
    """The kernels of a family of trees.

    Attributes:
        sample: draws with replacement.
        log_partition: log partitions ``(B,)`` of scores and lengths.
        trie: draws without replacement.
    """

    sample: Sampler
    log_partition: Callable[[FloatArray, IntArray], FloatArray]
    trie: TrieSampler

    @classmethod
    def of(cls, *kernels: Callable[..., Any], single_root: bool) -> "DrawKernels":
        """The three kernels for such trees, in as many threads as torch has."""
        options = {"single_root": single_root, "threads": torch.get_num_threads()}
        return cls(*(partial(kernel, **options) for kernel in kernels))


@dataclass(frozen=True)
class Remaining:
    """Some items of a batch, by the arguments of ``sample_distinct`` and their log partition ``(B,)``."""

    scores: FloatArray
    lengths: IntArray
    seeds: np.ndarray
    log_z: FloatArray
    labels: LabelDraws | None

    def select(self, places: IntArray) -> "Remaining":
        """The items at these places."""
        labels = None if self.labels is None else self.labels.of_items(torch.from_numpy(places).to(self.labels.device))
        return Remaining(self.scores[places], self.lengths[places], self.seeds[places], self.log_z[places], labels)

    def draw(self, sampler: Sampler, draws: int) -> IntArray:
        """Rows ``(B, draws, W)`` drawn with replacement."""
        heads = sampler(self.scores, self.lengths, self.seeds, draws)
        if self.labels is None:
            return heads
        drawn = self.labels.sample_of_trees(_tensor_of(heads, self.labels), torch.from_numpy(self.seeds.view(np.int64)))
        return np.concatenate([heads, integers(drawn.transpose(0, 1))], 2)

    @torch.no_grad()
    def log_probs(self, rows: IntArray) -> FloatArray:
        """Log probabilities of rows ``(B, S, W) -> (B, S)``."""
        heads, *given = np.split(rows, rows.shape[2] // self.scores.shape[1], 2)
        logs = sums_of(heads, self.scores, self.lengths) - self.log_z[:, None]
        if self.labels is not None:
            trees = [_tensor_of(part, self.labels) for part in (heads, *given)]
            logs += floats(self.labels.log_probs_of_trees(*trees)).T
        return np.minimum(logs, 0.0)

    def finish(self, draw: TrieSampler, known: IntArray) -> tuple[IntArray, FloatArray, FloatArray]:
        """As many trees without replacement as there is room for in ``known`` ``(B, K, W)``, which begin the list."""
        logs = None if self.labels is None else floats(self.labels.log_probs())
        return draw(self.scores, self.lengths, self.seeds, known.shape[1], known=known, label_logs=logs)


@np.errstate(over="ignore", invalid="ignore")  # sums of scores that were not validated may overflow
def sample_distinct(
    kernels: DrawKernels,
    scores: FloatArray,
    lengths: IntArray,
    seeds: np.ndarray,
    count: int,
    labels: LabelDraws | None = None,
) -> DrawnArrays:
    """Trees as the trie draws them, by way of a sampler with replacement of the same trees; arguments as there.

    ``labels`` are drawn for the sampler's trees; ``scores`` then hold the sums over every arc's labels.
    """
    log_z = np.nan_to_num(kernels.log_partition(scores, lengths), neginf=0.0)
    batch, rest = np.arange(len(seeds)), Remaining(scores, lengths, seeds, log_z, labels)
    draws, found = count, None
    while found is None or len(batch):
        rows = rest.draw(kernels.sample, draws)
        trees, log_probs, left, mass = _first_trees(rows, rest.log_probs(rows), count)
        if found is None:
            found = DrawnArrays(np.full_like(trees, -1), *(np.full_like(log_probs, -np.inf) for _ in range(2)))
        is_full = (left[:, -1] > -np.inf) | (rows[:, 0, 1] < 0)
        is_exhausted = ~is_full & ((mass > LARGEST_MASS) | (draws >= MAX_DRAWS * count))
        keys = without_replacement.keys_of(left[is_full], rest.seeds[is_full])
        _store(found, batch[is_full], (trees[is_full], log_probs[is_full], keys))
        if is_exhausted.any():
            exhausted = rest.select(is_exhausted.nonzero()[0])
            _store(found, batch[is_exhausted], exhausted.finish(kernels.trie, trees[is_exhausted]))
        goes_on = (~is_full & ~is_exhausted).nonzero()[0]
        batch, rest, draws = batch[goes_on], rest.select(goes_on), 2 * draws
    return found


def _tensor_of(trees: IntArray, labels: LabelDraws) -> Tensor:
    """Rows ``(B, S, n+1)`` as labels take them, ``(S, B, n+1)`` on their device."""
    return torch.from_numpy(trees).transpose(0, 1).to(labels.device)


def _first_trees(
    rows: IntArray, log_probs: FloatArray, count: int
) -> tuple[IntArray, FloatArray, FloatArray, FloatArray]:
    """The first ``count`` different rows, their log probabilities, and the log mass that each was drawn from.

    Rows end, as -1 and -inf, with the first one that leaves less than half of the mass. The mass of all different rows
    ``(B,)`` comes last; it is one sum, so that rows end nowhere without a mass that says so.
    """
    is_new = ~_is_repeat(rows) & (log_probs > -np.inf)
    probs = np.where(is_new, np.exp(log_probs), 0.0)
    sums = np.cumsum(np.pad(probs, ((0, 0), (1, 0))), 1)
    taken = sums[:, :-1]
    places = is_new.cumsum(1) - 1
    item, draw = (is_new & (places < count) & (taken <= LARGEST_MASS)).nonzero()
    place = places[item, draw]
    trees = np.full((len(rows), count, rows.shape[2]), -1)
    logs, left = (np.full((len(rows), count), -np.inf) for _ in range(2))
    trees[item, place] = rows[item, draw]
    logs[item, place] = log_probs[item, draw]
    left[item, place] = np.log1p(-taken[item, draw])
    return trees, logs, left, sums[:, -1]


def _is_repeat(rows: IntArray) -> np.ndarray:
    """Which rows ``(B, S, W)`` an item has had before, ``(B, S)`` bool, by 64-bit hashes."""
    hashes = np.zeros(rows.shape[:2], np.int64)
    for column in range(rows.shape[2]):
        hashes = (hashes ^ rows[:, :, column]) * HASH_FACTOR
    order = hashes.argsort(1, kind="stable")
    hashes = np.take_along_axis(hashes, order, 1)
    result = np.zeros(hashes.shape, bool)
    np.put_along_axis(result, order[:, 1:], hashes[:, 1:] == hashes[:, :-1], 1)
    return result


def _store(found: DrawnArrays, items: IntArray, parts: tuple[IntArray, FloatArray, FloatArray]) -> None:
    for whole, part in zip(found, parts, strict=True):
        whole[items] = part


def sums_of(heads: IntArray, scores: FloatArray, lengths: IntArray) -> FloatArray:
    """Summed scores ``(B, S)`` of heads ``(B, S, n+1)``; -inf for no tree."""
    item, word = np.arange(len(heads))[:, None, None], np.arange(scores.shape[1])
    real = (word > 0) & (word <= lengths[:, None, None])
    return np.where(heads[:, :, 1] < 0, -np.inf, np.where(real, scores[item, heads, word], 0.0).sum(2))
