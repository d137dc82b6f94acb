"""Scores of arcs, of parts of three nodes and of labels: sums of the weights of their features.

Weights are float32 while they are learned, float8 afterwards. Most of the time of a score is spent on reading weights
at random, so that a table of a quarter of the size is read twice as fast.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import types
from numba.extending import overload
from numpy.typing import NDArray

from treeparse.kernels import IntArray
from treeparse.kernels.compile import exact_kernel, kernel
from treeparse.kernels.linear_features import (
    ABSENT,
    DEPENDENT,
    HEAD,
    LEFT,
    STEP,
    THIRD,
    Hashes,
    Templates,
    arc_features,
    fill_distances,
    fill_keys,
    mix,
)
from treeparse.kernels.threads import run_batch

BITS = 32

# A float8 is of the kind E4M3: a sign, four bits of exponent and three of mantissa. These are the highest bits of a
# float32 if the exponent grows by 120, but for numbers below LOWEST in magnitude, of the lowest exponent: `decoded`.
MAGNITUDE, SIGN = np.int32(0x7F), np.int32(0x80)
TO_EXPONENT, TO_SIGN = np.int32(20), np.int32(24)
OFFSET = np.int32(120 << 23)
LOWEST = np.float32(2.0**-6)
CODES = 256


class WeightTable(NamedTuple):
    """Weights of features: ``(2**bits,)`` of parts or ``(2**bits, L)`` of labels.

    Attributes:
        values: float32 weights, or the bytes of float8 ones.
        scale: by which float8 weights are multiplied.
    """

    values: NDArray[Any]
    scale: np.float32 = np.float32(1)


def score_arcs(nodes: Hashes, lengths: IntArray, templates: Templates, table: WeightTable) -> np.ndarray:
    """Return the scores ``(B, n+1, n+1)``, float32 and head first, of arcs between nodes ``(B, n+1, A)``.

    Entries that are no arcs are 0.
    """
    scores = np.zeros((*nodes.shape[:2], nodes.shape[1]), np.float32)
    order = np.argsort(templates.between >= 0, kind="stable")  # those that read the nodes between come last
    slots, salts = templates.slots[:, order], templates.salts[:, order]
    templates = Templates(slots, salts, templates.between[order], templates.distance[order])
    arguments = nodes, *templates, *table, shift_of(table.values), scores
    run_batch(_score_arcs, lambda n: n**2, lengths, *arguments, threads=1)
    return scores


def score_triples(
    nodes: Hashes, lengths: IntArray, templates: Templates, table: WeightTable, *, siblings: bool
) -> np.ndarray:
    """Return the scores ``(B, n+1, n+1, n+1)``, float32, of siblings or of grandparents; otherwise as `score_arcs`."""
    size = nodes.shape[1]
    scores = np.zeros((len(nodes), size, size, size), np.float32)
    arguments = nodes, *templates, *table, shift_of(table.values), siblings, scores
    run_batch(_score_triples, lambda n: n**3, lengths, *arguments, threads=1)
    return scores


def score_labels(
    nodes: Hashes, lengths: IntArray, templates: Templates, table: WeightTable, arcs: IntArray
) -> np.ndarray:
    """Return the scores ``(A, L)``, float32, of the labels of arcs ``(A, 3)``: item, head and dependent."""
    scores = np.zeros((len(arcs), table.values.shape[1]), np.float32)
    arguments = nodes, lengths, *templates, *table, shift_of(table.values), arcs, scores
    run_batch(_score_labels, np.ones_like, np.arange(len(arcs)), *arguments, threads=1)
    return scores


def shift_of(weights: np.ndarray) -> np.uint32:
    """Return by how many bits a hash is shifted to an index of the weights, whose number is a power of two."""
    return np.uint32(BITS - (len(weights).bit_length() - 1))


@exact_kernel
def _score_arcs(start, stop, lengths, nodes, slots, salts, between, distance, weights, scale, shift, scores):
    count, size = len(between), nodes.shape[1]
    plain = count - (between >= 0).sum()
    keys = np.empty((2, size, count), np.uint32)
    heads, dependents = keys[HEAD], keys[DEPENDENT]
    distances, codes = np.empty((2 * size + 1, count), np.uint32), new_codes(scale)
    seen, mixed, same = np.empty(size, np.uint32), np.empty(size, np.uint32), np.empty((2, size), np.int64)
    fill_distances(distance, distances)
    distances[:size] += LEFT
    for b in range(start, stop):
        n, rows = lengths[b], scores[b]
        fill_keys(nodes[b], n, slots, salts, keys)
        _sum_arcs(n, plain, heads, dependents, distances, weights, codes, shift, rows)
        for t in range(plain, count):
            _fill_repetitions(nodes[b], n, between[t], mixed, same)
            _add_between(
                n, mixed, same, heads[:, t], dependents[:, t], distances[:, t], weights, codes, shift, seen, rows
            )
        for j in range(n + 1):
            rows[j, j] = 0


@exact_kernel
def _sum_arcs(n, count, heads, dependents, distances, weights, codes, shift, rows):
    """Fill the sums of the weights of the first ``count`` templates."""
    middle = len(distances) // 2
    for h in range(n + 1):
        for d in range(1, n + 1):
            total = np.float32(0)
            for t in range(count):
                key = np.uint32(np.uint32(heads[h, t] + dependents[d, t]) + distances[middle + d - h, t])
                total += weight(weights, codes, key >> shift)
            rows[h, d] = total


@exact_kernel
def _fill_repetitions(nodes, n, attribute, mixed, same):
    """Fill the hashes of an attribute and, for each node, the nearest ones before and after it with an equal value."""
    for j in range(n + 1):
        mixed[j], same[0, j], same[1, j] = mix(nodes[j, attribute]), -1, n + 1
        for i in range(j - 1, -1, -1):
            if mixed[i] == mixed[j]:
                same[0, j], same[1, i] = i, j
                break


@exact_kernel
def _add_between(n, mixed, same, heads, dependents, distances, weights, codes, shift, seen, rows):
    """Add the weights of a template that reads the nodes between, once for each distinct value."""
    middle = len(distances) // 2
    for h in range(n + 1):
        count = 0
        for d in range(h + 1, n + 1):
            sum_of_keys = np.uint32(np.uint32(heads[h] + dependents[d]) + distances[middle + d - h])
            rows[h, d] += _sum_over(weights, codes, sum_of_keys, seen, count, shift)
            if same[0, d] <= h:
                seen[count] = mixed[d]
                count += 1
        count = 0
        for d in range(h - 1, 0, -1):
            sum_of_keys = np.uint32(np.uint32(heads[h] + dependents[d]) + distances[middle + d - h])
            rows[h, d] += _sum_over(weights, codes, sum_of_keys, seen, count, shift)
            if same[1, d] >= h:
                seen[count] = mixed[d]
                count += 1


@exact_kernel
def _sum_over(weights, codes, sum_of_keys, seen, count, shift):
    total = np.float32(0)
    for i in range(count):
        total += weight(weights, codes, np.uint32(sum_of_keys + seen[i]) >> shift)
    return total


@exact_kernel
def _score_triples(
    start, stop, lengths, nodes, slots, salts, between, distance, weights, scale, shift, siblings, scores
):
    count, size = len(between), nodes.shape[1]
    keys, distances = np.empty((3, size, count), np.uint32), np.empty((2 * size + 1, count), np.uint32)
    fill_distances(distance, distances)
    distances_of, codes = np.ascontiguousarray(distances.T), new_codes(scale)
    for b in range(start, stop):
        n, rows = lengths[b], scores[b]
        fill_keys(nodes[b], n, slots, salts, keys)
        thirds = np.ascontiguousarray(keys[THIRD].T)
        for h in range(n + 1):
            for d in range(1, n + 1):
                if d != h and (siblings or h > 0):
                    pair = keys[HEAD, h] + keys[DEPENDENT, d]
                    _score_row(n, h, d, pair, thirds, distances_of, weights, codes, shift, siblings, rows[h, d])


@exact_kernel
def _score_row(n, h, d, pair, thirds, distances, weights, codes, shift, siblings, row):
    """Fill the scores of all third nodes of an arc: nodes between its ends, or those that are not."""
    direction, first, last = np.uint32(0) if d > h else LEFT, min(h, d), max(h, d)
    size = distances.shape[1] // 2
    for t in range(len(thirds)):
        after = np.uint32(pair[t] + direction)
        before = np.uint32(after + STEP)  # of third nodes before the head
        third, to_dependent = thirds[t], distances[t, size - d :]
        if siblings:
            _add(weights, codes, after if d > h else before, third, to_dependent, shift, first + 1, last, row)
            alone = np.uint32(np.uint32(after + ABSENT) + to_dependent[h])
            row[h] += weight(weights, codes, alone >> shift)
        else:
            _add(weights, codes, before, third, to_dependent, shift, 0, first, row)
            _add(weights, codes, after, third, to_dependent, shift, last + 1, n + 1, row)


@kernel
def _add(weights, codes, key_of_pair, thirds, distances, shift, start, stop, row):
    """Add the weights of a template's features of the parts of one arc and a range of third nodes."""
    for x in range(start, stop):
        row[x] += weight(weights, codes, np.uint32(np.uint32(key_of_pair + thirds[x]) + distances[x]) >> shift)


@exact_kernel
def _score_labels(start, stop, _, nodes, lengths, slots, salts, between, distance, weights, scale, shift, arcs, scores):
    templates = Templates(slots, salts, between, distance)
    features = np.empty(feature_limit(templates, nodes.shape[1]), np.int64)
    keys, seen = np.empty((2, nodes.shape[1], len(between)), np.uint32), np.empty(nodes.shape[1], np.uint32)
    item = -1  # whose keys are filled
    for a in range(start, stop):
        b, h, d = arcs[a]
        if b != item:
            item = b
            fill_keys(nodes[b], lengths[b], slots, salts, keys)
        count = arc_features(nodes[b], templates, keys, shift, h, d, seen, features)
        add_rows(weights, features, count, scale, scores[a])


@exact_kernel
def add_rows(weights, features, count, scale, total):
    """Add the weights of labels of ``count`` features to numbers."""
    for f in range(count):
        _add_row(weights[features[f]], scale, total)


@kernel
def _add_row(row, scale, total):
    for i in range(len(total)):
        total[i] += weight_in_row(row, scale, i)


@exact_kernel
def feature_limit(templates, size):
    """Return a number that the features of no arc of ``size`` nodes exceed."""
    count = 0
    for t in range(len(templates.between)):
        count += 1 if templates.between[t] < 0 else size
    return count


@exact_kernel
def decoded(byte):
    """Return the number that the byte of a float8 stands for; of NaN, any.

    With the lowest exponent it is ``2 * number - LOWEST``, and otherwise that is not below the number. To read the bits
    as a denormal float32 instead and multiply takes many times as long.
    """
    bits = np.int32(byte)
    number = np.int32(((bits & MAGNITUDE) << TO_EXPONENT) + OFFSET).view(np.float32)
    magnitude = np.float32(min(number, np.float32(2) * number - LOWEST))
    return np.int32(magnitude.view(np.int32) | ((bits & SIGN) << TO_SIGN)).view(np.float32)


@exact_kernel
def new_codes(scale):
    """Return the weights of all bytes: to look them up is faster than to decode, where weights are read one by one."""
    codes = np.empty(CODES, np.float32)
    for byte in range(CODES):
        codes[byte] = scale * decoded(byte)
    return codes


def weight(values, codes, index):  # pyright: ignore
    """Return one weight of a table; ``codes`` are those of `new_codes`."""
    return codes[values[index]] if values.dtype == np.uint8 else values[index]


@overload(weight, inline="always")
def _weight(values, codes, index):  # pyright: ignore
    if values.dtype is types.uint8:
        return lambda values, codes, index: codes[values[index]]
    return lambda values, codes, index: values[index]


def weight_in_row(row, scale, index):  # pyright: ignore
    """Return one weight of a row that is read as a whole, in vectors."""
    return scale * decoded(row[index]) if row.dtype == np.uint8 else row[index]


@overload(weight_in_row, inline="always")
def _weight_in_row(row, scale, index):  # pyright: ignore
    if row.dtype is types.uint8:
        return lambda row, scale, index: scale * decoded(row[index])
    return lambda row, scale, index: row[index]
