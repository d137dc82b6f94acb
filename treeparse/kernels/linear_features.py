"""The features of parts: hashes of what feature templates read at the nodes of a part ([Lec]; McDonald et al. 2005).

A node has hashed attributes, 32-bit numbers. A template reads attributes at its head, its dependent and, for parts of
three nodes, at the third one. Its key at a node mixes these attributes. A feature's index is the sum of the keys of its
nodes and of the direction and distance, of which the highest bits count, so that most of the work is done once a node
instead of once an arc.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from treeparse.kernels import IntArray
from treeparse.kernels.compile import exact_kernel, kernel

Hashes = NDArray[np.uint32]

HEAD, DEPENDENT, THIRD = 0, 1, 2
LEFT = np.uint32(0x9E3779B1)  # added where the dependent precedes the head
OUTSIDE = np.uint32(0x85EBCA6B)  # the attributes of positions before the root and after the last word
ABSENT = np.uint32(0xC2B2AE35)  # the key of a first child's sibling
MIXED_ONCE, MIXED_TWICE = np.uint32(0x7FEB352D), np.uint32(0x846CA68B)
ALL_BITS = np.uint32(0xFFFFFFFF)
SHIFT_16, SHIFT_15 = np.uint32(16), np.uint32(15)
STEP = np.uint32(0x27D4EB2F)
DISTANCES = (1, 2, 3, 4, 5, 10, 15, 30)  # the greatest distance of each class


class Templates(NamedTuple):
    """T feature templates of one kind of part.

    Attributes:
        slots: ``(3, T, S, 2)`` the attribute and the offset of what a template reads at each node; -1 for no more.
        salts: ``(3, T)`` a number of each template and node.
        between: ``(T,)`` the attribute that is read at every node between head and dependent, -1 for none.
        distance: ``(T,)`` whether the distance is part of the feature.
    """

    slots: IntArray
    salts: Hashes
    between: IntArray
    distance: NDArray[np.bool_]


@exact_kernel
def mix(x):
    """Return a hash of a 32-bit number; no two numbers have the same."""
    x = np.uint32(x)
    x = np.uint32(np.uint32(x ^ (x >> SHIFT_16)) * MIXED_ONCE)
    x = np.uint32(np.uint32(x ^ (x >> SHIFT_15)) * MIXED_TWICE)
    return np.uint32(x ^ (x >> SHIFT_16))


@exact_kernel
def fill_keys(nodes, n, slots, salts, keys):
    """Fill the keys ``(R, n+1, T)`` of templates at all nodes in the first R roles, from attributes ``(n+1, A)``."""
    for role in range(len(keys)):
        _fill_role(nodes, n, slots[role], salts[role], keys[role])


@exact_kernel
def _fill_role(nodes, n, slots, salts, keys):
    count, most = len(salts), 0
    values, reads = np.zeros(count, np.uint32), np.empty((slots.shape[1], count), np.uint32)
    for t in range(count):
        for s in range(slots.shape[1]):
            reads[s, t] = ALL_BITS if slots[t, s, 0] >= 0 else np.uint32(0)
            most = s + 1 if reads[s, t] > 0 and s >= most else most
    for j in range(n + 1):
        keys[j] = salts
        for s in range(most):
            for t in range(count):
                attribute, at = slots[t, s, 0], j + slots[t, s, 1]
                if attribute >= 0:
                    values[t] = nodes[at, attribute] if 0 <= at <= n else OUTSIDE
            _mix_in(values, reads[s], keys[j])


@kernel
def _mix_in(values, reads, keys):
    """Mix values into the keys of those templates that read them, whose ``reads`` are ``ALL_BITS``."""
    for t in range(len(keys)):
        mixed = mix(np.uint32(np.uint32(keys[t] ^ values[t]) + STEP))
        keys[t] = (mixed & reads[t]) | (keys[t] & ~reads[t])


@exact_kernel
def distance_key(distance):
    """Return the key of a distance of at least 1, which all distances of a class share."""
    for c in range(len(DISTANCES)):
        if distance <= DISTANCES[c]:
            return mix(np.uint32(c + 1))
    return mix(np.uint32(len(DISTANCES) + 1))


@exact_kernel
def fill_distances(distance, keys):
    """Fill the keys ``(2 * N + 1, T)`` of the distances -N to N; a template without distances has 0."""
    middle = len(keys) // 2
    keys[middle] = np.uint32(0)
    for m in range(1, middle + 1):
        for t in range(len(distance)):
            keys[middle + m, t] = keys[middle - m, t] = distance_key(m) if distance[t] else np.uint32(0)


@exact_kernel
def add_new(seen, count, value):
    """Append a value to the ``count`` ones seen unless it is one of them; return the new count."""
    for i in range(count):
        if seen[i] == value:
            return count
    seen[count] = value
    return count + 1


@exact_kernel
def arc_features(nodes, templates, keys, shift, h, d, seen, out):
    """Fill the indices of all features of the arc ``h -> d`` into ``out``, from all nodes' keys; return their number.

    Templates that read the nodes between have a feature for each distinct value.
    """
    count, step = 0, 1 if d > h else -1
    direction = np.uint32(0) if d > h else LEFT
    for t in range(len(templates.between)):
        sum_of_keys = np.uint32(np.uint32(keys[HEAD, h, t] + keys[DEPENDENT, d, t]) + direction)
        if templates.distance[t]:
            sum_of_keys = np.uint32(sum_of_keys + distance_key(abs(d - h)))
        if templates.between[t] < 0:
            out[count] = sum_of_keys >> shift
            count += 1
            continue
        values = 0
        for b in range(h + step, d, step):
            values = add_new(seen, values, mix(nodes[b, templates.between[t]]))
        for i in range(values):
            out[count] = np.uint32(sum_of_keys + seen[i]) >> shift
            count += 1
    return count


@exact_kernel
def triple_features(templates, keys, shift, h, d, x, out):
    """Fill the indices of all features of a part of three nodes into ``out``; return their number.

    The third node ``x`` may be the head, which stands for no sibling.
    """
    direction = np.uint32(0) if d > h else LEFT
    if x < h:
        direction = np.uint32(direction + STEP)
    for t in range(len(templates.distance)):
        third = ABSENT if x == h else keys[THIRD, x, t]
        sum_of_keys = np.uint32(np.uint32(keys[HEAD, h, t] + keys[DEPENDENT, d, t]) + np.uint32(third + direction))
        if templates.distance[t]:
            sum_of_keys = np.uint32(sum_of_keys + distance_key(abs(d - x)))
        out[t] = sum_of_keys >> shift
    return len(templates.distance)
