"""Conformal prediction: sets of heads that hold the true one, and parts of trees that are right, with a promised share.

All thresholds come from trees that the model was not trained on. What is promised holds, on average over such trees and
new ones, if both are of the same kind (exchangeable), whatever the model; it holds for no other kind of text, and not
for each kind of word or sentence.
"""

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from treeparse.errors import TreeparseError

PromiseFor = Literal["sentences", "words"]


def conformal_threshold(probs: ArrayLike, alpha: float) -> float:
    """Return the least probability of heads in a word's set, so that 1 - alpha of the sets contain the true head.

    This is split conformal prediction: the result is the ``floor(alpha (N + 1))``-th lowest of the probabilities
    ``(N,)`` that the model assigns to the true heads of words that it was not trained on, or 0 if these are too few
    (Vovk, Gammerman and Shafer 2005, §4.2; Sadinle, Lei and Wasserman 2019). If a new word is exchangeable with these,
    its set contains its head with a probability of at least 1 - alpha, and of at most ``1 - alpha + 1 / (N + 1)`` if no
    two probabilities are equal.

    Words of one sentence are correlated, so the share of a file's sets varies more than for independent words.

    Raises:
        TreeparseError: if alpha is not between 0 and 1, there is no word, or a value is not a probability.
    """
    _check_share("alpha, the share of sets without the true head,", alpha)
    chances = np.asarray(probs, dtype=np.float64)
    if chances.ndim != 1 or not len(chances) or not ((chances >= 0) & (chances <= 1)).all():
        raise TreeparseError(
            "A conformal threshold needs the probabilities of the true heads of one or more words, from 0 to 1."
        )
    rank = math.floor(alpha * (len(chances) + 1) * (1 + 1e-12))  # 0.1 x 10 is 1, not a little less
    return float(np.partition(chances, rank - 1)[rank - 1]) if rank else 0.0


def conformal_trees(
    certainties: Sequence[Sequence[float]],
    right: Sequence[Sequence[bool]],
    alpha: float,
    *,
    of: PromiseFor = "sentences",
    delta: float | None = None,
) -> float:
    """Return the least certainty of the words that are kept, so that what is kept of a tree is right.

    A sentence keeps its words from a certainty on. The promise is of ``sentences``: a kept word is wrong in at most a
    share ``alpha`` of them; or of ``words``: the share of wrong words among the kept ones of a sentence is at most
    ``alpha`` in the mean of all sentences. A higher certainty keeps fewer words; the result is the least one for which
    the held-out sentences allow the promise, by conformal risk control (Angelopoulos et al. 2024), of which split
    conformal prediction is the case of sentences. The share of wrong words may fall as more are kept, so that the
    highest one of fewer words counts in its place.

    On average the promise holds over held-out and new sentences together. With ``delta`` it holds for new sentences but
    for a share ``delta`` of the draws of held-out ones (PAC; Bates et al. 2021, §3.1, with Bentkus' bound for words and
    the exact binomial one for sentences; for structures see Zhang et al. 2024).

    Args:
        certainties: of the words of held-out sentences, ``Parse.certainties``.
        right: whether the head and the label of each word are right.
        alpha: the share, above 0 and below 1.
        of: what the promise is of.
        delta: above 0 and below 1; None for a promise on average.

    Returns:
        The least certainty, from 0; infinity if the sentences are too few for any promise.

    Raises:
        TreeparseError: if a share is not between 0 and 1, there is no sentence, or certainties are no probabilities,
            one a word.
    """
    _check_share("alpha, the share of errors,", alpha)
    if delta is not None:
        _check_share("delta, the share of draws without the promise,", delta)
    if of not in ("sentences", "words"):
        raise TreeparseError(f"A promise is of sentences or words, got {of!r:.50}.")
    if not len(certainties) or [*map(len, certainties)] != [*map(len, right)]:
        raise TreeparseError("A promise about trees needs sentences, with a certainty and an outcome of every word.")
    steps = np.concatenate([_steps(*sentence, of) for sentence in zip(certainties, right, strict=True)], axis=1)
    levels, risks = steps[:, np.argsort(-steps[0], kind="stable")]
    if not ((levels >= 0) & (levels <= 1)).all():
        raise TreeparseError("Certainties are probabilities, from 0 to 1, got others.")
    count, sums = len(certainties), np.cumsum(risks)
    if delta is None:
        is_kept = (sums + 1) / (count + 1) <= alpha * (1 + 1e-12)
        allows_none = 1 / (count + 1) <= alpha * (1 + 1e-12)
    else:
        factor = 1.0 if of == "sentences" else math.e
        tails = factor * _binomial_cdf(count, alpha)
        is_kept, allows_none = tails[np.ceil(sums - 1e-9).astype(int)] <= delta, bool(tails[0] <= delta)
    if not allows_none:
        return math.inf
    # Steps at one level are taken together or not at all.
    return 0.0 if is_kept.all() else float(np.nextafter(levels[np.argmin(is_kept)], np.inf))


def _steps(certainties: Sequence[float], right: Sequence[bool], of: PromiseFor) -> NDArray[np.float64]:
    """Return ``(2, steps)`` of a sentence: the certainties down to which words are kept, and what the loss rises by."""
    levels = np.asarray(certainties, dtype=np.float64)
    order = np.argsort(-levels, kind="stable")
    wrong = np.cumsum(~np.asarray(right, dtype=bool)[order])
    losses = wrong > 0 if of == "sentences" else wrong / np.arange(1, len(order) + 1)
    rises = np.diff(np.maximum.accumulate(losses.astype(np.float64)), prepend=0.0)
    return np.stack([levels[order], rises])[:, rises > 0]


def _binomial_cdf(count: int, share: float) -> NDArray[np.float64]:
    """Return ``(count + 1,)``: the probability of at most k of ``count`` events of a probability."""
    ratios = np.log(np.arange(count, 0, -1) / np.arange(1, count + 1)) + math.log(share) - math.log1p(-share)
    logs = count * math.log1p(-share) + np.concatenate([[0.0], np.cumsum(ratios)])
    return np.minimum(np.cumsum(np.exp(logs)), 1.0)


def _check_share(name: str, value: float) -> None:
    if not 0 < value < 1:
        raise TreeparseError(f"{name} must be between 0 and 1, got {value}.")
