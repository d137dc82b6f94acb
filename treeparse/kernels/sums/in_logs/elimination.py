"""Sums over non-projective trees by elimination in logs, for items whose plain weights under- or overflow.

Words are eliminated as in ``elimination``. A log is kept as two numbers, a value and the remainder that its rounding
lost, so that the shares of a sum's terms are right however large the scores are. Each sum is taken at once, relative to
its largest term.

Every weight may carry an expected *value*: of a sum the mean of its terms' by their shares, of a product the sum of the
factors', of a quotient their difference. The pivots' values add up to that of a tree. An arc has a value of its own.
Where code lengths are asked for, every term of a sum adds minus the log of its share, so that the value of all trees is
their entropy. Scores enter the shares alone: values do not grow with them.

On the way back, a weight takes the derivatives of the result in its value and in its log. Those of an arc's own value
and log are the arc's marginal and the derivative in its score: along a vector of values, a product with the Hessian.

The weight of ``i -> j`` is final when the later one of its nodes is eliminated; it is summed then, at once, from the
arc's own weight and the paths through all words that were eliminated before. So the way back finds the same shares
again. Rows lie by the later node, and a word's own weight is the one path through that node: the other half of it is 1.
"""

from typing import NamedTuple

import numpy as np

from treeparse.kernels.arrays import FloatArray, IntArray
from treeparse.kernels.compile import exact_kernel
from treeparse.kernels.exponential import weigh_log_row
from treeparse.kernels.logspace import add_log_rows, take_code_row, two_sum
from treeparse.kernels.rows import add_row, add_rows, add_two_rows, multiply_row, scale_row, whole
from treeparse.kernels.sums.centring import centred, rescaled
from treeparse.kernels.sums.item import NO_TREE, first_head
from treeparse.kernels.threads import run_batch
from treeparse.kernels.vectors import LANES

PLANES = 3
LOG, REMAINDER, VALUE = range(PLANES)
SHARE = PLANES  # of a sum's term
OF_VALUE, OF_LOG = range(2)  # derivatives of the result
NO_VALUES = np.empty((0, 0, 0))


class LogSums(NamedTuple):
    """What is summed over the trees of a batch; items without a tree have 0, and their log partitions are -inf."""

    log_z: FloatArray  # (2, B) as two numbers
    values: FloatArray  # (B,) the expected values of trees
    marginals: FloatArray  # (B, n+1, n+1)
    derivatives: FloatArray  # (B, n+1, n+1) of the expected values in the scores


def sum_in_logs(
    scores: FloatArray,
    lengths: IntArray,
    *,
    values: FloatArray = NO_VALUES,
    with_codes: bool = False,
    differentiate: bool = True,
    single_root: bool,
    threads: int = 1,
) -> LogSums:
    """Return sums over trees.

    Args:
        scores: ``(2, B, n+1, n+1)``, with what their rounding lost.
        lengths: ``(B,)``.
        values: of arcs, ``(B, n+1, n+1)``; 0 if left out.
        with_codes: whether a tree's value has minus the log of its probability, too.
        differentiate: whether marginals and derivatives are computed too.
        single_root: whether exactly one word hangs from node 0.
        threads: how many threads to use at most.
    """
    batch, shape = len(lengths), scores.shape[1:] if differentiate else (0, 0, 0)
    result = LogSums(np.full((2, batch), -np.inf), np.zeros(batch), np.zeros(shape), np.zeros(shape))
    arguments = lengths, scores, values, with_codes, single_root, *result
    run_batch(_sum_items, lambda n: 20 * n**3, *arguments, threads=threads)
    return result


def log_partition_and_marginals(
    arcs: FloatArray,
    lengths: IntArray,
    *,
    remainders: FloatArray | None = None,
    single_root: bool,
    threads: int = 1,
) -> tuple[FloatArray, FloatArray]:
    """Return the log partition ``(B,)`` and the probability of every arc ``(B, n+1, n+1)``, 0 without a tree."""
    sums = sum_in_logs(with_remainders(arcs, remainders), lengths, single_root=single_root, threads=threads)
    return sums.log_z[0], sums.marginals


def hessian_vector_product(
    arcs: FloatArray,
    lengths: IntArray,
    vectors: FloatArray,
    *,
    remainders: FloatArray | None = None,
    single_root: bool,
    threads: int = 1,
) -> FloatArray:
    """Return the Hessian of the log partition in the scores times ``vectors``, all ``(B, n+1, n+1)``."""
    values, scales = centred(arcs, lengths, vectors, threads)
    options = {"single_root": single_root, "threads": threads}
    sums = sum_in_logs(with_remainders(arcs, remainders), lengths, values=values, **options)
    return rescaled(sums.derivatives, scales)


def with_remainders(scores: FloatArray, remainders: FloatArray | None = None) -> FloatArray:
    """Return scores as two numbers each."""
    return np.stack([scores, np.zeros_like(scores) if remainders is None else remainders])


class _Sentence(NamedTuple):
    """What the arcs of a sentence have."""

    words: int
    scores: FloatArray  # (2, n+1, n+1)
    values: FloatArray  # (n+1, n+1), or empty


class _Elimination(NamedTuple):
    """The weights of arcs between an earlier and a later node ``[plane, earlier, later]``, and working memory.

    Before a weight is final, its place has the arc's own score and value.
    """

    width: int  # of a row
    plane: int  # numbers in a plane
    with_codes: bool
    with_values: bool
    before: FloatArray  # of arcs from the earlier node to the later one, over the latter's pivot
    after: FloatArray  # of arcs from the later node to the earlier one
    pivots: FloatArray  # (PLANES, n+1)
    outer_before: FloatArray  # [derivative, earlier, later]
    outer_after: FloatArray
    terms: FloatArray  # (PLANES + 1, width) of a sum, and their shares


@exact_kernel
def _sum_items(
    start,
    stop,
    lengths,
    scores,
    values,
    with_codes,
    single_root,
    log_z,
    sums_of_values,
    marginals,
    derivatives,
):
    differentiate = len(marginals) > 0
    eliminated = _new_elimination(scores.shape[2] - 1, with_codes, len(values) > 0, differentiate)
    for b in range(start, stop):
        n = lengths[b]
        own = scores[:, b]
        sentence = _Sentence(n, own, values[b] if len(values) > 0 else own[0, :0])
        for i in range(n + 1):
            for j in range(i + 1, n + 1):
                _load_arcs(sentence, i, j, eliminated)
        root_word = _eliminate(n, 1 if single_root else n + 1, eliminated)
        if root_word == NO_TREE:
            continue
        total = lost = 0.0
        for k in range(1, n + 1):
            total, low = two_sum(total, eliminated.pivots[LOG, k])
            lost += low + eliminated.pivots[REMAINDER, k]
            sums_of_values[b] += eliminated.pivots[VALUE, k]
        log_z[0, b], log_z[1, b] = two_sum(total, lost)
        if differentiate:
            eliminated.outer_before[:, : n + 1] = eliminated.outer_after[:, : n + 1] = 0.0
            _differentiate(sentence, root_word, eliminated)
            _store(eliminated, n, OF_VALUE, marginals[b])
            _store(eliminated, n, OF_LOG, derivatives[b])


@exact_kernel
def _new_elimination(n, with_codes, with_values, differentiate):
    """Return memory, which is 0: vectors are read beyond the ends of rows, and products there must stay finite."""
    size, width = n + 1, whole(n + 1) + LANES
    outer = size if differentiate else 0
    return _Elimination(
        width,
        size * width,
        with_codes,
        with_codes or with_values,
        np.zeros((PLANES, size, width)),
        np.zeros((PLANES, size, width)),
        np.zeros((PLANES, size)),
        np.zeros((2, outer, width)),
        np.zeros((2, outer, width)),
        np.zeros((PLANES + 1, width)),
    )


@exact_kernel
def _load_arcs(sentence, i, j, eliminated):
    """Load what the arcs between an earlier and a later node have of their own."""
    for head, dependent, weights in ((i, j, eliminated.before), (j, i, eliminated.after)):
        if dependent > 0:
            for part in range(2):
                weights[LOG + part, i, j] = sentence.scores[part, head, dependent]
            is_allowed = weights[LOG, i, j] > -np.inf
            if eliminated.with_values:
                has_value = len(sentence.values) > 0 and is_allowed
                weights[VALUE, i, j] = sentence.values[head, dependent] if has_value else 0.0


@exact_kernel
def _store(eliminated, n, derivative, result):
    """Store a derivative of the result in the arcs' own weights."""
    for i in range(n + 1):
        for j in range(i + 1, n + 1):
            result[i, j] = eliminated.outer_before[derivative, i, j]
            if i > 0:
                result[j, i] = eliminated.outer_after[derivative, i, j]


@exact_kernel
def _eliminate(n, root_word, eliminated):
    """Fill the weights and pivots; return the root word, or ``NO_TREE``."""
    before, after, pivots = eliminated.before, eliminated.after, eliminated.pivots
    for k in range(n, 0, -1):
        for i in range(k):
            planes = _sum_paths(i, k, _last_word(n, root_word, i, k), eliminated)
            for plane in range(PLANES):
                before[plane, i, k] = planes[plane]
            if i > 0:
                planes = _sum_paths(k, i, n, eliminated)
                for plane in range(PLANES):
                    after[plane, i, k] = planes[plane]
        if not _sum_pivot(k, root_word, eliminated):
            if root_word != 1 or before[LOG, 0, k] == -np.inf:
                return NO_TREE
            root_word = k  # the arcs from k take the place of those from node 0
            _sum_pivot(k, root_word, eliminated)
            for j in range(1, k):
                _remove_arc(before, j)
        for i in range(k):
            if before[LOG, i, k] > -np.inf:
                before[LOG, i, k], low = two_sum(before[LOG, i, k], -pivots[LOG, k])
                before[REMAINDER, i, k] = low + (before[REMAINDER, i, k] - pivots[REMAINDER, k])
            before[VALUE, i, k] -= pivots[VALUE, k]
    return root_word


@exact_kernel
def _remove_arc(before, j):
    """Remove the arc from node 0 to a word."""
    before[LOG, 0, j], before[REMAINDER, 0, j] = -np.inf, 0.0


@exact_kernel
def _last_word(n, root_word, i, j):
    """Return the last word through which the paths ``i -> j`` go: the root word where it took the place of node 0."""
    return root_word if i == 0 and j < root_word <= n else n


@exact_kernel
def _sum_paths(i, j, last, eliminated):
    """Sum the weights of the paths ``i -> k -> j`` from the later one of i and j on; return all planes of the sum."""
    before, after, terms = eliminated.before, eliminated.after, eliminated.terms
    width, plane, first = eliminated.width, eliminated.plane, max(i, j)
    x, y, count = j * width + first, i * width + first, last + 1 - first  # the rows of k -> j and of i -> k
    if eliminated.with_values:
        add_two_rows(terms, VALUE * width, after, VALUE * plane + x, before, VALUE * plane + y, count)
    top = add_log_rows(terms, 0, terms, width, after, x, after, x + plane, before, y, before, y + plane, count)
    return _sum_terms(top, count, eliminated)


@exact_kernel
def _sum_terms(top, count, eliminated):
    """Sum terms of which the largest log is given; return all planes of the sum.

    ``SHARE`` takes the terms' shares, and ``VALUE`` the shares times the values, code lengths included.
    """
    terms, width = eliminated.terms, eliminated.width
    if top == -np.inf:
        return top, 0.0, 0.0
    total, value = weigh_log_row(terms, SHARE * width, terms, 0, terms, width, top, count), 0.0
    log_total = np.log(total)
    scale_row(terms, SHARE * width, 1.0 / total, count)
    if eliminated.with_codes:
        take_code_row(terms, VALUE * width, terms, 0, terms, width, top, log_total, count)
    if eliminated.with_values:
        value = multiply_row(terms, VALUE * width, terms, SHARE * width, count)
    high, low = two_sum(top, log_total)
    return high, low, value


@exact_kernel
def _sum_pivot(k, root_word, eliminated):
    """Fill the pivot of word ``k``; return whether it has any head."""
    terms, before, first, top = eliminated.terms, eliminated.before, first_head(k, root_word), -np.inf
    for i in range(first, k):
        for plane in range(PLANES):
            terms[plane, i - first] = before[plane, i, k]
        top = max(top, before[LOG, i, k])
    planes = _sum_terms(top, k - first, eliminated)
    for plane in range(PLANES):
        eliminated.pivots[plane, k] = planes[plane]
    return top > -np.inf


@exact_kernel
def _differentiate(sentence, root_word, eliminated):
    """Fill the derivatives of the value in all weights: ``_eliminate`` in reverse."""
    before, n = eliminated.before, sentence.words
    for k in range(1, n + 1):
        _share_pivot(k, root_word, eliminated)
        for i in range(k):
            _load_arcs(sentence, i, k, eliminated)
            if i == 0 and k < root_word <= n:
                _remove_arc(before, k)
            _share_weight(i, k, _last_word(n, root_word, i, k), eliminated, eliminated.outer_before)
            if i > 0:
                _share_weight(k, i, n, eliminated, eliminated.outer_after)


@exact_kernel
def _share_pivot(k, root_word, eliminated):
    """Give each weight in a pivot its share of the pivot's derivatives."""
    before, outer = eliminated.before, eliminated.outer_before
    of_value, of_log = 1.0, 0.0
    for i in range(k):
        of_value -= outer[OF_VALUE, i, k]
        of_log -= outer[OF_LOG, i, k]
    for i in range(first_head(k, root_word), k):
        share = np.exp(before[LOG, i, k] + before[REMAINDER, i, k])
        if share > 0.0:
            value = before[VALUE, i, k]  # less the pivot's
            if eliminated.with_codes:
                value -= before[LOG, i, k] + before[REMAINDER, i, k]
            outer[OF_VALUE, i, k] = max(outer[OF_VALUE, i, k] + of_value * share, 0.0)  # rounding may leave less
            outer[OF_LOG, i, k] += of_log * share + of_value * share * value


@exact_kernel
def _share_weight(i, j, last, eliminated, outer):
    """Give each path ``i -> k -> j`` its share of the derivatives of their sum; its place in ``outer`` becomes free."""
    width, terms, first, earlier = eliminated.width, eliminated.terms, max(i, j), min(i, j)
    of_value, of_log = outer[OF_VALUE, earlier, first], outer[OF_LOG, earlier, first]
    outer[OF_VALUE, earlier, first] = outer[OF_LOG, earlier, first] = 0.0
    if of_value == 0.0:
        return
    count, planes = last + 1 - first, _sum_paths(i, j, last, eliminated)
    if planes[LOG] == -np.inf:
        return
    for where, at in ((eliminated.outer_after, j * width + first), (eliminated.outer_before, i * width + first)):
        add_row(where, at, terms, SHARE * width, of_value, count)
        if eliminated.with_values:
            at += eliminated.plane
            rest = of_log - of_value * planes[VALUE]
            add_rows(where, at, terms, SHARE * width, terms, VALUE * width, rest, of_value, count)
