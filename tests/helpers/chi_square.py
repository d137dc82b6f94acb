"""Whether draws follow a law: Pearson's chi-square statistic against its distribution."""

import numpy as np
from numpy.typing import NDArray

LIMIT = 4.5  # standard deviations: one in 300,000
LEAST_EXPECTED = 5.0  # draws in a cell; cells of fewer are pooled


def chi_square_z(counts: NDArray[np.int64], probabilities: NDArray[np.float64]) -> float:
    """The statistic as a standard normal deviate (Wilson and Hilferty 1931); large where the law is another one."""
    assert not counts[probabilities == 0].any()
    expected = probabilities * counts.sum()
    order = np.argsort(expected)
    counts, expected = counts[order], expected[order]
    pooled = max(int((expected < LEAST_EXPECTED).sum()), 1)
    while expected[:pooled].sum() < LEAST_EXPECTED:
        pooled += 1
    observed = np.concatenate([[counts[:pooled].sum()], counts[pooled:]])
    cells = np.concatenate([[expected[:pooled].sum()], expected[pooled:]])
    freedom = len(cells) - 1
    if freedom == 0:
        return 0.0
    statistic = ((observed - cells) ** 2 / cells).sum()
    spread = 2 / (9 * freedom)
    return float(((statistic / freedom) ** (1 / 3) - (1 - spread)) / np.sqrt(spread))


def tree_counts(heads: NDArray[np.int64], trees: NDArray[np.int64]) -> NDArray[np.int64]:
    """How often each of the head lists (trees, n) was drawn, (draws, n); a draw that is none of them fails."""
    base = trees.shape[1] + 1
    digits = base ** np.arange(trees.shape[1])
    codes = trees @ digits
    order = np.argsort(codes)
    places = np.searchsorted(codes[order], heads @ digits).clip(0, len(codes) - 1)
    assert (codes[order[places]] == heads @ digits).all()
    return np.bincount(order[places], minlength=len(trees))
