"""Compiled algorithms on batches of score matrices: numpy arrays in, numpy arrays out, no torch.

``sums`` has log partitions, marginals and their derivatives; ``best`` the best tree; ``lists`` the K best trees;
``samples`` random trees. The files beside these packages are their common ground: how kernels are compiled
(``compile``) and run over a batch (``threads``), weights, logs, rows and vectors, random streams, ties, and the spans
of projective trees. ``networks`` has loops of neural networks; ``linear_features``, ``linear_scores`` and
``linear_updates`` have those of linear models. A package may import the common ground; ``lists`` imports ``best`` too,
and ``samples`` imports ``sums``.

To add kernels for another family of trees, as those of siblings and grandparents were added:

1. Put each algorithm into one file of the package that its result belongs to: ``best/eisner.py``. Add a package only
   for a new kind of result. Projective trees have lists, samples, ties and sums in logs by ``spans`` alone.
2. Write a public function of arrays, ``(scores, lengths, *, single_root, threads=1)``, whose docstring begins with the
   shapes. It makes the results, and passes a kernel to ``threads.run_batch``. The kernel, compiled by
   ``compile.exact_kernel``, loops over the items ``start`` to ``stop``; ``compile.kernel`` compiles helpers whose sums
   may be reordered.
3. Give working memory strides that depend on the item's length alone (``tree_weights.matrices``), so that an item has
   the same bits in a batch and alone. Break ties by ``ties``; draw numbers by ``random``.
4. Test it in ``tests/kernels/<package>/test_<file>.py`` against the enumeration of ``helpers.oracles``, with forbidden
   arcs, ties and scales from 1e-3 to 1e4. Mark short tests ``nojit``: they also run as plain Python.
5. A ``Family`` in ``treeparse/trees/families`` calls it; that family's line in the contract suite tests the rest.
"""

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
AnyFloatArray = NDArray[np.floating]  # float32 or float64
IntArray = NDArray[np.int64]


def lengthened(array: np.ndarray, more: int, axis: int, fill: float) -> np.ndarray:
    """Return a copy with ``more`` entries of ``fill`` at the end of an axis."""
    shape = list(array.shape)
    shape[axis] = more
    return np.concatenate([array, np.full(shape, fill, array.dtype)], axis)
