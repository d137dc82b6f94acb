"""Samplers of the literature that treeparse is compared with, and that are meant for nothing else.

*WilsonRC* ([Samp] Fig. 3) draws the word below the root in proportion to the weight of its root arc, and all else by
Wilson's walks up to that word. Below a given word the law is right, but a word's probability must also grow with the
weight of all trees below it: the sampler is biased ([Unb]). Walks choose among heads that are words, as in the authors'
code; the figure leaves the root's weight in the denominator.

*Without replacement by a list* ([Samp] Fig. 7): a tree is drawn word by word ([Samp] Fig. 5), and from what a head's
trees weigh together the weight of those is subtracted that are in the list of trees drawn. Such differences lose digits
as the list grows and where scores are peaked. Two limits are the authors' code's: heads of less than 1e-7 of what is
left are not drawn, and the list ends when it has all but 1e-5 of the weight; both lose trees. The update of the inverse
Laplacian is mended: where the column of word ``j`` changes by ``u``, it takes column ``j`` of the inverse, transposed,
not row ``j`` as (19c-d), Fig. 5 and Fig. 7 print.

[Samp] is Zmigrod, Vieira and Cotterell 2021, *Efficient Sampling of Dependency Structure*; [Unb] is Stanojević 2022,
*Unbiased and Efficient Sampling of Dependency Trees*.
"""

import numba
import numpy as np
from numpy.typing import NDArray
from scripts.support.compile import jit

from treeparse.kernels.random import new_stream, uniform, uniforms
from treeparse.kernels.samples.nonprojective_samples import fill_bins, new_bins, walk

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
NO_LIMIT = 2**62
NEGLIGIBLE = 1e-7  # of what is left
CLOSE = 1e-5  # times the weight of the trees drawn
SALT = 0x6C697374  # sets streams apart from those of other draws by a seed

# Not kept on disk, where numba would not see a change in the library's walks.
uncached_jit = numba.njit(nogil=True, error_model="numpy")


def wilson_rc(
    scores: FloatArray, lengths: IntArray, seeds: np.ndarray, count: int, *, limit: int = NO_LIMIT
) -> tuple[IntArray, IntArray]:
    """Heads ``(B, count, n+1)`` of biased samples with a single root, and the steps of their walks ``(B, count)``.

    Walks are those of ``treeparse.kernels.walks``, so that nothing but the algorithm sets this apart from the library's
    samplers. A tree of more than ``limit`` steps is left at -1: without a limit, walks from a word that the root word
    does not reach never end. Scores are ``(B, n+1, n+1)``, seeds ``(B,)`` uint64; some root arc must be finite.
    """
    heads = np.full((len(lengths), count, scores.shape[1]), -1)
    steps = np.zeros((len(lengths), count), np.int64)
    _walk_below_roots(scores, lengths, seeds, limit, heads, steps)
    return heads, steps


@uncached_jit
def _walk_below_roots(scores, lengths, seeds, limit, heads, steps):
    """Fill heads and steps."""
    (keep, other), reached = new_bins(scores.shape[1]), np.empty(scores.shape[1])
    for b in range(len(lengths)):
        n = lengths[b]
        fill_bins(scores[b], n, 1, 0.0, keep, other)
        top, total = scores[b, 0, 1 : n + 1].max(), 0.0
        for j in range(1, n + 1):
            total += np.exp(scores[b, 0, j] - top)
            reached[j] = total
        for s in range(heads.shape[1]):
            stream, u = uniform(new_stream(seeds[b], s))
            root = 1
            while reached[root] <= u * total:
                root += 1
            _, steps[b, s], roots = walk(n, root, limit, n, stream, keep, other, heads[b, s])
            if roots < 0:
                heads[b, s] = -1


def draw_list(scores: FloatArray, lengths: IntArray, seeds: np.ndarray, count: int) -> IntArray:
    """Heads ``(B, count, n+1)`` of different trees with a single root in the order drawn; -1 past the last one.

    Scores are ``(B, n+1, n+1)``, seeds ``(B,)`` uint64. On peaked scores trees are lost, repeated, or none at all.

    Raises:
        numpy.linalg.LinAlgError: if a sentence has no tree.
    """
    heads = np.full((len(lengths), count, scores.shape[1]), -1)
    for item, n in enumerate(lengths.tolist()):
        weights = _scaled_weights(scores[item, : n + 1, : n + 1])
        laplacian = np.diag(weights[1:, 1:].sum(0)) - weights[1:, 1:]
        laplacian[0] = weights[0, 1:]
        inverse = np.zeros((n + 1, n + 1))
        inverse[1:, 1:] = np.linalg.inv(laplacian)
        draws = uniforms(seeds[item : item + 1], count, n, salt=SALT)[0]
        own = np.full((count, n + 1), -1)
        found = _fill_list(weights, inverse, np.linalg.det(laplacian), draws, own)
        heads[item, :found, : n + 1] = own[:found]
    return heads


def _scaled_weights(scores: FloatArray) -> FloatArray:
    """Weights of arcs (n+1, n+1), at most 1 into every word, and 0 for what is no arc."""
    is_arc = ~np.eye(len(scores), dtype=bool)
    is_arc[:, 0] = False
    arcs = np.where(is_arc, scores, -np.inf)
    return np.where(is_arc, np.exp(arcs - np.append(0.0, arcs[:, 1:].max(0))), 0.0)


@jit
def _fill_list(weights, inverse, total, draws, heads):
    """Fill in trees until the list has all weight, or rounding has left no head; returns their number.

    Row ``j`` of the inverse is that of word ``j``; its column 1 stands for the root, as does row 1 of the Laplacian.
    """
    count, n = draws.shape
    left, shares = np.empty((n + 1, n + 1)), np.empty(n + 1)
    products, alike = np.empty(count), np.empty(count, np.int64)
    drawn = 0.0
    for tree in range(count):
        if total - drawn <= CLOSE * drawn:
            return tree
        for i in range(n + 1):
            for j in range(n + 1):
                left[i, j] = inverse[i, j]
        mass, product, matching = total, 1.0, tree
        for place in range(tree):
            alike[place] = place
        for j in range(1, n + 1):
            _share_mass(weights, left, mass, j, shares)
            for place in range(matching):
                shares[heads[alike[place], j]] -= products[alike[place]]
            head = _choose(shares, draws[tree, j - 1])
            if head < 0:
                return tree
            heads[tree, j] = head
            product *= weights[head, j]
            mass *= _fix_head(weights, left, j, head, shares)
            matching = _keep_alike(heads, alike, matching, j, head)
        products[tree] = product
        drawn += product
    return count


@jit
def _share_mass(weights, left, mass, j, shares):
    """What all trees with the heads so far weigh together, by the head of word ``j``."""
    own = left[j, j] if j > 1 else 0.0
    shares[0] = mass * weights[0, j] * left[j, 1]
    for i in range(1, len(shares)):
        shares[i] = mass * weights[i, j] * (own - (left[j, i] if i > 1 else 0.0))


@jit
def _choose(shares, u):
    """A head in proportion to its share, but for negligible ones; -1 if there is none."""
    total = 0.0
    for i in range(len(shares)):
        total += max(shares[i], 0.0)
    least, kept = NEGLIGIBLE * total, 0.0
    for i in range(len(shares)):
        kept += shares[i] if shares[i] > least else 0.0
    head, reached = -1, 0.0
    for i in range(len(shares)):
        if shares[i] > least and not reached > u * kept:
            head = i
            reached += shares[i]
    return head


@jit
def _fix_head(weights, left, j, head, change):
    """Update the inverse by Sherman and Morrison's formula; returns the factor of the determinant.

    ``change`` is working memory for what the column of word ``j`` in the Laplacian changes by.
    """
    n = len(change) - 1
    degree = 0.0
    for i in range(1, n + 1):
        change[i] = weights[i, j]
        degree += weights[i, j]
    change[j] = -degree
    change[1] = -weights[0, j]
    if head == 0:
        change[1] += weights[0, j]
    else:
        change[j] += weights[head, j] if j > 1 else 0.0
        change[head] -= weights[head, j] if head > 1 else 0.0
    factor = 1.0
    for i in range(1, n + 1):
        factor += change[i] * left[j, i]
    pivot = left[j].copy()
    for k in range(1, n + 1):
        product = 0.0
        for i in range(1, n + 1):
            product += change[i] * left[k, i]
        for i in range(1, n + 1):
            left[k, i] -= product * pivot[i] / factor
    return factor


@jit
def _keep_alike(heads, alike, matching, j, head):
    """Keep those of the trees that have this head, in place; returns their number."""
    kept = 0
    for place in range(matching):
        if heads[alike[place], j] == head:
            alike[kept] = alike[place]
            kept += 1
    return kept
