"""Batches of no items: every method of every distribution gives an empty tensor of its shape and type."""

import math
from collections.abc import Iterator
from typing import Any, get_args

import pytest
import torch
from helpers.tree_cases import Case, Distribution
from helpers.tree_cases import every_case_and_order as every_case
from torch import Tensor
from torch.distributions import kl_divergence

from treeparse import TreeparseError
from treeparse.trees.families import DistinctMethod

WORDS, LABELS, VALUES, COUNT = 3, 2, 2, 4
Batch = tuple[int, ...]
Found = tuple[str, Any, list[tuple[int, ...]]]

every_batch = pytest.mark.parametrize("batch", [(0,), (2, 0), (0, 3)], ids=str)


def numbers(case: Case, p: Distribution, q: Distribution, batch: Batch) -> Iterator[Found]:
    """What gives floating-point numbers, and of which shapes."""
    nodes = *batch, WORDS + 1
    part = (*nodes, WORDS + 1, LABELS) if case.labels else (*nodes, WORDS + 1)
    known = [torch.zeros(nodes, dtype=torch.int64)] * (1 + bool(case.labels))
    r = torch.zeros(*part, VALUES, dtype=p.scores.dtype)
    yield "log_partition", p.log_partition, [batch]
    yield "marginals", p.marginals, [part]
    if not case.labels:
        yield "log_marginals", p.log_marginals, [part]
    yield "entropy", p.entropy(), [batch]
    for order in (0.0, 0.5, 1 + 1e-7, math.inf):
        yield f"renyi_entropy({order})", p.renyi_entropy(order), [batch]
    for order in (2.0, math.inf):
        yield f"log_norm({order})", p.log_norm(order), [batch]
    yield "cross_entropy", p.cross_entropy(q), [batch]
    yield "kl_divergence", kl_divergence(p, q), [batch]
    for values in (r, r.to_sparse()):
        yield "expectation", p.expectation(values), [(*batch, VALUES)]
        yield "covariance", p.covariance(values, r), [(*batch, VALUES, VALUES)]
        yield "second_moment", p.second_moment(values, values), [(*batch, VALUES, VALUES)]
    yield "expectation", p.expectation(r[..., 0]), [batch]
    yield "log_prob", p.log_prob(*known), [batch]
    yield "log_prob", p.log_prob(*(column.expand(5, *column.shape) for column in known)), [(5, *batch)]
    yield "expected_uas", p.expected_uas(known[0]), [batch]
    yield "risk", p.risk(*known), [batch]
    if case.labels:
        yield "expected_las", p.expected_las(*known), [batch]
    yield "given", p.given(*known).log_partition, [batch]
    yield "expand", p.expand((2, *batch)).log_partition, [(2, *batch)]
    inputs = [p.scores, p.label_scores] if case.labels else [p.scores]
    total = p.log_partition + p.entropy() + p.renyi_entropy(2.0) + p.log_prob(*known) + p.risk(*known)
    yield "gradients", torch.autograd.grad(total.sum(), inputs), [tuple(part.shape) for part in inputs]


def trees(case: Case, p: Distribution, batch: Batch) -> Iterator[Found]:
    """What gives heads, and labels."""
    columns = 1 + bool(case.labels)
    nodes = *batch, WORDS + 1
    yield "mode", p.mode, [nodes] * columns
    yield "minimum_risk", p.minimum_risk(), [nodes] * columns
    yield "enumerate_support", p.enumerate_support(), [(0, *nodes)] * columns
    for shape in ((), (5,), (0,), (2, 3)):
        for options in ({}, {"generator": []}):
            yield "sample", p.sample(shape, **options), [(*shape, *nodes)] * columns


def lists(case: Case, p: Distribution, batch: Batch) -> Iterator[Found]:
    """What gives heads, labels and numbers."""
    shapes = [*[(COUNT, *batch, WORDS + 1)] * (1 + bool(case.labels)), *[(COUNT, *batch)] * 2]
    yield "topk", p.topk(COUNT), shapes
    for method in (None, *get_args(DistinctMethod)):
        if method != "beam" or case.kind.crossing:
            found = p.sample_without_replacement(COUNT, method=method)
            yield f"sample_without_replacement({method})", found, shapes


@every_case
@every_batch
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_every_method(case: Case, batch: Batch, dtype: torch.dtype) -> None:
    def make() -> Distribution:
        parameters = [part.to(dtype).requires_grad_() for part in case.parameters(WORDS, seed=1, batch=batch)]
        return case.make(parameters, torch.ones(batch, dtype=torch.int64))

    p, integers = make(), torch.int64
    for found, last in ((numbers(case, p, make(), batch), None), (trees(case, p, batch), integers)):
        for name, value, shapes in found:
            columns: tuple[Tensor, ...] = value if isinstance(value, tuple) else (value,)
            assert [tuple(column.shape) for column in columns] == shapes, name
            assert all(column.dtype == (last or dtype) for column in columns), name
    for name, columns, shapes in lists(case, p, batch):
        assert [tuple(column.shape) for column in columns] == shapes, name
        types = [integers if len(shape) > len(batch) + 1 else dtype for shape in shapes]
        assert [column.dtype for column in columns] == types, name
    assert list(p.best_first()) == []
    assert p.support.check(p.mode).shape == batch
    assert repr(p) in str(p._repr_html_())


@every_case
def test_the_support_of_long_sentences_is_refused_of_no_items_too(case: Case) -> None:
    with pytest.raises(TreeparseError, match="up to 7 words"):
        case.make(case.parameters(8, seed=1, batch=(0,))).enumerate_support()
