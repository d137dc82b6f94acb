"""Counter-based random streams: a draw depends on the seed, the sample's number and the draw's number alone.

Steele, Lea and Flood 2014, *Fast splittable pseudorandom number generators* (SplitMix64): draw ``i`` is a mixing
function of ``state + i * GAMMA``. No state outlives a sample, so samples are the same in any batch and on any thread.
"""

import numpy as np

from treeparse.kernels.compile import exact_kernel
from treeparse.kernels.logspace import NEGLIGIBLE
from treeparse.kernels.tree_weights import range_sum

GAMMA = np.uint64(0x9E3779B97F4A7C15)
FIRST_FACTOR, SECOND_FACTOR = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
SHIFTS = np.uint64(30), np.uint64(27), np.uint64(31)
LOW_BITS = np.uint64(12)
UNIT = 2.0**-52


@exact_kernel
def new_stream(seed, sample):
    """Return the stream of an item's ``sample``-th sample from the item's ``seed`` (uint64)."""
    return _mixed(seed ^ _mixed(np.uint64(sample) * GAMMA + GAMMA))


@exact_kernel
def uniform(stream):
    """Return the stream after its next draw, and this draw, uniform in the open interval (0, 1)."""
    stream += GAMMA
    return stream, (np.float64(_mixed(stream) >> LOW_BITS) + 0.5) * UNIT


@exact_kernel
def choose(weights, total, count, stream):
    """Return the stream after its next draw, and one of ``count`` options by weights that sum to ``total``."""
    stream, u = uniform(stream)
    rest, chosen = u * total, 0
    for option in range(count):
        if weights[option] > 0.0:
            chosen = option
            rest -= weights[option]
            if rest < 0.0:
                break
    return stream, chosen  # the last possible one by rounding alone


@exact_kernel
def choose_by_logs(logs, count, stream):
    """Do ``choose`` by log weights, which are overwritten."""
    top = -np.inf
    for option in range(count):
        top = max(top, logs[option])
    for option in range(count):
        share = logs[option] - top
        logs[option] = np.exp(share) if share > NEGLIGIBLE else 0.0
    return choose(logs, range_sum(logs, 0, count), count, stream)


@exact_kernel
def _mixed(bits):
    bits = (bits ^ (bits >> SHIFTS[0])) * FIRST_FACTOR
    bits = (bits ^ (bits >> SHIFTS[1])) * SECOND_FACTOR
    return bits ^ (bits >> SHIFTS[2])


def uniforms(seeds: np.ndarray, samples: int, draws: int, *, salt: int) -> np.ndarray:
    """Return uniform numbers ``(B, samples, draws)`` from seeds ``(B,)`` uint64; ``salt`` separates uses of a seed."""
    values = np.empty((len(seeds), samples, draws))
    with np.errstate(over="ignore"):
        _fill_uniforms(seeds ^ np.uint64(salt), values)
    return values


@exact_kernel
def _fill_uniforms(seeds, values):
    for item in range(values.shape[0]):
        for sample in range(values.shape[1]):
            stream = new_stream(seeds[item], sample)
            for draw in range(values.shape[2]):
                stream, values[item, sample, draw] = uniform(stream)
