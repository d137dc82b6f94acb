"""What can be said of samplers on scored graphs without drawing a tree: tries, steps and biases."""

import numpy as np
from numpy.typing import NDArray
from scripts.support.graphs.scored import Scored

from treeparse.kernels.samples import nonprojective_samples as sampling
from treeparse.kernels.sums import conditionals, elimination

Array = NDArray[np.float64]
TRIED_SHIFTS = np.arange(-9.0, 4.0, 0.5)  # nats


def with_root_shift(batch: Scored, shift: float | Array) -> Scored:
    """The batch with a constant, or one an item ``(B, 1)``, added to the scores of all root arcs."""
    scores = batch.scores.copy()
    scores[:, 0] += shift
    return Scored(scores, batch.lengths)


def log_tries(batch: Scored) -> Array:
    """How many trees with any number of roots are drawn until one has a single root, on average, as logs (B,).

    This is the ratio of the two sums over trees.
    """
    any_root = elimination.log_partition(batch.scores, batch.lengths, single_root=False)
    return any_root - elimination.log_partition(batch.scores, batch.lengths, single_root=True)


def log_steps(batch: Scored) -> Array:
    """Steps of Wilson's walks for one tree with any number of roots, on average, as logs (B,).

    They are ``sum_j degree_j inverse(L)_jj``, where L is the Laplacian, and the probability of the root arc of word
    ``j`` is its weight times ``inverse(L)_jj``. All root arcs must be finite.
    """
    logs = conditionals.log_marginals(batch.scores, batch.lengths, single_root=False)[:, 0]
    size = batch.scores.shape[1]
    node = np.arange(size)
    is_node = node <= batch.lengths[:, None]
    is_arc = is_node[:, :, None] & (node > 0) & is_node[:, None] & ~np.eye(size, dtype=bool)
    degrees = np.logaddexp.reduce(np.where(is_arc, batch.scores, -np.inf), 1)
    is_word = is_node & (node > 0)
    return np.logaddexp.reduce(np.where(is_word, degrees - batch.scores[:, 0] + logs, -np.inf), 1)


def best_shifts(batch: Scored) -> Array:
    """The ``TRIED_SHIFTS`` (B, 1) that make rejection cheapest, by expected tries times expected steps."""
    shifted = [with_root_shift(batch, shift) for shift in TRIED_SHIFTS]
    return TRIED_SHIFTS[np.argmin([log_tries(each) + log_steps(each) for each in shifted], 0)][:, None]


def root_shares(batch: Scored) -> tuple[Array, Array]:
    """Every word's probability to be the root word (B, n+1), in truth and as WilsonRC has it; 0 for other nodes."""
    _, marginals = elimination.log_partition_and_marginals(batch.scores, batch.lengths, single_root=True)
    node = np.arange(batch.scores.shape[1])
    is_word = (node > 0) & (node <= batch.lengths[:, None])
    logs = np.where(is_word, batch.scores[:, 0], -np.inf)
    return marginals[:, 0], np.exp(logs - np.logaddexp.reduce(logs, 1)[:, None])


def bias(batch: Scored) -> Array:
    """How far WilsonRC's law is from the true one, (B,): the total variation distance of trees.

    Given the root word both laws are the same, so that it is the distance between those of root words.
    """
    true, biased = root_shares(batch)
    return np.abs(true - biased).sum(1) / 2


def wilson_rc_marginals(batch: Scored) -> Array:
    """WilsonRC's probabilities of arcs (B, n+1, n+1): the true ones once every word is as probable a root word."""
    true, biased = root_shares(batch)
    scores = batch.scores.copy()
    with np.errstate(divide="ignore"):  # of a word that is never drawn
        scores[:, 0] += np.log(np.where(true > 0, biased, 1.0) / np.where(true > 0, true, 1.0))
    return elimination.log_partition_and_marginals(scores, batch.lengths, single_root=True)[1]


def steps_as_printed(batch: Scored, count: int, most: float) -> NDArray[np.int64]:
    """Steps of WilsonMarginal for each of ``count`` trees an item (B, count), if walks end at node 0 ([Unb] Alg. 3).

    They end through the root arc of the word drawn, which competes with the word's other heads. There are at most
    ``most`` times n^2.
    """
    seeds = np.arange(len(batch.lengths)).astype(np.uint64)
    options = {"single_root": True, "method": sampling.EXPANSION}
    roots = (sampling.sample_trees(batch.scores, batch.lengths, seeds, 1, **options)[0][:, 0] == 0).argmax(1)
    scores = batch.scores.copy()
    scores[:, 0] = -np.inf
    item = np.arange(len(roots))
    scores[item, 0, roots] = batch.scores[item, 0, roots]
    options = {"single_root": False, "method": sampling.WILSON, "steps_a_pair": most}
    return sampling.sample_trees(scores, batch.lengths, seeds, count, **options)[1]


def frequencies(heads: NDArray[np.int64]) -> Array:
    """How often words ``(B, n+1, n+1)`` have each head in samples ``(B, count, n+1)`` of one length."""
    size = heads.shape[2]
    result = np.empty((len(heads), size, size))
    for i in range(size):
        result[:, i] = (heads == i).mean(1)
    return result
