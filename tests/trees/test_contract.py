"""What every distribution over trees promises, run over all of them."""

import itertools
import math

import pytest
import torch
from helpers.derivatives import assert_derivatives
from helpers.tree_cases import CASES, NUMBA, SECOND_ORDER, TORCH, Case, random_values
from helpers.tree_cases import every_case_order_and_backend as every_case
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck
from torch.distributions import kl_divergence

from treeparse import NoTreeError, TreeparseError
from treeparse.trees.labels import label_sums

SCALES = (1e-3, 1.0, 1e2, 1e4)  # of plain weights, of logs, and of both
ORDERS = (0.0, 0.3, 1 - 1e-4, 1 - 1e-6, 1 + 1e-5, 2.0, 7.0, math.inf)


def assert_near(found: Tensor, expected: Tensor, tolerance: float) -> None:
    torch.testing.assert_close(found, expected, rtol=0, atol=tolerance)


def assert_right(found: Tensor, expected: Tensor) -> None:
    """Shannon entropies and expectations are right to nine digits, or nine places, at every scale of scores."""
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)


def as_value(value: list[Tensor]) -> Tensor | tuple[Tensor, ...]:
    """What ``log_prob`` takes: heads, or heads and labels."""
    return value[0] if len(value) == 1 else tuple(value)


def largest(case: Case) -> int:
    return 3 if case.labels else 5


@every_case
@pytest.mark.parametrize(
    ("scale", "forbidden"), [(1e-3, 0.0), (1.0, 0.0), (1.0, 0.3), (1e2, 0.3), (1e4, 0.0), (1e4, 0.3)]
)
def test_every_quantity_equals_enumeration(case: Case, scale: float, forbidden: float) -> None:
    for words in range(largest(case) + 1):
        seed = 10 * words + int(10 * forbidden)
        parameters = case.parameters(words, seed=seed, scale=scale, forbidden=forbidden)
        oracle = case.enumerated(parameters)
        if not oracle.exists:
            continue
        p, c = case.make(parameters), oracle.scale
        assert_near(p.log_partition, oracle.log_partition, 1e-12 * c)
        assert_near(case.marginals(p), oracle.marginals, 1e-14 * c)
        assert (case.marginals(p) >= 0).all()
        assert_near(p.log_prob(as_value(oracle.values)), oracle.log_probs, 1e-12 * c)
        assert_right(p.entropy(), oracle.entropy)
        for order in ORDERS:
            assert_near(p.renyi_entropy(order), oracle.renyi_entropy(order), 1e-9 * c)  # orders near 1 cancel
        assert_near(p.expected_gradient(), oracle.expected_gradient, 1e-13 * c)
        r, s = case.random_values(p, 3, 1), case.random_values(p, 2, 2)
        assert_right(p.expectation(r), oracle.expectation(r))
        assert_right(p.second_moment(r, s), oracle.second_moment(r, s))
        best = p.mode if isinstance(p.mode, Tensor) else p.mode[0]
        assert best.shape == (words + 1,)
        assert_near(p.log_prob(p.mode), oracle.log_probs.max(), 1e-12 * c)


@every_case
@pytest.mark.parametrize("scale", SCALES)
def test_cross_entropy_and_divergence_equal_enumeration(case: Case, scale: float) -> None:
    for words in range(largest(case) + 1):
        first, second = (case.parameters(words, seed=seed, scale=scale) for seed in (words, 100 + words))
        own, other = case.enumerated(first), case.enumerated(second)
        p, q = case.make(first), case.make(second)
        c = own.scale + other.scale
        expected = own.code_length(other.log_probs)
        assert_right(p.cross_entropy(q), expected)
        assert_right(kl_divergence(p, q), expected - own.entropy)
        assert_near(kl_divergence(p, p), torch.zeros((), dtype=torch.float64), 1e-12 * c)


@every_case
@pytest.mark.parametrize("scale", SCALES)
def test_the_largest_enumerable_sentence(case: Case, scale: float) -> None:
    parameters = case.parameters(4 if case.labels else 6, seed=7, scale=scale)
    oracle, p = case.enumerated(parameters), case.make(parameters)
    assert_near(p.log_partition, oracle.log_partition, 1e-12 * oracle.scale)
    assert_near(case.marginals(p), oracle.marginals, 1e-14 * oracle.scale)
    r, s = case.random_values(p, 2, 1), case.random_values(p, 1, 2)
    assert_right(p.entropy(), oracle.entropy)
    assert_right(p.second_moment(r, s), oracle.second_moment(r, s))


@every_case
def test_log_marginals_equal_enumeration(case: Case) -> None:
    """-inf exactly at parts that no tree has, and relative accuracy at those that hardly any has."""
    for words in range(1, largest(case) + 1):
        parameters = case.parameters(words, seed=words, scale=300.0, forbidden=0.2)
        oracle, p = case.enumerated(parameters), case.make(parameters, validate_args=False)
        found = p.log_marginals.flatten()
        log_probs = oracle.log_probs.nan_to_num(nan=-torch.inf, neginf=-torch.inf)  # without a tree
        have = [(oracle.parts == part).any(1) for part in range(len(found))]
        expected = torch.stack([log_probs[trees].logsumexp(0) for trees in have])
        assert torch.equal(found == -torch.inf, expected == -torch.inf)
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-12 * oracle.scale)


@every_case
def test_norms_equal_enumeration(case: Case) -> None:
    parameters = case.parameters(3, seed=8)
    oracle, p = case.enumerated(parameters), case.make(parameters)
    for order in (0.5, 1.0, 2.0, 3.5, math.inf):
        assert_near(p.log_norm(order), torch.linalg.vector_norm(oracle.probs, order).log(), 1e-13)


@every_case
def test_the_support_is_all_trees_without_a_forbidden_part(case: Case) -> None:
    lengths = torch.tensor([[3, 1, 2], [2, 3, 3]])
    parameters = case.parameters(3, seed=9, batch=(2, 3), forbidden=0.1)
    p = case.make(parameters, lengths, validate_args=False)
    support = p.enumerate_support()
    columns = [support] if isinstance(support, Tensor) else list(support)
    log_probs = p.log_prob(support)
    assert torch.equal(p.support.check(support), log_probs > -torch.inf)
    for item in itertools.product(range(2), range(3)):
        n = int(lengths[item])
        own = case.of_item(parameters, item, n)
        oracle = case.enumerated(own)
        trees = torch.cat(oracle.values, -1)[oracle.log_probs > -torch.inf]
        expected = set(map(tuple, trees.tolist()))
        rows = torch.stack([column[(slice(None), *item)] for column in columns], 1)
        assert (rows[:, :, n + 1 :] == -1).all()
        found = [tuple(row.flatten().tolist()) for row in rows[:, :, : n + 1] if (row[:, 1:] >= 0).any()]
        assert len(found) == len(set(found)) == len(expected)
        assert set(found) == expected
        if expected:
            assert_near(log_probs[(slice(None), *item)].exp().sum(), torch.ones((), dtype=torch.float64), 1e-12)


@every_case
def test_first_derivatives(case: Case) -> None:
    lengths = torch.tensor([3, 2])
    inputs = smooth(case, lengths)
    other = case.make([part.detach() + 0.3 * torch.ones_like(part).cumsum(-1) for part in inputs], lengths)
    known = [part[:1].squeeze(0) for part in as_list(case.make(inputs, lengths).enumerate_support())]
    quantities = (
        lambda p: p.log_partition,
        lambda p: p.marginals,
        lambda p: p.log_prob(as_value([column.expand(*p.batch_shape, 4) for column in known])),
        lambda p: p.entropy(),
        lambda p: p.renyi_entropy(0.5),
        lambda p: p.log_norm(3.0),
        lambda p: p.expected_gradient(),
        lambda p: p.cross_entropy(other.expand(p.batch_shape)),
        lambda p: other.expand(p.batch_shape).cross_entropy(p),
        lambda p: kl_divergence(p, other.expand(p.batch_shape)),
        lambda p: p.expected_uas(known[0].expand(*p.batch_shape, 4)),
        lambda p: p.risk(*(column.expand(*p.batch_shape, 4) for column in known)),
    )

    def all_of(*inputs: Tensor) -> tuple[Tensor, ...]:
        p = case.make(inputs, lengths.expand(len(inputs[0]), 2))  # once for all
        return tuple(quantity(p) for quantity in quantities)

    assert_derivatives(all_of, inputs)


@every_case
def test_second_derivatives_of_the_log_partition(case: Case) -> None:
    lengths = torch.tensor([3, 2])
    assert gradgradcheck(lambda *x: case.make(x, lengths).log_partition, smooth(case, lengths), fast_mode=True)


@every_case
def test_derivatives_in_the_values(case: Case) -> None:
    lengths = torch.tensor([3, 2])
    inputs = smooth(case, lengths)
    p = case.make([part.detach() for part in inputs], lengths)
    r, s = (random_values(p, count, count) for count in (2, 1))

    def of_values(r: Tensor, s: Tensor) -> tuple[Tensor, Tensor]:
        copies = p.expand((len(r), 2))
        return copies.covariance(r, s), copies.second_moment(r, s)

    def of_scores_too(r: Tensor, *inputs: Tensor) -> tuple[Tensor]:
        return (case.make(inputs, lengths.expand(len(r), 2)).expectation(r),)

    assert_derivatives(of_values, (r, s))
    assert_derivatives(of_scores_too, (r, *inputs))


@every_case
def test_a_third_derivative_is_refused(case: Case) -> None:
    """The log partition has second derivatives, what is made of marginals first ones, a covariance those of values."""
    lengths = torch.tensor([3, 2])
    inputs = smooth(case, lengths)
    p, q = case.make(inputs, lengths), case.make([0.5 * part.detach() for part in inputs], lengths)
    r = random_values(p, 2, 1).requires_grad_()
    (gradient,) = torch.autograd.grad(p.covariance(r, r).sum(), r, retain_graph=True)
    assert gradient.isfinite().all()

    def length_of_gradient(value: Tensor) -> Tensor:
        gradients = torch.autograd.grad(value.sum(), inputs, create_graph=True)
        return torch.stack([part.square().sum() for part in gradients]).sum()

    of_marginals = p.entropy(), p.marginals.square(), p.expectation(r.detach()), kl_divergence(p, q)
    values = p.covariance(r, r).sum(), length_of_gradient(length_of_gradient(p.log_partition))
    for value in (*values, *map(length_of_gradient, of_marginals)):
        with pytest.raises(TreeparseError, match="needs a third derivative"):
            torch.autograd.grad(value, inputs, retain_graph=True)


@every_case
def test_values_without_a_last_axis(case: Case) -> None:
    p = case.make(case.parameters(3, seed=3, batch=(2, 2)))
    r, s = random_values(p, 3, 1), random_values(p, 2, 2)
    assert p.expectation(r).shape == (2, 2, 3)
    torch.testing.assert_close(p.expectation(r[..., 1]), p.expectation(r)[..., 1])
    for function in (p.covariance, p.second_moment):
        both = function(r, s)
        assert both.shape == (2, 2, 3, 2)
        torch.testing.assert_close(function(r[..., 1], s), both[..., 1, :])
        torch.testing.assert_close(function(r, s[..., 1]), both[..., 1])
        torch.testing.assert_close(function(r[..., 1], s[..., 0]), both[..., 1, 0])
        torch.testing.assert_close(function(s, r), both.mT)


@every_case
def test_sparse_values_equal_dense_ones(case: Case) -> None:
    p = case.make(case.parameters(3, seed=3, batch=(2,), forbidden=0.1), validate_args=False)
    shape = p.marginals.shape
    generator = torch.Generator().manual_seed(4)
    sparse = []
    for count in (5, 3):
        places = torch.stack([torch.randint(size, (12,), generator=generator) for size in (*shape, count)])
        numbers = torch.randn(12, generator=generator, dtype=torch.float64)
        sparse.append(torch.sparse_coo_tensor(places, numbers, (*shape, count), check_invariants=True))
    r, s = sparse
    torch.testing.assert_close(p.expectation(r), p.expectation(r.to_dense()))
    for first, second in itertools.product((r, r.to_dense()), (s, s.to_dense())):
        torch.testing.assert_close(p.covariance(first, second), p.covariance(r.to_dense(), s.to_dense()))
    rows = r.to_dense().to_sparse(len(shape))  # a dense row of values at every sparse part
    torch.testing.assert_close(p.second_moment(rows, s), p.second_moment(r.to_dense(), s.to_dense()))
    one = s.to_dense()[..., 0].to_sparse()
    torch.testing.assert_close(p.expectation(one), p.expectation(s.to_dense()[..., 0]))


@every_case
def test_derivatives_in_sparse_values(case: Case) -> None:
    p = case.make(case.parameters(2, seed=3, batch=(2,)))
    shape = (*p.marginals.shape, 3)
    generator = torch.Generator().manual_seed(5)
    places = torch.stack([torch.randint(size, (6,), generator=generator) for size in shape]).unique(dim=1)
    numbers = torch.randn(places.shape[1], generator=generator, dtype=torch.float64, requires_grad=True)
    dense = random_values(p, 2, 6)

    def sparse(numbers: Tensor) -> Tensor:
        return torch.sparse_coo_tensor(places, numbers, shape, check_invariants=True)

    assert gradcheck(lambda x: p.expectation(sparse(x)), numbers)
    assert gradcheck(lambda x: p.covariance(sparse(x), dense), numbers)


@every_case
def test_parts_of_no_tree_count_nothing(case: Case) -> None:
    parameters = case.parameters(3, seed=5)
    parameters[0][1, 2] = -torch.inf
    p = case.make(parameters)
    r = random_values(p, 2, 1)
    expected, moments = p.expectation(r), p.second_moment(r, r)
    r[p.marginals == 0] = torch.nan
    r[1, 2] = torch.inf
    assert torch.equal(p.expectation(r), expected)
    assert torch.equal(p.second_moment(r, r), moments)
    leaves = [part.requires_grad_() for part in parameters]
    for gradient in torch.autograd.grad(case.make(leaves).expectation(r).sum(), leaves):
        assert gradient.isfinite().all()


@every_case
def test_what_is_ignored_may_hold_anything(case: Case) -> None:
    """Also scores beyond an item's length; their marginals and gradients are 0."""
    lengths = torch.tensor([1, 3])
    inputs = case.parameters(3, seed=6, batch=(2,))
    for part in inputs:
        part[0, 2:] = part[0, :, 2:] = torch.nan
        part.requires_grad_()
    p = case.make(inputs, lengths)
    alone = case.make(case.of_item(inputs, 0, 1))
    torch.testing.assert_close(p.log_partition[0], alone.log_partition)
    torch.testing.assert_close(p.entropy()[0], alone.entropy())
    ignored = torch.ones(2, 4, 4, dtype=torch.bool)
    for item, n in enumerate(lengths.tolist()):
        ignored[item, : n + 1, 1 : n + 1] = torch.eye(n + 1, dtype=torch.bool)[:, 1:]
    assert not p.marginals[ignored].any()
    known = [part[0] for part in as_list(p.enumerate_support())]
    total = p.log_partition + p.entropy() + kl_divergence(p, p) + p.renyi_entropy(2.0) + p.log_prob(as_value(known))
    gradients = torch.autograd.grad(total.sum() + p.marginals.square().sum(), inputs)
    for gradient in gradients:
        assert gradient.isfinite().all()
        assert not gradient[ignored].any()


@every_case
def test_an_item_without_a_tree(case: Case) -> None:
    inputs = case.parameters(3, seed=7, batch=(3,))
    inputs[0][1, :, 2] = -torch.inf
    strict = case.make(inputs, validate_args=True)
    for quantity in (
        lambda p: p.log_partition,
        lambda p: p.marginals,
        lambda p: p.mode,
        lambda p: p.entropy(),
        lambda p: p.expectation(torch.zeros_like(inputs[-1])),
        lambda p: p.renyi_entropy(2.0),
        lambda p: kl_divergence(p, p),
    ):
        with pytest.raises(NoTreeError, match="batch item 1"):
            quantity(strict)
    for part in inputs:
        part.requires_grad_()
    p = case.make(inputs, validate_args=False)
    fine = case.make(case.parameters(3, seed=8, batch=(3,)))
    nothing = [p.log_partition, p.entropy(), p.renyi_entropy(0.5), p.log_norm(2.0), kl_divergence(p, p)]
    nothing += [kl_divergence(p, fine), p.renyi_entropy(1 - 1e-7)]
    for quantity in nothing:
        assert (quantity == -torch.inf).tolist() == [False, True, False]
        assert not quantity.isnan().any()
    assert kl_divergence(fine, p)[1] == torch.inf
    r = random_values(p, 2, 1)
    assert not p.marginals[1].any()
    assert not p.expectation(r)[1].any()
    assert not p.expected_gradient()[1].any()
    assert not p.second_moment(r, r)[1].any()
    for column in as_list(p.mode):
        assert (column[1] == -1).all()
    assert p.log_prob(fine.mode)[1] == -torch.inf
    total = sum(quantity[[0, 2]].sum() for quantity in nothing[:-1]) + p.marginals.sum() + p.expectation(r).sum()
    for gradient in torch.autograd.grad(total + p.entropy()[0], inputs):
        assert gradient.isfinite().all()
        assert not gradient[1].any()


@every_case
def test_divergence_is_infinite_exactly_where_q_forbids_what_p_allows(case: Case) -> None:
    free, bound = case.parameters(3, seed=10, scale=100.0), case.parameters(3, seed=11)
    bound[0][2, 3] = -torch.inf
    p, q = case.make(free), case.make(bound)
    assert p.cross_entropy(q) == kl_divergence(p, q) == torch.inf
    assert q.cross_entropy(p).isfinite()
    # An arc that no tree of p can have is not missed: 2 -> 3 where only 3 leads to 2.
    for head in (0, 1):
        free[0][head, 2] = -torch.inf
    assert case.make(free).cross_entropy(q).isfinite()


@every_case
def test_what_is_compared_must_fit(case: Case) -> None:
    parameters = case.parameters(3, seed=1, batch=(2,))
    p = case.make(parameters)
    with pytest.raises(TreeparseError, match="different lengths"):
        p.cross_entropy(case.make(parameters, torch.tensor([3, 2])))
    with pytest.raises(TreeparseError, match="different shapes"):
        kl_divergence(p, case.make([part[0] for part in parameters]))
    with pytest.raises(TreeparseError, match="Values must have the shape"):
        p.expectation(torch.zeros(3, 3))
    for order in (-1.0, 1.0, math.nan):
        with pytest.raises(TreeparseError, match="Renyi"):
            p.renyi_entropy(order)
    with pytest.raises(TreeparseError, match="order of a norm"):
        p.log_norm(0.0)


@every_case
def test_an_item_is_the_same_in_a_batch_and_alone(case: Case) -> None:
    lengths = torch.tensor([9, 4, 7])
    parameters = case.parameters(9, seed=12, batch=(3,))
    p = case.make(parameters, lengths)
    v = random_values(p, 1, 1)
    for item, n in enumerate(lengths.tolist()):
        alone = case.make(case.of_item(parameters, item, n))
        own = v[item, : n + 1, : n + 1]
        found = alone.log_partition, alone.marginals, alone.covariance(own, own)
        batched = p.log_partition[item], p.marginals[item, : n + 1, : n + 1], p.covariance(v, v)[item]
        for one, other in zip(found, batched, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-12)
        if case.kind != TORCH and not case.labels:
            assert torch.equal(found[0], batched[0])
            assert torch.equal(found[1], batched[1])


@every_case
def test_cached_values_share_one_graph(case: Case) -> None:
    inputs = [part.requires_grad_() for part in case.parameters(3, seed=13)]
    with torch.no_grad():
        p = case.make(inputs)
        assert (p.log_partition + p.entropy() + p.marginals.sum()).isfinite()  # once used without gradients
    (p.log_partition + p.entropy() + p.marginals.square().sum()).backward()
    found = [part.grad for part in inputs]
    again = case.make(inputs)
    terms = again.log_partition, again.entropy(), again.marginals.square().sum()
    expected = [torch.autograd.grad(term, inputs, retain_graph=True) for term in terms]
    for position, gradient in enumerate(found):
        torch.testing.assert_close(gradient, sum(term[position] for term in expected))
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        (p.entropy() + p.log_partition).backward()


@every_case
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_results_are_rounded_once(case: Case, dtype: torch.dtype) -> None:
    parameters = [part.to(dtype) for part in case.parameters(4, seed=14, batch=(2,))]
    p, exact = case.make(parameters), case.make([part.double() for part in parameters])
    r = random_values(exact, 2, 1)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        pairs = [
            (p.log_partition, exact.log_partition),
            (p.marginals, exact.marginals),
            (p.entropy(), exact.entropy()),
            (p.renyi_entropy(2.0), exact.renyi_entropy(2.0)),
            (p.cross_entropy(p), exact.cross_entropy(exact)),
            (p.expectation(r), exact.expectation(r)),
            (p.covariance(r, r), exact.covariance(r, r)),
            (p.log_prob(p.mode), exact.log_prob(exact.mode)),
        ]
    values = torch.promote_types(dtype, torch.float32)
    for found, expected in pairs:
        assert found.dtype == values
        torch.testing.assert_close(found, expected.to(values), rtol=0, atol=0)


@every_case
def test_arguments_are_left_as_they_are(case: Case) -> None:
    parameters = case.parameters(3, seed=15, batch=(2,))
    before = [part.clone() for part in parameters]
    p = case.make(parameters, torch.tensor([3, 2], dtype=torch.int16))
    r = random_values(p, 2, 1)
    kept = r.clone()
    assert p.entropy().isfinite().all()
    assert p.second_moment(r, r).shape == (2, 2, 2)
    assert p.log_prob(p.mode).isfinite().all()
    for part, copy in zip(parameters, before, strict=True):
        torch.testing.assert_close(part, copy, rtol=0, atol=0, equal_nan=True)
    assert torch.equal(r, kept)


@pytest.mark.parametrize("case", [case for case in CASES + SECOND_ORDER if not case.labels], ids=lambda case: case.name)
def test_a_change_in_place_before_the_backward_pass_is_found(case: Case) -> None:
    """Labelled distributions keep sums over labels of their own, which nobody can change."""
    inputs = [part.requires_grad_() * 1.0 for part in case.parameters(3, seed=16)]
    total = case.make(inputs).marginals.square().sum()
    with torch.no_grad():
        inputs[-1].mul_(2.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        total.backward()


@every_case
def test_expand_and_repr(case: Case) -> None:
    p = case.make(case.parameters(3, seed=17, batch=(2,)))
    wide = p.expand((3, 2))
    assert wide.batch_shape == (3, 2)
    torch.testing.assert_close(wide.entropy(), p.entropy().expand(3, 2))
    for column, narrow in zip(as_list(wide.mode), as_list(p.mode), strict=True):
        assert torch.equal(column, narrow.expand(3, 2, 4))
    assert "single_root=" in repr(p)


@every_case
def test_expected_accuracy_equals_enumeration(case: Case) -> None:
    parameters = case.parameters(3, seed=18)
    oracle, p = case.enumerated(parameters), case.make(parameters)
    gold = [column[5].clone() for column in oracle.values]
    gold[0][2] = -1  # unknown
    known = torch.tensor([False, True, False, True])
    right = oracle.values[0] == gold[0]
    assert_near(p.expected_uas(gold[0]), oracle.probs @ right[:, known].double().mean(1), 1e-13)
    both = torch.stack([column == own for column, own in zip(oracle.values, gold, strict=True)]).all(0)
    assert_near(1 - p.risk(*gold), oracle.probs @ both[:, known].double().mean(1), 1e-13)
    assert p.expected_uas(torch.full((4,), -1)) == 1
    if case.labels:
        assert p.expected_las(gold[0], torch.full((4,), case.labels)) == 0


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@every_case
def test_cuda_tensors_stay_on_their_device(case: Case) -> None:
    lengths = torch.tensor([4, 2, 3])
    parameters = case.parameters(4, seed=19, batch=(3,), scale=10.0)
    found, expected = [], []
    for device, results in (("cuda", found), ("cpu", expected)):
        inputs = [part.to(device).requires_grad_() for part in parameters]
        p = case.make(inputs, lengths.to(device))
        r = random_values(p, 2, 1).to(device)
        values = p.log_partition, p.marginals, p.entropy(), kl_divergence(p, p), p.expectation(r), p.covariance(r, r)
        gradients = torch.autograd.grad(p.entropy().sum() + p.marginals.square().sum(), inputs)
        results += [*values, *gradients, *as_list(p.mode), p.log_prob(p.mode), p.renyi_entropy(2.0)]
    for on_gpu, on_cpu in zip(found, expected, strict=True):
        assert on_gpu.device.type == "cuda"
        torch.testing.assert_close(on_gpu.cpu(), on_cpu, rtol=1e-9, atol=1e-9)


def test_slices_of_heads_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Large label scores are reduced a few heads at a time, computed again in the backward pass."""
    case = Case(single_root=True, kind=NUMBA, labels=3)
    lengths = torch.tensor([3, 2])
    inputs = smooth(case, lengths)
    whole = case.make(inputs, lengths)
    r = random_values(whole, 2, 1)
    expected = whole.entropy(), whole.marginals, whole.covariance(r, r)
    monkeypatch.setattr(label_sums, "SLICE", 30)
    sliced = case.make(inputs, lengths)
    for found, value in zip((sliced.entropy(), sliced.marginals, sliced.covariance(r, r)), expected, strict=True):
        torch.testing.assert_close(found, value)
    with torch.inference_mode():
        constants = case.make([part.clone() for part in inputs], lengths)
        found = constants.entropy(), constants.marginals, constants.covariance(r, r)
    for pair in zip(found, expected, strict=True):
        torch.testing.assert_close(*pair)

    def of_copies(*inputs: Tensor) -> tuple[Tensor, Tensor]:
        p = case.make(inputs, lengths.expand(len(inputs[0]), 2))
        return p.entropy(), p.marginals

    assert_derivatives(of_copies, inputs)
    short = torch.tensor([2, 1])
    assert gradgradcheck(lambda *x: case.make(x, short).log_partition, smooth(case, short))


def smooth(case: Case, lengths: Tensor) -> list[Tensor]:
    """Parameters for derivatives: everything finite, as numeric differences need it."""
    generator = torch.Generator().manual_seed(2)
    shapes = case.shapes(int(lengths.max()), (len(lengths),))
    return [torch.randn(shape, generator=generator, dtype=torch.float64, requires_grad=True) for shape in shapes]


def as_list(value: Tensor | tuple[Tensor, Tensor]) -> list[Tensor]:
    return [value] if isinstance(value, Tensor) else list(value)
