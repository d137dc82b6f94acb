"""Oracle scores of lists of parses: the best tree of each list, and the probability of all trees of a list."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treeparse.errors import TreeparseError
from treeparse.metrics.counts import (
    REMEDY,
    check_comparable,
    label_ratio,
    ratio,
    universal_arcs,
    without_nan,
    word_mismatch,
)
from treeparse.sentence import EMPTY, Sentence


@dataclass(frozen=True, slots=True)
class OracleScores:
    """Oracle scores of the first ``size`` trees of every list; all trees of a shorter list count.

    ``trees`` is the mean number of different trees. ``uas`` and ``las`` are the shares of words that are right in the
    list's tree with the most right heads and, another tree maybe, in that with the most right heads with universal
    labels, over all words of all sentences. ``complete_match`` is the share of sentences whose gold tree, with
    universal labels, is in the list. ``mass`` is the mean of the summed probabilities of different trees; None without
    probabilities. Words without a gold label do not count in ``las``, nor their sentences in ``complete_match``; NaN
    if gold has no label for them.
    """

    size: int
    trees: float
    uas: float
    las: float
    complete_match: float
    mass: float | None

    def as_dict(self) -> dict[str, Any]:
        """Return all values by name, for JSON: None for NaN."""
        return asdict(self, dict_factory=without_nan)


def oracle_scores(
    gold: Sequence[Sentence],
    lists: Sequence[Sequence[Sentence]],
    log_probs: Sequence[Sequence[float]] | None = None,
) -> list[OracleScores]:
    """Score the best tree of each list against gold, for the first 1, 2, 4, ... trees and for the longest list.

    An oracle that knows the gold tree chooses from each list: its scores bound those of any reranker. At size 1 they
    are the scores of the first trees, and they never fall as lists grow. Words and labels are compared, and averages
    taken, as in ``attachment_scores``.

    Args:
        gold: the sentences with their gold trees.
        lists: the trees of each sentence, one or more, in order; a repeated tree counts once.
        log_probs: the log probabilities of the trees, nats.

    Raises:
        TreeparseError: if a list is empty, log probabilities do not match the lists, or as in ``attachment_scores``.
    """
    _check(gold, lists, log_probs)
    if not gold:
        return []
    longest = max(map(len, lists))
    sizes = [size for size in (2**power for power in range(longest.bit_length())) if size < longest] + [longest]
    some_log_probs = [[-math.inf] * len(trees) for trees in lists] if log_probs is None else log_probs
    sums = np.zeros((len(sizes), 5))
    for sentence, trees, log_probs_of_trees in zip(gold, lists, some_log_probs, strict=True):
        running = _running(sentence, trees, log_probs_of_trees)
        sums += running[[min(size, len(trees)) - 1 for size in sizes]]
    known = [sum(label != EMPTY for label in sentence.labels or ()) for sentence in gold]
    words, labels = sum(map(len, gold)), sum(known)
    with_labels = sum(count == len(sentence) for count, sentence in zip(known, gold, strict=True))
    scores = []
    for size, (different, heads, labeled, complete, mass) in zip(sizes, sums.tolist(), strict=True):
        las = label_ratio(int(labeled), labels, labels, words)
        complete_match = label_ratio(int(complete), with_labels, with_labels, len(gold))
        shares = ratio(int(heads), words), las, complete_match
        scores.append(
            OracleScores(size, different / len(gold), *shares, None if log_probs is None else mass / len(gold))
        )
    return scores


def _running(gold: Sentence, trees: Sequence[Sentence], log_probs: Sequence[float]) -> NDArray[np.float64]:
    """Return ``(trees, 5)``, for the list up to each tree.

    The columns are the different trees, right heads, right labelled arcs, whether all arcs are right, and probability.
    """
    gold_arcs = universal_arcs(gold)
    rows, seen = [], set()
    for tree, log_prob in zip(trees, log_probs, strict=True):
        pairs = list(zip(gold_arcs, universal_arcs(tree), strict=True))
        heads = sum(ours[0] == theirs[0] for ours, theirs in pairs)
        labeled = sum(ours == theirs and ours[1] != EMPTY for ours, theirs in pairs)
        is_new = (tree.heads, tree.labels) not in seen
        seen.add((tree.heads, tree.labels))
        rows.append((is_new, heads, labeled, labeled == len(gold), is_new * math.exp(log_prob)))
    table = np.array(rows, dtype=np.float64)
    is_sum = [True, False, False, False, True]  # of the columns; the others are the best of the list
    return np.where(is_sum, np.cumsum(table, axis=0), np.maximum.accumulate(table))


def _check(
    gold: Sequence[Sentence], lists: Sequence[Sequence[Sentence]], log_probs: Sequence[Sequence[float]] | None
) -> None:
    """Raise if lists are empty, have other words than gold, or other numbers of log probabilities."""
    for number, trees in enumerate(lists, 1):
        if not trees:
            raise TreeparseError(f"Sentence {number}: its list has no tree; leave the sentence out of gold and lists.")
    check_comparable(gold, [trees[0] for trees in lists])
    for number, (sentence, trees) in enumerate(zip(gold, lists, strict=True), 1):
        for rank, tree in enumerate(trees, 1):
            problem = None if sentence.forms == tree.forms else word_mismatch(sentence, tree)
            if problem is None and (tree.heads is None or tree.labels is None):
                problem = "the system's parse has no heads or no labels"
            if problem is not None:
                raise TreeparseError(f"Sentence {number}, tree {rank}: {problem}; {REMEDY}.")
    if log_probs is not None and [*map(len, log_probs)] != [*map(len, lists)]:
        raise TreeparseError("The log probabilities do not fit the lists: give one for every tree of every list.")
