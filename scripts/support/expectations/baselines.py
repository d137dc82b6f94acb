"""Algorithms of the literature that treeparse is timed against: right on mild scores, and meant for nothing else.

All rest on the Laplacian of the arc weights, whose determinant is the sum over single-root trees ([MTT]), and on its
inverse. [Exp] is Zmigrod, Vieira and Cotterell 2021, *Efficient Computation of Expectations under Spanning Tree
Distributions*. Its (24) is mended: the arc (0, j) adds its weight to entry (1, j) of the Laplacian; any other arc
(i, j) adds it to (j, j) unless j is word 1, and takes it from (i, j) unless i is word 1.

Batches are padded: scores ``(B, n+1, n+1)`` in float64, lengths ``(B,)``. R functions of trees that are sums over arcs
are given as ``(B, R, n+1, n+1)``. The loops are compiled, except where a function works on tensors.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scripts.support.expectations import kernels
from torch import Tensor

Array = NDArray[np.float64]
Lengths = NDArray[np.int64]


class FirstOrder(NamedTuple):
    """What T1 finds, from which the second-order algorithms start; 0 at padding."""

    lengths: Lengths  # (B,)
    log_z: Array  # (B,), of shifted scores, with which entropies and covariances are the same
    shifted: Array  # (B, n+1, n+1), scores less the best of their column
    weights: Array  # (B, n+1, n+1), their exponentials
    inverses: Array  # (B, n, n), of the Laplacians, transposed
    marginals: Array  # (B, n+1, n+1)


# The Hessian of log Z, which is the covariance of arcs, times vectors (B, V, n+1, n+1), in the same shape.
Products = Callable[[FirstOrder, Array], Array]


def first_order(scores: Array, lengths: Lengths) -> FirstOrder:
    """T1 by determinant and inverse, O(n^3) ([Exp] §5.1): log partition and marginals."""
    size = scores.shape[-1]
    shifted, weights, marginals = np.zeros_like(scores), np.zeros_like(scores), np.zeros_like(scores)
    inverses = np.zeros((len(scores), size - 1, size - 1))
    log_z = np.empty(len(scores))
    kernels.first_order(scores, lengths, log_z, shifted, weights, inverses, marginals)
    return FirstOrder(lengths, log_z, shifted, weights, inverses, marginals)


def t1_entropy(scores: Array, lengths: Lengths) -> Array:
    """Entropies (B,) as log Z less the expected score, by T1, O(n^3) ([Exp] §6.2)."""
    found = first_order(scores, lengths)
    return found.log_z - np.einsum("bij,bij->b", found.marginals, found.shifted)


def smith_eisner_entropy(scores: Array, lengths: Lengths) -> Array:
    """Entropies (B,) in O(n^4): Smith and Eisner 2007, *Bootstrapping Feature-Rich Dependency Parsers*, and [Exp] §6.2.

    The expected score is a sum over words. A word's term is the determinant of the Laplacian in which the arcs into
    this word weigh w log w instead of w.
    """
    entropies = np.empty(len(scores))
    kernels.smith_eisner(scores, lengths, entropies)
    return entropies


def t1_entropy_of_tensors(scores: Tensor, lengths: Tensor) -> Tensor:
    """``t1_entropy`` by torch's LU."""
    shifted, weights, diagonal = _shifted(scores, lengths)
    laplacian = _laplacian(weights) + diagonal
    gradient = torch.linalg.inv(laplacian).mT  # of log Z in the entries of the Laplacian
    return torch.linalg.slogdet(laplacian).logabsdet - (gradient * _laplacian(weights * shifted)).sum((1, 2))


def smith_eisner_entropy_of_tensors(scores: Tensor, lengths: Tensor) -> Tensor:
    """``smith_eisner_entropy`` by torch's LU, all words of the batch at once."""
    shifted, weights, diagonal = _shifted(scores, lengths)
    laplacian, tangent = _laplacian(weights) + diagonal, _laplacian(weights * shifted)
    log_z = torch.linalg.slogdet(laplacian).logabsdet
    own_column = torch.eye(laplacian.shape[-1], dtype=torch.bool).unsqueeze(1)
    terms = torch.linalg.slogdet(torch.where(own_column, tangent.unsqueeze(1), laplacian.unsqueeze(1)))
    return log_z - (terms.sign * (terms.logabsdet - log_z.unsqueeze(1)).exp()).sum(1)


def t2_products(found: FirstOrder, vectors: Array) -> Array:
    """T2, unified, O(n^3) a vector ([Exp] §5.2, Fig. 3): B L_v B for the Laplacian L_v of the arc values w v.

    With one vector for each of R functions these are the vector-Jacobian products of T1, which is T2v.
    """
    products = np.zeros_like(vectors)
    kernels.unified(found.lengths, found.weights, found.inverses, found.marginals, vectors, products)
    return products


def t2h_products(found: FirstOrder, vectors: Array, room: Array | None = None) -> Array:
    """T2h, O(n^4): materialises the Hessian, then multiplies ([Exp] §5.2).

    The covariance of two arcs is -tr(B L_a B L_c); an arc with itself has its marginal in addition, which the paper's
    footnote 13 drops. ``room`` holds memory for ``hessian_size`` numbers, to be used instead of new memory.
    """
    room = np.empty(hessian_size(found.lengths.max())) if room is None else room
    products = np.zeros_like(vectors)
    kernels.materialised(found.lengths, found.weights, found.inverses, found.marginals, vectors, room, products)
    return products


def hessian_size(words: int) -> int:
    """How many numbers the Hessian of a sentence has."""
    return (words * (words + 1)) ** 2


def druck_smith_products(found: FirstOrder, vectors: Array) -> Array:
    """O(n^4): Druck and Smith 2009, *Computing Conditional Feature Covariance in Non-projective Tree CRFs*.

    One arc after the other is fixed. That changes one column of the Laplacian, so its inverse changes by an outer
    product, which gives all marginals under the condition that the arc is there, and with them the arc's covariances.
    """
    products = np.zeros_like(vectors)
    kernels.conditioned(found.lengths, found.weights, found.inverses, found.marginals, vectors, products)
    return products


def covariance(products: Products, scores: Array, lengths: Lengths, r: Array, s: Array) -> Array:
    """Cov(r, s) (B, R, S) under every sentence's trees, by any algorithm for the products."""
    return np.einsum("brij,bsij->brs", products(first_order(scores, lengths), r), s)


def ge_gradient(products: Products, scores: Array, lengths: Lengths, features: Array, targets: Array) -> Array:
    """Gradient (B, n+1, n+1) of |E[f] - target|^2 / 2 in the scores, for targets (B, R) ([Exp] §6.4).

    It is the covariance of every arc with the function f (E[f] - target), one product.
    """
    found = first_order(scores, lengths)
    residual = _expectation(found, features) - targets
    total = (residual[:, None] @ _rows(features)).reshape(len(scores), 1, *scores.shape[1:])
    return products(found, total)[:, 0]


def ge_gradient_by_feature(
    products: Products, scores: Array, lengths: Lengths, features: Array, targets: Array
) -> Array:
    """The same gradient from the covariances of every feature with every arc, R products."""
    found = first_order(scores, lengths)
    residual = _expectation(found, features) - targets
    return (residual[:, None] @ _rows(products(found, features))).reshape(scores.shape)


def _expectation(found: FirstOrder, r: Array) -> Array:
    """E[r] (B, R)."""
    return (_rows(r) @ found.marginals.reshape(len(r), -1, 1))[..., 0]


def _rows(r: Array) -> Array:
    """Arc values as (B, R, (n+1)^2)."""
    return r.reshape(*r.shape[:2], -1)


def _shifted(scores: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Scores less the best of their column, their exponentials, and what a Laplacian's diagonal has at padding."""
    position = torch.arange(scores.shape[-1])
    nodes = position <= lengths.unsqueeze(1)
    arcs = nodes.unsqueeze(2) & (nodes & (position > 0)).unsqueeze(1) & (position.unsqueeze(1) != position)
    allowed = torch.where(arcs, scores, -torch.inf)
    best = allowed.amax(1, keepdim=True)
    shifted = allowed - torch.where(best > -torch.inf, best, 0.0)
    weights = shifted.exp()
    return torch.where(weights > 0, shifted, 0.0), weights, torch.diag_embed((~nodes[:, 1:]).double())


def _laplacian(values: Tensor) -> Tensor:
    """The Laplacian (B, n, n) of arc values (B, n+1, n+1), which are 0 at what is no arc."""
    words = values[:, 1:, 1:]
    laplacian = torch.diag_embed(words.sum(1)) - words
    laplacian[:, 0] = values[:, 0, 1:]
    return laplacian
