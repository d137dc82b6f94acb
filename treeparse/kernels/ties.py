"""Which of several trees of equal score is better: one rule for every decoder and every list of trees.

Every arc has a fixed integer key. Among trees of equal score the better one has the greater sum of keys, so trees are
compared by (score, summed keys). Both add up over arcs, so an algorithm that finds the best tree by score finds it by
the pair, and the best tree is unique. A key is minus the arc's length in its upper bits, so shorter arcs win, and
pseudo-random in the lower ones, so sums hardly ever tie.
"""

import numpy as np

from treeparse.kernels.compile import exact_kernel

LENGTH_UNIT = 1 << 40  # above any sum of 28-bit numbers over up to 4,096 words


@exact_kernel
def arc_key(head, dependent):
    """Return the key of an arc, which depends on its head and its dependent alone."""
    mixed = (head * 0x9E3779B1 + dependent * 0x85EBCA77) & 0xFFFFFFFF
    mixed = ((mixed ^ (mixed >> 16)) * 0x45D9F3B) & 0xFFFFFFFF
    mixed = ((mixed ^ (mixed >> 15)) * 0x119DE1F3) & 0xFFFFFFFF
    return ((mixed ^ (mixed >> 16)) >> 4) - abs(head - dependent) * LENGTH_UNIT


@exact_kernel
def tree_key(heads, n):
    """Return the summed keys of a tree's arcs."""
    total = 0
    for j in range(1, n + 1):
        total += arc_key(heads[j], j)
    return total


@exact_kernel
def arc_keys(nodes):
    """Return the keys of all arcs between ``nodes`` nodes, ``[head, dependent]``."""
    keys = np.empty((nodes, nodes), np.int64)
    for head in range(nodes):
        for dependent in range(nodes):
            keys[head, dependent] = arc_key(head, dependent)
    return keys
