"""Bilinear forms of some pairs of vectors."""

import numpy as np

from treeparse.kernels.compile import vector_jit


@vector_jit
def add_pair_products(mixed, rows, vectors, columns, sums):
    """Adds to ``sums`` (A, L) the product of ``mixed[rows[a]]``, L vectors end to end, with ``vectors[columns[a]]``.

    ``rows`` and ``columns`` (A,) are int64, all else float32; ``mixed`` is (R, L * D) and ``vectors`` (C, D). Nothing
    is gathered first: what a row mixes is read by all of its pairs where it stands.
    """
    size = vectors.shape[1]
    for pair in range(len(rows)):
        row, vector, found = mixed[rows[pair]], vectors[columns[pair]], sums[pair]
        for label in range(len(found)):
            start = label * size
            total = np.float32(0)
            for place in range(size):
                total += row[start + place] * vector[place]
            found[label] += total
