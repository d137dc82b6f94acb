"""Where the numbers of all parts of siblings of a sentence lie in one array, those of an arc side by side."""

from treeparse.kernels.compile import jit
from treeparse.kernels.vectors import LANES


@jit
def packed_size(n):
    """Return the size of the weights of all siblings of n words, up to a whole vector after the last row."""
    return n * (n + 1) * (2 * n + 1) // 6 + LANES


@jit
def packed_at(n, i, j):
    """Return where the weights of i -> j begin, i < j; those of j -> i, if i > 0, end there. They lie by j - i."""
    width = j - i
    return (width - 1) * width * (6 * n + 5 - 4 * width) // 6 + 2 * i * width


@jit
def place_of(n, h, d):
    """Return where the weights of an arc's siblings begin, which node is the first of them, and their number."""
    if h < d:
        return packed_at(n, h, d), h, d - h
    return packed_at(n, d, h) - (h - d), d + 1, h - d
