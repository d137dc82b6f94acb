"""Posterior regularisation against the enumeration of all labelled trees and another solver."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from helpers.constrained import SAID, SENTENCES, TAGGED, as_yaml, counts_of_trees, expected_counts, oracles
from helpers.gold_batches import LENGTHS
from helpers.tree_cases import CASES, NUMBA, Case, every_labeled_case
from torch import Tensor
from torch.autograd import gradcheck

from treeparse.errors import TreeparseError
from treeparse.objectives import PosteriorRegularization
from treeparse.objectives.constraints import ConstraintMatches, ShareBounds, multipliers_of
from treeparse.objectives.constraints.constraint_objectives import maximize

CASE = next(case for case in CASES if case.labels and case.single_root and case.kind is NUMBA)


def written(tmp_path: Path, targets: list[str]) -> str:
    (tmp_path / "constraints.yaml").write_text(as_yaml(targets), encoding="utf-8")
    return str(tmp_path / "constraints.yaml")


def feasible_shares(case: Case, parameters: list[Tensor]) -> list[float]:
    """The shares of another distribution over the same trees: some q has them all."""
    noise = torch.Generator().manual_seed(1)
    others = [part + torch.randn(part.shape, generator=noise, dtype=part.dtype) for part in parameters]
    matches, words = expected_counts(case, others)
    return (matches.sum(0) / words.sum(0)).tolist()


def mixed_bounds(case: Case, parameters: list[Tensor]) -> list[tuple[float, float]]:
    """Bounds of every kind that can be met together; the last one holds by itself."""
    shares = feasible_shares(case, parameters)
    interval = shares[2] - 0.02, shares[2] + 0.01
    return [(shares[0], shares[0]), (0.0, shares[1]), interval, (shares[3], 1.0), (shares[4], shares[4]), (0.0, 0.999)]


def with_bounds(tmp_path: Path, bounds: Sequence[tuple[float, float]], **settings: Any) -> PosteriorRegularization:
    path = written(tmp_path, [f"probability: [{least!r}, {most!r}]" for least, most in bounds])
    return PosteriorRegularization(path, most_steps=500, **settings)


def solved(objective: PosteriorRegularization, p: Any) -> tuple[Tensor, ShareBounds]:
    features = ConstraintMatches(objective.constraints, p, TAGGED)
    bounds = ShareBounds.of(objective.constraints, features.counts)
    return multipliers_of(features, bounds, objective.slack, objective.most_steps), bounds


class Lowered:
    """The q of multipliers ``(R,)`` by enumeration: its divergence from p, and its expected shares."""

    def __init__(self, case: Case, parameters: list[Tensor], multipliers: Tensor) -> None:
        self.divergences, matches, words = [], [], []
        for oracle, sentence in zip(oracles(case, parameters), SENTENCES, strict=True):
            counts, about = counts_of_trees(oracle, sentence)
            log_q = (oracle.totals - counts @ multipliers).log_softmax(0)
            possible = log_q > -torch.inf
            gain = torch.where(possible, log_q - oracle.log_probs, 0.0)
            self.divergences.append((log_q.exp() * gain).sum())
            matches.append(log_q.exp() @ counts)
            words.append(about)
        self.words = torch.stack(words).sum(0)
        self.shares = torch.stack(matches).sum(0) / self.words
        self.divergence = torch.stack(self.divergences).sum()


@every_labeled_case
@pytest.mark.parametrize("forbidden", [0.0, 0.1])
def test_q_meets_the_constraints_and_none_is_nearer(case: Case, forbidden: float, tmp_path: Path) -> None:
    parameters = case.parameters(4, seed=53, batch=(3,), forbidden=forbidden)
    p, every = case.make(parameters, LENGTHS), mixed_bounds(case, parameters)
    objective = with_bounds(tmp_path, every, slack=0.0)
    found, bounds = solved(objective, p)
    q = Lowered(case, parameters, found @ bounds.sides)
    for share, (least, most) in zip(q.shares.tolist(), every, strict=True):
        assert least - 1e-6 <= share <= most + 1e-6
    # The conditions under which a q of this form is the nearest one: the problem is convex.
    misses = bounds.sides @ q.shares - bounds.limits
    assert (bounds.free | (found >= 0)).all()
    assert (found * misses).abs().max() < 1e-5
    assert found[-1] == 0.0
    torch.testing.assert_close(objective(p, TAGGED).sum(), q.divergence, rtol=0, atol=1e-5)
    assert q.divergence > 0.1


@every_labeled_case
@pytest.mark.parametrize("slack", [0.01, 0.5])
def test_the_value_with_slack_by_enumeration(case: Case, slack: float, tmp_path: Path) -> None:
    parameters = case.parameters(4, seed=55, batch=(3,), forbidden=0.1)
    p, every = case.make(parameters, LENGTHS), mixed_bounds(case, parameters)
    objective = with_bounds(tmp_path, every, slack=slack)
    found, bounds = solved(objective, p)
    q = Lowered(case, parameters, found @ bounds.sides)
    misses = torch.tensor(
        [max(least - share, share - most, 0.0) for share, (least, most) in zip(q.shares.tolist(), every, strict=True)]
    ).double()
    value = q.divergence + (q.words * misses.square()).sum() / (2 * slack)
    torch.testing.assert_close(objective(p, TAGGED).sum(), value, rtol=0, atol=1e-6)
    torch.testing.assert_close((found @ bounds.sides).abs() * slack, misses, rtol=0, atol=1e-6)


@every_labeled_case
@pytest.mark.parametrize("slack", [0.0, 0.05])
def test_derivatives(case: Case, slack: float, tmp_path: Path) -> None:
    """By finite differences of the optimum, in which multipliers move too; and p is drawn to q."""
    inputs = [part.nan_to_num(0.0).requires_grad_() for part in case.parameters(4, seed=56, batch=(3,))]
    objective = with_bounds(tmp_path, mixed_bounds(case, [part.detach() for part in inputs]), slack=slack)
    assert gradcheck(lambda *x: objective(case.make(x, LENGTHS), TAGGED).sum(), inputs, fast_mode=True, atol=1e-4)
    p = case.make(inputs, LENGTHS)
    found = torch.autograd.grad(objective(p, TAGGED).sum(), inputs, retain_graph=True)
    multipliers, bounds = solved(objective, p)
    for item, (oracle, sentence) in enumerate(zip(oracles(case, inputs), SENTENCES, strict=True)):
        counts, _ = counts_of_trees(oracle, sentence)
        q = (oracle.totals - counts @ (multipliers @ bounds.sides)).softmax(0).detach()
        lowest = (oracle.probs.detach() - q) @ oracle.totals  # its gradient is E_p - E_q of the parts
        expected = torch.autograd.grad(lowest, inputs, retain_graph=True)
        for part, other in zip(found, expected, strict=True):
            torch.testing.assert_close(part[item], other[item], rtol=0, atol=1e-11)


@pytest.mark.parametrize("slack", [0.0, 1e-3])
@pytest.mark.parametrize("forbidden", [0.0, 0.15])
def test_what_cannot_be_met_stays_finite(slack: float, forbidden: float, tmp_path: Path) -> None:
    targets = ["probability: 0", *["probability: 1"] * 5]
    objective = PosteriorRegularization(written(tmp_path, targets), slack=slack)
    for seed in range(4):
        parameters = [part.requires_grad_() for part in CASE.parameters(4, seed=seed, batch=(3,), forbidden=forbidden)]
        values = objective(CASE.make(parameters, LENGTHS), TAGGED)
        assert values.isfinite().all() and values.sum() > 0
        values.sum().backward()
        assert all(part.grad is not None and part.grad.isfinite().all() for part in parameters)


def test_what_p_meets_already_costs_nothing(tmp_path: Path) -> None:
    objective = PosteriorRegularization(written(tmp_path, ["at_most: 0.999"] * len(SAID)))
    p = CASE.make(CASE.parameters(4, seed=57, batch=(3,)), LENGTHS)
    assert objective(p, TAGGED).abs().max() < 1e-12


def test_constraints_about_no_word_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    entries = "- {dependent: {upos: DET}, head: {upos: NOUN}, probability: 0.5}\n"
    path.write_text(entries, encoding="utf-8")
    p = CASE.make(CASE.parameters(4, seed=58, batch=(3,)), LENGTHS)
    alone = PosteriorRegularization(str(path))(p, TAGGED)
    path.write_text(f"- {{dependent: {{upos: X}}, head: root, probability: 0.5}}\n{entries}", encoding="utf-8")
    torch.testing.assert_close(PosteriorRegularization(str(path))(p, TAGGED), alone)
    path.write_text("- {dependent: {upos: X}, head: root, probability: 0.5}\n", encoding="utf-8")
    assert not PosteriorRegularization(str(path))(p, TAGGED).any()


def test_faults(tmp_path: Path) -> None:
    path = written(tmp_path, ["probability: 0.4"] * len(SAID))
    for slack in (-1.0, math.inf, math.nan):
        with pytest.raises(TreeparseError, match="slack must be a finite number that is at least 0"):
            PosteriorRegularization(path, slack=slack)
    with pytest.raises(TreeparseError, match="most_steps must be at least 1, got 0"):
        PosteriorRegularization(path, most_steps=0)


# ---------------------------------------------------------------- the ascent itself


def test_the_greatest_value_of_a_paraboloid_under_bounds() -> None:
    curvature = torch.tensor([1.0, 100.0, 0.01, 5.0], dtype=torch.float64)
    centre = torch.tensor([-3.0, -2.0, 4.0, 1.0], dtype=torch.float64)
    evaluated = 0

    def value(point: Tensor) -> tuple[Tensor, Tensor]:
        nonlocal evaluated
        evaluated += 1
        away = point - centre
        return -(curvature * away.square()).sum() / 2, -curvature * away

    free = torch.tensor([True, False, True, False])
    tolerance = torch.full((4,), 1e-9, dtype=torch.float64)
    found = maximize(value, free, tolerance, 200)
    torch.testing.assert_close(found, torch.tensor([-3.0, 0.0, 4.0, 1.0]).double(), rtol=0, atol=1e-6)
    assert evaluated < 120
    evaluated = 0
    maximize(value, free, tolerance, 5)
    assert evaluated == 6
