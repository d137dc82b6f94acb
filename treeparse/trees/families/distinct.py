"""Trees without replacement: draw with replacement and drop repeats, which has the same law.

Once the drawn trees have more than half of all mass, most further draws would be repeats, so the trie draws the other
trees. The drawn trees stay, because both methods draw each tree from the remaining trees. The trie also takes over
after ``MAX_DRAWS`` draws, because rounding may hide that the mass has reached half.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from treeparse.kernels import FloatArray, IntArray
from treeparse.kernels.samples import without_replacement
from treeparse.kernels.samples.trie import HASH_FACTOR
from treeparse.trees.families.family import LabelDraws
from treeparse.trees.families.padded_arrays import floats, integers
from treeparse.trees.parts import PartKind, scores_of_parts

LARGEST_MASS = 0.5  # of the trees drawn: the mass left is then a difference that loses one bit
MAX_DRAWS = 64  # times ``count``: where half of all mass is left, fewer draws suffice, except for 1 case in 2^60


class DrawnArrays(NamedTuple):
    """Different trees of every item in the order in which they were drawn; past the last -1, -inf and -inf."""

    rows: IntArray  # (B, K, n+1) heads or, with labels, (B, K, 2n+2) heads and labels
    log_probs: FloatArray  # (B, K)
    keys: FloatArray  # (B, K) log probabilities plus Gumbel noise, descending


# From scores, lengths, seeds and a count: rows ``(B, count, W)`` drawn with replacement, -1 where an item has no tree;
# a larger count begins with the rows of a smaller one.
Sampler = Callable[..., IntArray]
# ``treeparse.kernels.samples.without_replacement.sample_distinct_trees`` of a family of trees.
TrieSampler = Callable[..., tuple[IntArray, FloatArray, FloatArray]]


class DrawKernels(NamedTuple):
    """The kernels of a family of trees; the first two take the scores of all kinds of part first."""

    sample: Sampler  # with replacement
    log_partition: Callable[..., FloatArray]
    trie: TrieSampler  # without replacement
    kinds: tuple[PartKind, ...] = ()  # besides arcs


@dataclass(frozen=True)
class Remaining:
    """Some items of a batch, by the arguments of ``sample_distinct`` and their log partition ``(B,)``."""

    scores: FloatArray
    others: tuple[FloatArray, ...]
    lengths: IntArray
    seeds: np.ndarray
    log_z: FloatArray
    labels: LabelDraws | None

    def select(self, items: IntArray) -> "Remaining":
        """Select some of the items."""
        labels = None if self.labels is None else self.labels.of_items(torch.from_numpy(items).to(self.labels.device))
        others = tuple(part[items] for part in self.others)
        return Remaining(self.scores[items], others, self.lengths[items], self.seeds[items], self.log_z[items], labels)

    def draw(self, sampler: Sampler, draws: int) -> IntArray:
        """Draw rows ``(B, draws, W)`` with replacement."""
        heads = sampler(self.scores, *self.others, self.lengths, self.seeds, draws)
        if self.labels is None:
            return heads
        drawn = self.labels.sample_of_trees(_tensor_of(heads, self.labels), torch.from_numpy(self.seeds.view(np.int64)))
        return np.concatenate([heads, integers(drawn.transpose(0, 1))], 2)

    @torch.no_grad()
    def log_probs(self, rows: IntArray, kinds: tuple[PartKind, ...]) -> FloatArray:
        """Return log probabilities of rows ``(B, S, W) -> (B, S)``."""
        heads, *labels = np.split(rows, rows.shape[2] // self.scores.shape[1], 2)
        logs = sums_of(heads, self.scores, self.lengths) - self.log_z[:, None]
        for kind, part in zip(kinds, self.others, strict=True):
            trees, scores, lengths = map(torch.from_numpy, (heads, part, self.lengths))
            logs += scores_of_parts(kind, scores, trees.transpose(0, 1), lengths).sum(-1).T.numpy()
        if self.labels is not None:
            trees = [_tensor_of(part, self.labels) for part in (heads, *labels)]
            logs += floats(self.labels.log_probs_of_trees(*trees)).T
        return np.minimum(logs, 0.0)


@np.errstate(over="ignore", invalid="ignore")  # sums of scores that were not validated may overflow
def sample_distinct(
    kernels: DrawKernels,
    scores: FloatArray,
    lengths: IntArray,
    seeds: np.ndarray,
    count: int,
    labels: LabelDraws | None = None,
    others: tuple[FloatArray, ...] = (),
) -> DrawnArrays:
    """Draw ``count`` different trees an item with the trie's law, mostly by a sampler with replacement.

    With ``labels``, a label is drawn for each arc of the sampler's trees; ``scores`` are then log sums over labels.
    ``others`` are the scores of further kinds of part.
    """
    log_z = np.nan_to_num(kernels.log_partition(scores, *others, lengths), neginf=0.0)
    items, remaining = np.arange(len(seeds)), Remaining(scores, others, lengths, seeds, log_z, labels)
    draws, drawn = count, None
    while drawn is None or len(items):
        rows = remaining.draw(kernels.sample, draws)
        trees, log_probs, left, mass = _first_trees(rows, remaining.log_probs(rows, kernels.kinds), count)
        if drawn is None:
            drawn = DrawnArrays(np.full_like(trees, -1), *(np.full_like(log_probs, -np.inf) for _ in range(2)))
        has_no_heads = (rows[:, 0, 1:2] < 0).all(1)  # there is no tree, or there are no words
        is_full = (left[:, -1] > -np.inf) | has_no_heads
        is_exhausted = ~is_full & ((mass > LARGEST_MASS) | (draws >= MAX_DRAWS * count))
        keys = without_replacement.keys_of(left[is_full], remaining.seeds[is_full])
        _store(drawn, items[is_full], (trees[is_full], log_probs[is_full], keys))
        if is_exhausted.any():
            exhausted = remaining.select(is_exhausted.nonzero()[0])
            logs = None if exhausted.labels is None else floats(exhausted.labels.log_probs())
            arguments = exhausted.scores, exhausted.lengths, exhausted.seeds, count
            options = {"others": exhausted.others, "known": trees[is_exhausted], "label_logs": logs}
            completed = kernels.trie(*arguments, **options)
            _store(drawn, items[is_exhausted], completed)
        unfinished = (~is_full & ~is_exhausted).nonzero()[0]
        items, remaining, draws = items[unfinished], remaining.select(unfinished), 2 * draws
    return drawn


def _tensor_of(trees: IntArray, labels: LabelDraws) -> Tensor:
    """Convert rows ``(B, S, n+1)`` to a tensor ``(S, B, n+1)`` on the labels' device."""
    return torch.from_numpy(trees).transpose(0, 1).to(labels.device)


def _first_trees(
    rows: IntArray, log_probs: FloatArray, count: int
) -> tuple[IntArray, FloatArray, FloatArray, FloatArray]:
    """Return the first ``count`` different rows, their log probabilities, and the log mass that each was drawn from.

    Rows after the first one that leaves less than half of the mass are -1 and -inf. The last result is the mass of all
    different rows ``(B,)``, from the same sum, so that the mass exceeds the limit wherever rows end.
    """
    is_new = ~_is_repeat(rows) & (log_probs > -np.inf)
    probs = np.where(is_new, np.exp(log_probs), 0.0)
    sums = np.cumsum(np.pad(probs, ((0, 0), (1, 0))), 1)
    taken = sums[:, :-1]
    ranks = is_new.cumsum(1) - 1
    item, draw = (is_new & (ranks < count) & (taken <= LARGEST_MASS)).nonzero()
    rank = ranks[item, draw]
    trees = np.full((len(rows), count, rows.shape[2]), -1)
    logs, left = (np.full((len(rows), count), -np.inf) for _ in range(2))
    trees[item, rank] = rows[item, draw]
    logs[item, rank] = log_probs[item, draw]
    left[item, rank] = np.log1p(-taken[item, draw])
    return trees, logs, left, sums[:, -1]


def _is_repeat(rows: IntArray) -> np.ndarray:
    """Tell which rows ``(B, S, W)`` repeat an item's earlier row, ``(B, S)`` bool, by 64-bit hashes."""
    hashes = np.zeros(rows.shape[:2], np.int64)
    for column in range(rows.shape[2]):
        hashes = (hashes ^ rows[:, :, column]) * HASH_FACTOR
    order = hashes.argsort(1, kind="stable")
    hashes = np.take_along_axis(hashes, order, 1)
    result = np.zeros(hashes.shape, bool)
    np.put_along_axis(result, order[:, 1:], hashes[:, 1:] == hashes[:, :-1], 1)
    return result


def _store(drawn: DrawnArrays, items: IntArray, parts: tuple[IntArray, FloatArray, FloatArray]) -> None:
    for whole, part in zip(drawn, parts, strict=True):
        whole[items] = part


def sums_of(heads: IntArray, scores: FloatArray, lengths: IntArray) -> FloatArray:
    """Return summed scores ``(B, S)`` of heads ``(B, S, n+1)``; -inf for no tree."""
    item, word = np.arange(len(heads))[:, None, None], np.arange(scores.shape[1])
    real = (word > 0) & (word <= lengths[:, None, None])
    lacks_heads = (real[..., 1:2] & (heads[..., 1:2] < 0)).any(2)
    return np.where(lacks_heads, -np.inf, np.where(real, scores[item, heads, word], 0.0).sum(2))
