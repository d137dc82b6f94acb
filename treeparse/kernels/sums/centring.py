"""Vectors that are multiplied with the Hessian of a log partition, scaled and centred.

A constant added to a column of a vector changes nothing, for every tree has one arc into each word. So the entry of the
best arc is subtracted from each column, and where the model is confident almost nothing is left to cancel.
"""

import math

import numpy as np

from treeparse.kernels.arrays import FloatArray, IntArray
from treeparse.kernels.compile import exact_kernel, kernel
from treeparse.kernels.threads import run_batch
from treeparse.kernels.weights import column_maxima, load_log_weights

LARGEST_EXPONENT = 1023  # of a power of 2 that is finite
MIN_SCALE = 1e-300  # of vectors, because nothing is divided by 0


def centred(scores: FloatArray, lengths: IntArray, vectors: FloatArray, threads: int) -> tuple[FloatArray, FloatArray]:
    """Return vectors as ``load_vectors`` fills them, but head-major, and their scales ``(B, 1, 1)``."""
    values, scales = np.zeros_like(scores), np.empty((len(lengths), 1, 1))
    run_batch(_centre, lambda n: n**2, lengths, scores, vectors, values, scales, threads=threads)
    return values, scales


def rescaled(products: FloatArray, scales: FloatArray) -> FloatArray:
    """Multiply products of ``centred`` vectors by their scales; NaN shows where a vector was infinite."""
    with np.errstate(invalid="ignore"):
        return products * scales


@exact_kernel
def _centre(start, stop, lengths, scores, vectors, values, scales):
    size = scores.shape[1]
    log_weights, v, top = np.empty((size, size)), np.empty((size, size)), np.empty(size)
    for b in range(start, stop):
        n = lengths[b]
        column_maxima(scores[b], n, top)
        load_log_weights(scores[b], n, top, log_weights, log_weights)
        scales[b] = load_vectors(vectors[b], n, log_weights, -np.inf, 0.0, v)
        for j in range(1, n + 1):
            for i in range(n + 1):
                values[b, i, j] = v[j, i]


@exact_kernel
def power_of_two(number):
    """Return the next power of 2, because a division by it does not round; infinity stays."""
    return math.ldexp(1.0, min(math.frexp(number)[1], LARGEST_EXPONENT)) if number < np.inf else number


@kernel
def load_vectors(vectors, n, weights, zero, best, v):
    """Fill ``v`` with the vectors over a scale, each column less its best arc's; returns the scale.

    The scale is the next power of 2 to the largest magnitude, so that only the difference is rounded. ``zero`` and
    ``best`` are the weights of a forbidden arc and of a best arc.
    """
    scale = MIN_SCALE
    for i in range(n + 1):
        for j in range(1, n + 1):
            value = vectors[i, j] if weights[j, i] > zero else 0.0
            scale = abs(value) if abs(value) > scale else scale
            v[j, i] = value
    scale = power_of_two(scale)
    for j in range(1, n + 1):
        centre = 0.0
        for i in range(n + 1):
            centre = v[j, i] if weights[j, i] == best else centre
        for i in range(n + 1):
            v[j, i] = v[j, i] / scale - centre / scale if weights[j, i] > zero else 0.0
    return scale
