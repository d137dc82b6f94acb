"""Sums over the projective trees of one item by the kernels, with checks of what holds for any scores."""

from functools import partial

import numpy as np
from helpers.batches import padded
from helpers.hessian_products import checked_product
from helpers.oracles import Array

from treeparse.kernels.sums.inside_outside import (
    hessian_vector_product,
    log_marginals,
    log_partition,
    log_partition_and_marginals,
)

product_of = partial(checked_product, hessian_vector_product)


def random_arcs(stream: np.random.Generator, n: int, count: int) -> list[tuple[int, int]]:
    words = stream.permutation(np.arange(1, n + 1))[:count]
    return [(int(stream.choice([head for head in range(n + 1) if head != word])), int(word)) for word in words]


def sums(scores: Array, single_root: bool) -> tuple[float, Array, Array]:
    """Log partition, marginals and log marginals of one item; checks what holds for any scores."""
    item, lengths = padded(scores), np.array([len(scores) - 1])
    log_z, marginals = log_partition_and_marginals(item, lengths, single_root=single_root)
    logs = log_marginals(item, lengths, single_root=single_root)
    assert log_partition(item, lengths, single_root=single_root)[0] == log_z[0]
    assert (marginals >= 0.0).all()
    assert (logs <= 0.0).all()
    ignored = np.eye(len(scores) + 1) == 1
    ignored[:, [0, -1]] = ignored[-1] = True
    assert not marginals[0][ignored].any()
    assert (logs[0][ignored] == -np.inf).all()
    return log_z[0], marginals[0, :-1, :-1], logs[0, :-1, :-1]
