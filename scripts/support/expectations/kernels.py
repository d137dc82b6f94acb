"""The compiled loops of the algorithms in ``baselines``, in one file, so that numba's cache sees changes.

A Laplacian and its inverse are kept dependent-major, transposed: row ``j`` of a Laplacian, counted from 0, holds the
arcs into word ``j + 1``. Every loop reads the first ``n`` words of an item and leaves padding alone. Matrices (n, n)
have memory of their own and are no parts of a batch's: numba makes faster loops of contiguous arrays.
"""

import numpy as np
from scripts.support.compile import jit


@jit
def first_order(scores, lengths, log_z, shifted, weights, inverses, marginals):
    """Fill all but scores and lengths, by the determinant and the inverse of the Laplacian."""
    size = scores.shape[1]
    order, row = np.empty(size, np.int64), np.empty(size)
    for b in range(len(lengths)):
        n = lengths[b]
        inverse = np.empty((n, n))
        _load(scores[b], n, shifted[b], weights[b])
        _laplacian(weights[b], n, inverse)
        log_z[b] = _invert(inverse, n, order, row)
        _copy(inverse, n, inverses[b])
        _arc_derivatives(inverse, weights[b], n, marginals[b])


@jit
def smith_eisner(scores, lengths, entropies):
    """Fill the entropies, by a determinant for each word."""
    size = scores.shape[1]
    row = np.empty(size)
    shifted, weights, products = np.zeros((3, size, size))
    for b in range(len(lengths)):
        n = lengths[b]
        laplacian, tangent, work = np.empty((n, n)), np.empty((n, n)), np.empty((n, n))
        _load(scores[b], n, shifted, weights)
        _multiply_elements(weights, shifted, products)
        _laplacian(weights, n, laplacian)
        _laplacian(products, n, tangent)
        _copy(laplacian, n, work)
        log_z, _ = _log_determinant(work, n, row)
        expected_score = 0.0
        for j in range(n):
            _copy(laplacian, n, work)
            for i in range(n):
                work[j, i] = tangent[j, i]
            log_term, sign = _log_determinant(work, n, row)
            expected_score += sign * np.exp(log_term - log_z)
        entropies[b] = log_z - expected_score


@jit
def unified(lengths, weights, inverses, marginals, vectors, products):
    """Fill the products by the matrix ``B L_v B``."""
    size = weights.shape[1]
    weighted = np.empty((size, size))
    for b in range(len(lengths)):
        n = lengths[b]
        inverse = inverses[b, :n, :n].copy()
        laplacian, half, whole = np.empty((n, n)), np.empty((n, n)), np.empty((n, n))
        for v in range(vectors.shape[1]):
            product = products[b, v]
            _multiply_elements(weights[b], vectors[b, v], weighted)
            _laplacian(weighted, n, laplacian)
            _multiply(inverse, laplacian, n, half)
            _multiply(half, inverse, n, whole)
            _arc_derivatives(whole, weights[b], n, product)
            for i in range(n + 1):
                for j in range(n + 1):
                    product[i, j] = marginals[b, i, j] * vectors[b, v, i, j] - product[i, j]


@jit
def materialised(lengths, weights, inverses, marginals, vectors, room, products):
    """Fill the products by way of the Hessian, which is put into ``room``."""
    for b in range(len(lengths)):
        n = lengths[b]
        arcs = n * (n + 1)
        hessian = room[: arcs * arcs].reshape(arcs, arcs)
        _hessian(weights[b], inverses[b, :n, :n].copy(), marginals[b], n, hessian)
        for v in range(vectors.shape[1]):
            vector = vectors[b, v, : n + 1, 1 : n + 1].copy().reshape(arcs)
            for arc in range(arcs):
                row = hessian[arc]
                total = 0.0
                for other in range(arcs):
                    total += row[other] * vector[other]
                products[b, v, arc // n, arc % n + 1] = total


@jit
def conditioned(lengths, weights, inverses, marginals, vectors, products):
    """Fill the products by fixing one arc after the other."""
    size = weights.shape[1]
    fixed = np.zeros((size, size))
    for b in range(len(lengths)):
        n = lengths[b]
        inverse, conditional = inverses[b, :n, :n].copy(), np.empty((n, n))
        step = np.empty(n)
        for i in range(n + 1):
            for j in range(1, n + 1):
                if marginals[b, i, j] > 0.0:
                    _fix_arc(inverse, i, j, n, step, conditional)
                    _arc_derivatives(conditional, weights[b], n, fixed)
                    fixed[:, j] = 0.0
                    fixed[i, j] = 1.0
                    for v in range(vectors.shape[1]):
                        change = 0.0
                        for k in range(n + 1):
                            for other in range(n + 1):
                                change += (fixed[k, other] - marginals[b, k, other]) * vectors[b, v, k, other]
                        products[b, v, i, j] = marginals[b, i, j] * change


@jit
def _hessian(weights, inverse, marginals, n, hessian):
    """The covariances of all pairs of arcs; arc (i, j) is number ``i n + j - 1``."""
    arcs = n * (n + 1)
    steps, step = np.empty((n, arcs)), np.empty(n)
    for i in range(n + 1):
        for j in range(1, n + 1):
            _step(inverse, i, j, n, step)
            for word in range(n):
                steps[word, i * n + j - 1] = weights[i, j] * step[word]
    for arc in range(arcs):
        i, j = arc // n, arc % n
        others, row = steps[j], hessian[arc]
        for word in range(n):
            step[word] = steps[word, arc]
        for head in range(n + 1):
            part, other = row[head * n : head * n + n], others[head * n : head * n + n]
            for word in range(n):
                part[word] = -step[word] * other[word]
        row[arc] += marginals[i, j + 1]


@jit
def _fix_arc(inverse, i, j, n, step, conditional):
    """The inverse if (i, j) is the only arc into word ``j``, whatever its weight."""
    _step(inverse, i, j, n, step)
    pivot = step[j - 1]
    step[j - 1] -= 1.0
    for k in range(n):
        old, new = inverse[k], conditional[k]
        factor = old[j - 1] / pivot
        for word in range(n):
            new[word] = old[word] - factor * step[word]


@jit
def _step(inverse, i, j, n, step):
    """``B u`` for the column ``u`` that a unit of weight of the arc (i, j) adds to column ``j`` of the Laplacian."""
    added, taken = (inverse[j - 1], inverse[i - 1]) if i > 0 else (inverse[0], inverse[0])
    plus = 0.0 if i > 0 and j == 1 else 1.0  # row 1 of the Laplacian holds the root's arcs only
    minus = 1.0 if i > 1 else 0.0
    for word in range(n):
        step[word] = plus * added[word] - minus * taken[word]


@jit
def _load(scores, n, shifted, weights):
    """Scores less the best of their column, and their exponentials; 0 at what is no arc."""
    for j in range(n + 1):
        best = -np.inf
        for i in range(n + 1):
            if i != j and scores[i, j] > best:
                best = scores[i, j]
        for i in range(n + 1):
            arc = i != j and j > 0 and scores[i, j] > -np.inf
            shifted[i, j] = scores[i, j] - best if arc else 0.0
            weights[i, j] = np.exp(shifted[i, j]) if arc else 0.0


@jit
def _laplacian(values, n, laplacian):
    """The Laplacian of arc values, which are 0 at what is no arc."""
    for j in range(n):
        total = 0.0
        for i in range(n):
            laplacian[j, i] = -values[i + 1, j + 1]
            total += values[i + 1, j + 1]
        laplacian[j, j] = total
        laplacian[j, 0] = values[0, j + 1]


@jit
def _arc_derivatives(matrix, weights, n, result):
    """The derivative of tr(matrix L) in every arc's log weight (n+1, n+1)."""
    own = np.empty(n)
    for j in range(n):
        own[j] = matrix[j, j] if j > 0 else 0.0
        result[0, j + 1] = weights[0, j + 1] * matrix[0, j]
    for i in range(n):
        row, weight, out = matrix[i], weights[i + 1], result[i + 1]
        factor = 1.0 if i > 0 else 0.0
        for j in range(n):
            out[j + 1] = weight[j + 1] * (own[j] - factor * row[j])


@jit
def _log_determinant(matrix, n, row):
    """Log absolute value and sign of a determinant, by elimination in place from the last column on."""
    log_value, sign = 0.0, 1.0
    for k in range(n - 1, -1, -1):
        chosen = k
        for i in range(k):
            if abs(matrix[i, k]) > abs(matrix[chosen, k]):
                chosen = i
        pivot = matrix[chosen, k]
        if pivot == 0.0:
            return -np.inf, 0.0
        sign = -sign if (pivot < 0.0) != (chosen != k) else sign
        log_value += np.log(abs(pivot))
        for j in range(k):  # a copy of its own lets the loop below be vectorised
            row[j] = matrix[chosen, j] / pivot
            matrix[chosen, j] = matrix[k, j]
        matrix[chosen, k] = matrix[k, k]
        for i in range(k):
            factor = matrix[i, k]
            for j in range(k):
                matrix[i, j] -= factor * row[j]
    return log_value, sign


@jit
def _invert(matrix, n, order, row):
    """Invert in place by Gauss and Jordan with pivots; returns the log of the absolute determinant."""
    log_value = 0.0
    for k in range(n):
        order[k] = k
        for i in range(k + 1, n):
            if abs(matrix[i, k]) > abs(matrix[order[k], k]):
                order[k] = i
        pivot = matrix[order[k], k]
        log_value += np.log(abs(pivot))
        for j in range(n):
            row[j] = matrix[order[k], j] / pivot
            matrix[order[k], j] = matrix[k, j]
        row[k] = 1.0 / pivot
        for i in range(n):
            factor = matrix[i, k]
            matrix[i, k] = 0.0
            if i != k:
                for j in range(n):
                    matrix[i, j] -= factor * row[j]
        for j in range(n):
            matrix[k, j] = row[j]
    for k in range(n - 1, -1, -1):
        for i in range(n):
            matrix[i, k], matrix[i, order[k]] = matrix[i, order[k]], matrix[i, k]
    return log_value


@jit
def _copy(matrix, n, target):
    """As the assignment of a slice does, which takes numba seconds to compile, for the sake of an error message."""
    for i in range(n):
        for j in range(n):
            target[i, j] = matrix[i, j]


@jit
def _multiply_elements(left, right, product):
    """Element by element, square matrices."""
    for i in range(len(left)):
        for j in range(len(left)):
            product[i, j] = left[i, j] * right[i, j]


@jit
def _multiply(left, right, n, product):
    """The product of two matrices (n, n)."""
    for i in range(n):
        for j in range(n):
            product[i, j] = 0.0
        for k in range(n):
            factor = left[i, k]
            for j in range(n):
                product[i, j] += factor * right[k, j]
