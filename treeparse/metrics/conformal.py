"""Sets that hold what is true as often as one says, whatever the model: split conformal prediction."""

import math

import numpy as np
from numpy.typing import ArrayLike

from treeparse.errors import TreeparseError


def conformal_threshold(probs: ArrayLike, alpha: float) -> float:
    """The probability that a head needs to be in a word's set, so that sets hold the true one in 1 - alpha of cases.

    It is the ``floor(alpha (N + 1))``-th lowest of the probabilities ``(N,)`` that the model gives to the true heads of
    words that it was not trained on, and 0 where there are too few of these (Vovk, Gammerman and Shafer 2005, §4.2;
    Sadinle, Lei and Wasserman 2019). If a new word is exchangeable with these, its set holds its head with a
    probability of 1 - alpha or more, and of ``1 - alpha + 1 / (N + 1)`` at most where no two probabilities are equal.

    That is so on the average over words, not for each kind of word; and not where text is of another kind than that of
    the ``N`` words. Words of one sentence are alike: the share of a file's words that are held scatters more than that
    of as many words each from a sentence of its own.

    Raises:
        TreeparseError: where alpha does not lie between 0 and 1, there is no word, or what is given are no
            probabilities.
    """
    if not 0 < alpha < 1:
        raise TreeparseError(
            f"The share of words whose set may lack the head is {alpha}, but must lie between 0 and 1."
        )
    chances = np.asarray(probs, dtype=np.float64)
    if chances.ndim != 1 or not len(chances) or not ((chances >= 0) & (chances <= 1)).all():
        raise TreeparseError("A conformal threshold wants the probabilities of the true heads of words, one or more.")
    rank = math.floor(alpha * (len(chances) + 1) * (1 + 1e-12))  # 0.1 x 10 is 1, not a little less
    return float(np.partition(chances, rank - 1)[rank - 1]) if rank else 0.0
