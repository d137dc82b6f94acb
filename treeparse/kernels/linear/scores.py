"""Scores of arcs, of parts of three nodes and of labels: sums of the weights of their features."""

import numpy as np

from treeparse.kernels.arrays import IntArray
from treeparse.kernels.compile import jit, vector_jit
from treeparse.kernels.linear.features import (
    ABSENT,
    DEPENDENT,
    HEAD,
    LEFT,
    STEP,
    THIRD,
    Hashes,
    Templates,
    add_new,
    arc_features,
    distance_key,
    fill_distances,
    fill_keys,
    key,
    mix,
)
from treeparse.kernels.linear.tables import WeightTable, new_codes, weight, weight_in_row
from treeparse.kernels.threads import run_batch

BITS = 32


def score_arcs(nodes: Hashes, lengths: IntArray, templates: Templates, table: WeightTable) -> np.ndarray:
    """Return the scores ``(B, n+1, n+1)``, float32 and head first, of arcs between nodes ``(B, n+1, A)``.

    Entries that are no arcs are 0.
    """
    scores = np.zeros((*nodes.shape[:2], nodes.shape[1]), np.float32)
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


@jit
def _score_arcs(start, stop, lengths, nodes, slots, salts, between, distance, weights, scale, shift, scores):
    count, size = len(between), nodes.shape[1]
    heads, dependents = np.empty((count, size), np.uint32), np.empty((count, size), np.uint32)
    distances, no_distances = np.empty(2 * size + 1, np.uint32), np.zeros(2 * size + 1, np.uint32)
    seen, codes = np.empty(size, np.uint32), new_codes(scale)
    fill_distances(distances)
    for b in range(start, stop):
        n, rows = lengths[b], scores[b]
        fill_keys(nodes[b], n, slots[HEAD], salts[HEAD], heads)
        fill_keys(nodes[b], n, slots[DEPENDENT], salts[DEPENDENT], dependents)
        for t in range(count):
            if between[t] >= 0:
                to_add = distances if distance[t] else no_distances
                _add_between(
                    nodes[b], n, between[t], heads[t], dependents[t], to_add, weights, codes, shift, seen, rows
                )
                continue
            for h in range(n + 1):
                right, left, row = heads[t, h], np.uint32(heads[t, h] + LEFT), rows[h]
                if distance[t]:
                    from_head = distances[size - h :]
                    _add_at_distances(weights, codes, right, dependents[t], from_head, shift, h + 1, n + 1, row)
                    _add_at_distances(weights, codes, left, dependents[t], from_head, shift, 1, h, row)
                else:
                    _add(weights, codes, right, dependents[t], shift, h + 1, n + 1, row)
                    _add(weights, codes, left, dependents[t], shift, 1, h, row)


@vector_jit
def _add(weights, codes, key_of_head, keys, shift, start, stop, row):
    """Add the weights of a template's features of the arcs from one head to a range of dependents."""
    for d in range(start, stop):
        row[d] += weight(weights, codes, np.uint32(key_of_head + keys[d]) >> shift)


@vector_jit
def _add_at_distances(weights, codes, key_of_head, keys, distances, shift, start, stop, row):
    """Add weights as ``_add`` does, where the keys of distances are part of the features."""
    for d in range(start, stop):
        row[d] += weight(weights, codes, np.uint32(np.uint32(key_of_head + keys[d]) + distances[d]) >> shift)


@jit
def _add_between(nodes, n, attribute, heads, dependents, distances, weights, codes, shift, seen, rows):
    """Add the weights of a template that reads the nodes between, once for each distinct value."""
    middle = len(distances) // 2
    for h in range(n + 1):
        count = 0
        for d in range(h + 1, n + 1):
            sum_of_keys = np.uint32(np.uint32(heads[h] + dependents[d]) + distances[middle + d - h])
            rows[h, d] += _sum_over(weights, codes, sum_of_keys, seen, count, shift)
            count = add_new(seen, count, mix(nodes[d, attribute]))
        count = 0
        for d in range(h - 1, 0, -1):
            sum_of_keys = np.uint32(np.uint32(heads[h] + dependents[d]) + distances[middle + h - d])
            sum_of_keys = np.uint32(sum_of_keys + LEFT)
            rows[h, d] += _sum_over(weights, codes, sum_of_keys, seen, count, shift)
            count = add_new(seen, count, mix(nodes[d, attribute]))


@vector_jit
def _sum_over(weights, codes, sum_of_keys, seen, count, shift):
    total = np.float32(0)
    for i in range(count):
        total += weight(weights, codes, np.uint32(sum_of_keys + seen[i]) >> shift)
    return total


@jit
def _score_triples(
    start, stop, lengths, nodes, slots, salts, between, distance, weights, scale, shift, siblings, scores
):
    count, size = len(between), nodes.shape[1]
    keys = np.empty((3, count, size), np.uint32)
    distances, codes = np.empty(2 * size + 1, np.uint32), new_codes(scale)
    fill_distances(distances)
    for b in range(start, stop):
        n = lengths[b]
        for role in range(3):
            fill_keys(nodes[b], n, slots[role], salts[role], keys[role])
        for h in range(n + 1):
            for d in range(1, n + 1):
                if d != h and (siblings or h > 0):
                    _score_row(n, h, d, keys, distance, distances, weights, codes, shift, siblings, scores[b, h, d])


@jit
def _score_row(n, h, d, keys, distance, distances, weights, codes, shift, siblings, row):
    """Fill the scores of all third nodes of an arc: nodes between its ends, or those that are not."""
    direction = np.uint32(0) if d > h else LEFT
    first, last = min(h, d), max(h, d)
    before = np.uint32(direction + STEP)  # of third nodes before the head
    to_dependent = distances[len(distances) // 2 - d :]
    for t in range(len(distance)):
        pair = np.uint32(keys[HEAD, t, h] + keys[DEPENDENT, t, d])
        third = keys[THIRD, t]
        if siblings:
            inner = np.uint32(pair + (direction if d > h else before))
            if distance[t]:
                _add_at_distances(weights, codes, inner, third, to_dependent, shift, first + 1, last, row)
            else:
                _add(weights, codes, inner, third, shift, first + 1, last, row)
            alone = np.uint32(np.uint32(pair + direction) + ABSENT)
            if distance[t]:
                alone = np.uint32(alone + distance_key(last - first))
            row[h] += weight(weights, codes, alone >> shift)
        else:
            left, right = np.uint32(pair + before), np.uint32(pair + direction)
            if distance[t]:
                _add_at_distances(weights, codes, left, third, to_dependent, shift, 0, first, row)
                _add_at_distances(weights, codes, right, third, to_dependent, shift, last + 1, n + 1, row)
            else:
                _add(weights, codes, left, third, shift, 0, first, row)
                _add(weights, codes, right, third, shift, last + 1, n + 1, row)


@jit
def _score_labels(start, stop, _, nodes, lengths, slots, salts, between, distance, weights, scale, shift, arcs, scores):
    templates = Templates(slots, salts, between, distance)
    features = np.empty(feature_limit(templates, nodes.shape[1]), np.int64)
    heads, dependents = new_keys(templates, nodes.shape[1]), new_keys(templates, nodes.shape[1])
    seen = np.empty(nodes.shape[1], np.uint32)
    for a in range(start, stop):
        b, h, d = arcs[a]
        count = label_features(nodes[b], lengths[b], templates, heads, dependents, shift, h, d, seen, features)
        for f in range(count):
            add_row(weights[features[f]], scale, scores[a])


@jit
def label_features(nodes, n, templates, heads, dependents, shift, h, d, seen, out):
    """Fill the indices of the features of the arc ``h -> d``; of the keys, only those of its two nodes are set."""
    for t in range(len(templates.between)):
        heads[t, h] = key(nodes, n, templates.slots[HEAD, t], templates.salts[HEAD, t], h)
        dependents[t, d] = key(nodes, n, templates.slots[DEPENDENT, t], templates.salts[DEPENDENT, t], d)
    return arc_features(nodes, n, templates, heads, dependents, shift, h, d, seen, out)


@vector_jit
def add_row(row, scale, total):
    """Add a row of weights to numbers."""
    for i in range(len(total)):
        total[i] += weight_in_row(row, scale, i)


@jit
def new_keys(templates, size):
    """Return an array for the keys of all templates at ``size`` nodes."""
    return np.empty((len(templates.between), size), np.uint32)


@jit
def feature_limit(templates, size):
    """Return a number that the features of no arc of ``size`` nodes exceed."""
    count = 0
    for t in range(len(templates.between)):
        count += 1 if templates.between[t] < 0 else size
    return count
