"""Large batches are split over threads, which changes no bit and leaves no thread behind; empty ones have no sums."""

import threading
from functools import partial
from typing import Any

import numpy as np
import pytest
from helpers.batches import batch_of_lengths
from helpers.oracles import Array

from treeparse.kernels.sums import conditionals, elimination, hessian, inside_outside


def sums(
    modules: tuple[Any, Any, Any], scores: Array, vectors: Array, lengths: np.ndarray, threads: int = 1
) -> list[Array]:
    """Log partitions, marginals, Hessian-vector products and log marginals."""
    of_sums, of_products, of_logs = modules
    options: Any = {"single_root": True, "threads": threads}
    return [
        *of_sums.log_partition_and_marginals(scores, lengths, **options),
        of_products.hessian_vector_product(scores, lengths, vectors, **options),
        of_logs.log_marginals(scores, lengths, **options),
    ]


FAMILIES = {
    "nonprojective": partial(sums, (elimination, hessian, conditionals)),
    "projective": partial(sums, (inside_outside, inside_outside, inside_outside)),
}
every_family = pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)


@every_family
def test_threads_change_nothing(family: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("treeparse.kernels.threads.MIN_THREAD_COST", 1.0)
    lengths = np.array([30, 2, 57, 25, 9, 31, 4])
    batch = batch_of_lengths(lengths, seed=13), batch_of_lengths(lengths, seed=14), lengths
    expected, running = family(*batch), threading.active_count()
    for threads in (2, 3, 16):
        for found, value in zip(family(*batch, threads), expected, strict=True):
            np.testing.assert_array_equal(found, value)
        assert threading.active_count() == running  # none is left to be lost in a fork


@every_family
def test_an_empty_batch_has_no_sums(family: Any) -> None:
    found = family(np.empty((0, 3, 3)), np.empty((0, 3, 3)), np.empty(0, np.int64))
    assert [part.shape for part in found] == [(0,), (0, 3, 3), (0, 3, 3), (0, 3, 3)]
