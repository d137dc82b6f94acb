"""The torch form of the sums against enumeration, 50-digit arithmetic and the kernels, in batches of mixed items."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from helpers.hostile_scores import forbidden_arcs, hostile_scores, prefer_each_other
from helpers.oracles import enumerated_product, enumerated_sums, score_scale
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from treeparse.kernels.sums import elimination, hessian
from treeparse.trees.families import dense

SCALES = (1e-3, 1.0, 10.0, 1e2, 1e3, 1e4)
ROOTS = pytest.mark.parametrize("single_root", [True, False], ids=["single-root", "multi-root"])


@pytest.fixture(params=["by the rule", "in log space"])
def space(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also run what plain weights can do in log space."""
    if request.param == "in log space":
        monkeypatch.setattr(dense, "LINEAR_LIMIT", np.inf)


def padded(items: Sequence[np.ndarray]) -> Tensor:
    """Matrices of several sizes in one batch, NaN in every place that is to be ignored."""
    size = max(map(len, items)) + 1  # no item fills the batch
    batch = np.full((len(items), size, size), np.nan)
    for row, item in zip(batch, items, strict=True):
        row[: len(item), : len(item)] = item
        row[:, 0] = np.nan
        np.fill_diagonal(row, np.nan)
    return torch.from_numpy(batch)


def solve(
    items: Sequence[np.ndarray], vectors: Sequence[np.ndarray], single_root: bool, device: str = "cpu"
) -> list[tuple[float, np.ndarray, np.ndarray]]:
    """Log partition, marginals and Hessian-vector product of every item, all solved in one batch."""
    scores, directions = padded(items).to(device), padded(vectors).to(device)
    directions[scores == -torch.inf] = torch.nan
    lengths = torch.tensor([len(item) - 1 for item in items], device=device)
    before = scores.clone(), directions.clone()
    log_z, marginals = dense.log_partition_and_marginals(scores, lengths, single_root=single_root)
    products = dense.hessian_vector_product(scores, lengths, directions, single_root=single_root)
    torch.testing.assert_close(dense.log_partition(scores, lengths, single_root=single_root), log_z, rtol=1e-14, atol=0)
    torch.testing.assert_close((scores, directions), before, rtol=0, atol=0, equal_nan=True)
    ignored = ~(scores > -torch.inf)
    assert (marginals >= 0).all()
    for values in (marginals, products):
        assert values.isfinite().all()
        assert not values[ignored].any()
        assert not values[log_z == -torch.inf].any()
    results = zip(log_z.tolist(), marginals.cpu().numpy(), products.cpu().numpy(), items, strict=True)
    return [(value, m[: len(item), : len(item)], h[: len(item), : len(item)]) for value, m, h, item in results]


def assert_enumerated(items: Sequence[np.ndarray], single_root: bool, device: str = "cpu") -> None:
    stream = np.random.default_rng(0)
    vectors = [stream.normal(size=item.shape) for item in items]
    for item, vector, result in zip(items, vectors, solve(items, vectors, single_root, device), strict=True):
        log_z, marginals, product = result
        expected, expected_marginals = enumerated_sums(item, single_root)
        scale = score_scale(item)
        assert log_z == expected or abs(log_z - expected) <= 1e-12 * scale
        np.testing.assert_allclose(marginals, expected_marginals, rtol=0, atol=1e-14 * scale)
        expected_product = enumerated_product(item, vector, single_root)
        np.testing.assert_allclose(product, expected_product, rtol=0, atol=1e-13 * scale)


def assert_as_kernels(items: Sequence[np.ndarray], single_root: bool, device: str = "cpu") -> None:
    vectors = [np.random.default_rng(len(item)).normal(size=item.shape) for item in items]
    for item, vector, result in zip(items, vectors, solve(items, vectors, single_root, device), strict=True):
        log_z, marginals, product = result
        one = item[None], np.array([len(item) - 1])
        expected, expected_marginals = elimination.log_partition_and_marginals(*one, single_root=single_root)
        expected_product = hessian.hessian_vector_product(*one, vector[None], single_root=single_root)
        assert abs(log_z - expected[0]) <= 1e-13 * score_scale(item)
        np.testing.assert_allclose(marginals, expected_marginals[0], rtol=0, atol=1e-14 * score_scale(item))
        np.testing.assert_allclose(marginals.sum(0)[1:], 1.0, rtol=0, atol=1e-12)
        np.testing.assert_allclose(product, expected_product[0], rtol=0, atol=1e-14 * score_scale(item))
        np.testing.assert_allclose(product.sum(0), 0.0, rtol=0, atol=1e-12)


def random_items(
    stream: np.random.Generator, lengths: Sequence[int], scale: float, forbidden: float = 0.0
) -> list[Any]:
    items = [stream.normal(size=(n + 1, n + 1)) * scale for n in lengths]
    for item in items:
        item[stream.random(item.shape) < forbidden] = -np.inf
    return items


@ROOTS
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.usefixtures("space")
def test_sums_equal_enumeration(single_root: bool, scale: float) -> None:
    stream = np.random.default_rng(1)
    items = [item for share in (0.0, 0.3, 0.6) for item in random_items(stream, (4, 1, 5, 3, 2, 4), scale, share)]
    assert_enumerated(items, single_root)


@ROOTS
def test_underflow_is_never_silent(single_root: bool) -> None:
    stream = np.random.default_rng(4)
    items = [hostile_scores(stream, int(stream.integers(2, 5))) for _ in range(1000)]
    assert_enumerated(items, single_root)


@ROOTS
@pytest.mark.usefixtures("space")
def test_every_pattern_of_forbidden_arcs_over_three_words(single_root: bool) -> None:
    """One batch, in which a word that only the root reaches shows itself at any stage, and many items have no tree."""
    assert_enumerated(list(forbidden_arcs() + 0.1 * np.arange(16).reshape(4, 4)), single_root)


@ROOTS
@pytest.mark.usefixtures("space")
def test_items_that_find_their_root_word_at_different_steps(single_root: bool) -> None:
    stream = np.random.default_rng(5)
    items = random_items(stream, [5] * 6, 3.0)
    for word, item in enumerate(items[1:], 1):
        item[1:, word] = -np.inf
    assert_enumerated(items, single_root)


@ROOTS
@pytest.mark.parametrize("lengths", [(10, 23, 40), (160,)], ids=["short", "long"])
@pytest.mark.parametrize("scale", [1, 10, 50, 100, 300, 1000, 10000])
def test_sums_agree_with_the_kernels(single_root: bool, scale: float, lengths: Sequence[int]) -> None:
    assert_as_kernels(random_items(np.random.default_rng(6), lengths, scale), single_root)


@ROOTS
def test_rivals_of_large_scores_agree_with_the_kernels(single_root: bool) -> None:
    """Where log space is needed and yet many marginals are neither 0 nor 1."""
    stream = np.random.default_rng(7)
    items = [1e4 * stream.integers(-1, 2, size=(n + 1, n + 1)) + stream.normal(size=(n + 1, n + 1)) for n in (8, 40)]
    pairs = [(word, word + 1) for word in (1, 3, 5, 7)]
    assert_as_kernels([prefer_each_other(item, pairs, 3e4) for item in items], single_root)


@ROOTS
@pytest.mark.usefixtures("space")
def test_a_constant_in_a_column_of_the_vectors_changes_nothing(single_root: bool) -> None:
    stream = np.random.default_rng(11)
    (item,) = random_items(stream, (9,), 5.0)
    vector = stream.integers(-(2**20), 2**20, size=item.shape) / 2**20
    shifted = vector + stream.integers(-(2**30), 2**30, size=len(item))  # exactly
    (_, _, product), (_, _, same) = solve([item, item], [vector, shifted], single_root)
    np.testing.assert_allclose(same, product, rtol=0, atol=1e-14)


@ROOTS
def test_a_derivative_that_overflows_is_found(single_root: bool) -> None:
    """The log partition is safe in plain weights, which holds nothing against a quotient of two tiny derivatives."""
    item = np.zeros((4, 4))
    item[:, 1:] = [[-4.6, -23.6, -25.4], [0.0, -743.0, -735.1], [-103.2, 0.0, -743.4], [-58.0, -22.8, 0.0]]
    assert_enumerated([item], single_root)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@ROOTS
def test_a_gpu_gives_the_same(single_root: bool) -> None:
    stream = np.random.default_rng(12)
    assert_enumerated([hostile_scores(stream, int(stream.integers(2, 5))) for _ in range(500)], single_root, "cuda")
    for scale in SCALES:
        assert_enumerated(random_items(stream, (4, 1, 5, 3, 2, 4), scale, 0.3), single_root, "cuda")
        assert_as_kernels(random_items(stream, (10, 160, 40), scale), single_root, "cuda")


def test_nothing_is_left_for_autograd() -> None:
    scores, lengths = torch.randn(2, 5, 5, dtype=torch.float64, requires_grad=True), torch.tensor([4, 2])
    log_z, marginals = dense.log_partition_and_marginals(scores, lengths, single_root=True)
    product = dense.hessian_vector_product(scores, lengths, scores, single_root=True)
    assert not (log_z.requires_grad or marginals.requires_grad or product.requires_grad)


class Waits(TorchDispatchMode):
    """Counts operations whose result the host must know before it can go on."""

    NAMES = ("aten::nonzero", "aten::_local_scalar_dense", "aten::equal", "aten::masked_select", "aten::item")

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += func.name().split(".")[0] in self.NAMES
        return func(*args, **(kwargs or {}))


@ROOTS
def test_the_host_waits_for_the_device_once(single_root: bool) -> None:
    items = random_items(np.random.default_rng(13), (8, 8, 8), 1000.0, 0.2)
    scores, lengths = padded(items), torch.tensor([8, 8, 8])
    with Waits() as waits:
        dense.hessian_vector_product(scores, lengths, scores, single_root=single_root)
    assert waits.count == 1
