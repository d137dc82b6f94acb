"""Scores at the edge of what is allowed, and beyond it: every method ends, and nothing is NaN."""

import itertools
import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, get_args

import numpy as np
import pytest
import torch
from helpers.tree_cases import (
    NUMBA,
    SAMPLED,
    SECOND_ORDER,
    Case,
    Distribution,
    Enumerated,
    every_case,
    every_case_and_order,
    generator,
)
from torch import Tensor
from torch.distributions import kl_divergence

from treeparse import LabeledCRF, NonProjectiveCRF, ProjectiveCRF, TreeparseError
from treeparse.trees.checks import MAX_SCORE
from treeparse.trees.families import DistinctMethod, Method

pytestmark = pytest.mark.timeout(300, method="thread")  # a signal does not end a kernel


KINDS = ("equal", "negative", "alternating", "close", "far", "pairs", "few")


def scores_of(kind: str, shape: Sequence[int], scale: float, seed: int) -> Tensor:
    """Scores ``(n+1, n+1, ...)`` of at most this magnitude that leave little to tell trees by."""
    stream = np.random.default_rng(seed)
    if kind in ("equal", "negative"):
        result = np.full(shape, scale if kind == "equal" else -scale)
    elif kind == "alternating":
        result = np.where(np.indices(shape).sum(0) % 2 == 0, scale, -scale)
    elif kind == "close":
        result = scale * (1 - 1e-5) + stream.normal(size=shape)
    elif kind == "far":
        result = stream.uniform(-scale, scale, size=shape)
    elif kind == "pairs":  # of words that prefer each other, far from the root
        result = stream.normal(size=shape)
        first = np.arange(1, shape[0] - 1, 2)
        result[first, first + 1] = result[first + 1, first] = scale
        result[0] = -scale
    else:
        result = stream.choice([scale, -scale, 0.0, 1.0, -np.inf], size=shape)
        result[0], result[1, 2:] = -scale, np.minimum(result[1, 2:], 0.0).clip(-scale)  # there is a tree
    return torch.from_numpy(result)


def parameters_of(case: Case, kind: str, words: int, scale: float, seed: int = 0) -> list[Tensor]:
    shape = words + 1, words + 1
    result = [scores_of(kind, shape, scale, seed)]
    if case.labels:
        result.append(scores_of("far" if kind == "few" else kind, (*shape, case.labels), scale, seed + 1))
    return [part.requires_grad_() for part in result]


def as_tuple(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def quantities(case: Case, p: Distribution, q: Distribution) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Every public method but the samplers, called."""
    known = as_tuple(p.mode)
    values = torch.randn(*p.marginals.shape, 2, generator=generator(1), dtype=torch.float64)
    yield from {name: lambda name=name: getattr(p, name) for name in ("log_partition", "marginals", "mode")}.items()
    if not case.labels:
        yield "log_marginals", lambda: p.log_marginals
    yield "entropy", p.entropy
    for order in (0.0, 0.3, 1 - 1e-4, 1 - 1e-6, 2.0, 1e6, math.inf):
        yield f"renyi_entropy({order})", lambda order=order: p.renyi_entropy(order)
    for order in (0.5, 3.0, math.inf):
        yield f"log_norm({order})", lambda order=order: p.log_norm(order)
    yield "cross_entropy", lambda: (p.cross_entropy(q), q.cross_entropy(p))
    yield "kl_divergence", lambda: (kl_divergence(p, q), kl_divergence(p, p))
    yield "expectation", lambda: p.expectation(values)
    yield "second_moment", lambda: (p.second_moment(values, values), p.covariance(values, values))
    yield "log_prob", lambda: p.log_prob(p.mode)
    yield "topk", lambda: p.topk(9)
    yield "best_first", lambda: tuple(part for tree in itertools.islice(p.best_first(), 9) for part in tree)
    yield "minimum_risk", p.minimum_risk
    yield "risk", lambda: (p.risk(*known), p.expected_uas(known[0]))
    yield "given", lambda: p.given(*known).log_partition

    def gradients() -> tuple[Tensor, ...]:
        total = p.log_partition.sum() + p.entropy().sum() + p.renyi_entropy(2.0).sum() + p.log_prob(p.mode).sum()
        return torch.autograd.grad(total, [p.scores, p.label_scores] if case.labels else [p.scores])

    yield "gradients", gradients


def samples(case: Case, p: Distribution) -> Iterator[tuple[str, Any]]:
    """Trees by every sampler with replacement."""
    yield "sample", p.sample((20,), generator=generator(2))
    if case.kind == NUMBA and not case.labels:
        for method in get_args(Method):
            if method != ("wilson" if case.single_root else "wilson_marginal"):
                yield method, p.sample((20,), generator=generator(2), method=method)


def assert_distinct_trees(case: Case, p: Distribution, count: int, trees: int | None = None) -> None:
    """Every sampler without replacement gives different trees of the support, and numbers that are numbers."""
    for method in get_args(DistinctMethod):
        if method == "beam" and not case.kind.crossing:
            continue
        *columns, log_probs, keys = p.sample_without_replacement(count, generator=generator(3), method=method)
        exists = columns[0][:, 1] >= 0
        assert exists.sum() == (trees or count), method
        rows = torch.cat(columns, -1)[exists]
        assert len(rows.unique(dim=0)) == len(rows), method
        assert p.support.check(tuple(columns) if case.labels else columns[0])[exists].all(), method
        assert not log_probs.isnan().any() and not keys.isnan().any(), method
        assert (log_probs <= 0).all(), method


@every_case
@pytest.mark.parametrize("kind", KINDS)
def test_nothing_hangs_or_is_nan(case: Case, kind: str) -> None:
    p = case.make(parameters_of(case, kind, 5, MAX_SCORE))
    q = case.make(parameters_of(case, "far", 5, MAX_SCORE, seed=7))
    for name, quantity in quantities(case, p, q):
        for found in as_tuple(quantity()):
            assert not found.isnan().any(), name
            assert not (found == torch.inf).any() or name in ("cross_entropy", "kl_divergence"), name
    for name, trees in samples(case, p):
        assert p.support.check(trees).all(), name
    if case in SAMPLED:
        assert_distinct_trees(case, p, 20)


@every_case
@pytest.mark.parametrize("kind", KINDS)
def test_more_trees_than_there_are(case: Case, kind: str) -> None:
    """Rounding must leave no mass to go on with once all trees are drawn."""
    for words in (1, 2, 3):
        p = case.make(parameters_of(case, kind, words, MAX_SCORE))
        support = as_tuple(p.enumerate_support())[0]
        assert_distinct_trees(case, p, len(support) + 3, trees=len(support))


@every_case
@pytest.mark.parametrize("kind", ["equal", "alternating", "pairs"])
def test_a_long_sentence_at_the_bound(case: Case, kind: str) -> None:
    """A tree's score is a sum of 40."""
    p = case.make(parameters_of(case, kind, 40, MAX_SCORE))
    assert p.log_partition.isfinite() and p.entropy().isfinite()
    assert p.support.check(p.sample((5,), generator=generator(2))).all()
    if case in SAMPLED:
        assert_distinct_trees(case, p, 5)


@every_case
def test_what_is_the_same_for_all_trees_changes_no_law(case: Case) -> None:
    """A constant in a column is in every tree's score, so that trees come with the probabilities without it."""
    parameters = case.parameters(3, seed=1)
    shifted = [parameters[0] + torch.tensor([0.0, 2.0**19, -(2.0**18), 2.0**19], dtype=torch.float64), *parameters[1:]]
    oracle, p = Enumerated(case, parameters), case.make(shifted)
    torch.testing.assert_close(p.marginals, oracle.marginals, rtol=0, atol=1e-9)
    torch.testing.assert_close(p.entropy(), oracle.entropy, rtol=0, atol=3e-9)


@every_case
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_larger_scores_are_refused(case: Case, dtype: torch.dtype) -> None:
    for part, what in enumerate(("arc 2 -> 1", "a label of arc 2 -> 1")[: 1 + bool(case.labels)]):
        for value in (1.01 * MAX_SCORE, -1.01 * MAX_SCORE, 1e16, -3e38, math.inf, math.nan):
            parameters = [own.to(dtype) for own in case.parameters(3, seed=2, batch=(2, 2), forbidden=0.2)]
            parameters[part][1, 0, 2, 1] = value
            with pytest.raises(TreeparseError, match=rf"^The score of {what} in batch item \(1, 0\) is "):
                case.make(parameters)
            assert case.make(parameters, torch.tensor([[3, 3], [1, 3]])).scores.shape == (2, 2, 4, 4)  # beyond a length


@every_case
@pytest.mark.parametrize("value", [1e16, 1e300, 1.7e308, math.nan, math.inf])
def test_scores_that_are_not_checked_end_too(case: Case, value: float) -> None:
    """Repeats were drawn for ever where rounding left no mass to end on."""
    for kind in ("equal", "pairs", "few"):
        parameters = parameters_of(case, kind, 4, 1.0)
        parameters = [torch.where(part.abs() == 1, part * value, part).detach() for part in parameters]
        base = NonProjectiveCRF if case.kind.crossing else ProjectiveCRF
        p: Any = base(parameters[0], single_root=case.single_root, validate_args=False)
        if case.labels:
            p = LabeledCRF(p, parameters[1].nan_to_num(0.0, 0.0, -math.inf))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert not p.entropy().isnan()
            assert len(as_tuple(p.topk(20))[0]) == 20
            for method in ("repeat", "trie"):
                *columns, log_probs, keys = p.sample_without_replacement(20, generator=generator(3), method=method)
                rows = torch.cat(columns, -1)[columns[0][:, 1] >= 0]
                assert len(rows.unique(dim=0)) == len(rows)
                assert not log_probs.isnan().any() and not keys.isnan().any()


@every_case_and_order
@pytest.mark.parametrize("magnitude", [6.5, 40, 307])
def test_scores_that_are_not_checked_count_as_the_largest_ones(case: Case, magnitude: float) -> None:
    """Draws without replacement wrote outside their memory where rounding left a tree without a head."""
    largest = 10.0**magnitude
    generators = [generator(seed) for seed in range(4)]
    for seed in range(4):
        parameters = [
            torch.where(part.isnan(), part, torch.where(part > 0.5, largest, torch.where(part < -0.5, -largest, part)))
            for part in case.parameters(4 if not case.labels else 3, seed=seed, forbidden=0.1)
        ]
        clamped = [part.clamp(-MAX_SCORE, MAX_SCORE) for part in parameters]
        p, q = (case.make(part, validate_args=False) for part in (parameters, clamped))
        assert case.labels or torch.equal(p.log_partition, q.log_partition)
        if p.log_partition == -torch.inf:
            continue
        for trees in (p.mode, p.topk(5), p.minimum_risk(), p.sample((5,), generator=generators[seed])):
            columns = as_tuple(trees)[: 1 + bool(case.labels)]
            has_tree = (columns[0] >= 0).any(-1)
            value = columns if case.labels else columns[0]
            assert (p.support.check(value) == has_tree).all()
        if case in SAMPLED or case in SECOND_ORDER:
            assert_distinct_trees(case, p, 5, trees=min(5, len(as_tuple(q.enumerate_support())[0])))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 3e38])
def test_unchecked_scores_of_short_dtypes_are_those_of_float64(dtype: torch.dtype, value: float) -> None:
    """A short dtype is looked at for less, since whatever is finite in it can be summed."""
    scores = torch.randn(2, 4, 4, generator=generator(1)).to(dtype)
    scores[0, 1, 2] = value
    short, long = (NonProjectiveCRF(part, validate_args=False).batched for part in (scores, scores.double()))
    assert bool(short.log_partition.isfinite().all())
    torch.testing.assert_close(short.log_partition, long.log_partition, rtol=0, atol=0)
    torch.testing.assert_close(short.marginals, long.marginals, rtol=0, atol=0)
