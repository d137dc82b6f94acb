"""Generalised expectation against the enumeration of all labelled trees."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from helpers.constrained import SAID, TAGGED, as_yaml, expected_counts
from helpers.gold_batches import LENGTHS
from helpers.tree_cases import CASES, NUMBA, Case, every_labeled_case
from torch import Tensor

from treeparse.errors import TreeparseError
from treeparse.objectives import GeneralizedExpectation
from treeparse.training import load_config, train

BOUNDS = [(0.9, 0.9), (0.0, 0.05), (0.7, 1.0), (0.2, 0.4), (0.0, 0.0), (1.0, 1.0)]
TARGETS = [f"probability: [{least}, {most}]" for least, most in BOUNDS]
CASE = next(case for case in CASES if case.labels and case.single_root and case.kind is NUMBA)


@pytest.fixture
def path(tmp_path: Path) -> str:
    (tmp_path / "constraints.yaml").write_text(as_yaml(TARGETS), encoding="utf-8")
    return str(tmp_path / "constraints.yaml")


def penalty(share: Tensor, least: float, most: float, kind: str) -> Tensor:
    """The distance of a share to the nearest of its targets, from the definitions."""
    nearest = min(max(float(share.detach()), least), most)
    if kind == "squared":
        return (share - nearest) ** 2
    if nearest == float(share.detach()):
        return 0 * share
    outcomes = (nearest, share), (1 - nearest, 1 - share)
    return torch.stack([chance * (math.log(chance) - own.log()) for chance, own in outcomes if chance > 0]).sum()


def enumerated(case: Case, parameters: list[Tensor], kind: str) -> Tensor:
    """The sum of the penalties of a batch."""
    matches, words = expected_counts(case, parameters)
    shares = (matches.sum(0) / words.sum(0)).unbind()
    return torch.stack([penalty(share, *ends, kind) for share, ends in zip(shares, BOUNDS, strict=True)]).sum()


@every_labeled_case
@pytest.mark.parametrize("kind", ["squared", "kl"])
@pytest.mark.parametrize("forbidden", [0.0, 0.15])
def test_value_and_gradient_by_enumeration(case: Case, kind: Any, forbidden: float, path: str) -> None:
    parameters = [part.requires_grad_() for part in case.parameters(4, seed=23, batch=(3,), forbidden=forbidden)]
    objective = GeneralizedExpectation(path, kind).eval()
    expected = enumerated(case, parameters, kind)
    values = objective(case.make(parameters, LENGTHS), TAGGED)
    assert values.shape == (3,)
    torch.testing.assert_close(values.sum() / LENGTHS.sum(), expected, rtol=0, atol=1e-11)
    torch.testing.assert_close(values, expected * LENGTHS, rtol=0, atol=1e-10)
    found, wanted = (torch.autograd.grad(loss, parameters) for loss in (values.sum() / LENGTHS.sum(), expected))
    for part, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(part, other.nan_to_num(0.0), rtol=0, atol=1e-11)


# ---------------------------------------------------------------- what is kept of past batches


def test_shares_of_past_batches_by_hand(path: str) -> None:
    objective = GeneralizedExpectation(path, memory=0.5).train()
    numerators = denominators = torch.zeros(len(SAID), dtype=torch.float64)
    for seed in (31, 32, 33):
        parameters = [part.requires_grad_() for part in CASE.parameters(4, seed=seed, batch=(3,))]
        matches, words = (part.sum(0) for part in expected_counts(CASE, parameters))
        numerators, denominators = 0.5 * numerators + matches.detach(), 0.5 * denominators + words
        running = (numerators / denominators).requires_grad_()
        value = torch.stack(
            [penalty(share, *ends, "squared") for share, ends in zip(running.unbind(), BOUNDS, strict=True)]
        ).sum()
        loss = objective(CASE.make(parameters, LENGTHS), TAGGED).sum() / LENGTHS.sum()
        torch.testing.assert_close(loss, value, rtol=0, atol=1e-12)
        # The penalty bends as the running share says, which in turn moves as the batch's own.
        (slopes,) = torch.autograd.grad(value, running)
        found = torch.autograd.grad(loss, parameters)
        expected = torch.autograd.grad((slopes * matches / words).sum(), parameters)
        for part, other in zip(found, expected, strict=True):
            torch.testing.assert_close(part, other.nan_to_num(0.0), rtol=0, atol=1e-12)
    before = objective.numerators.clone()
    p = CASE.make(CASE.parameters(4, seed=34, batch=(3,)), LENGTHS)
    alone = GeneralizedExpectation(path, memory=0.0)(p, TAGGED)
    assert torch.equal(objective.eval()(p, TAGGED), alone)
    assert torch.equal(objective.numerators, before)


def test_a_saved_state_goes_on_with_the_same_bits(path: str, tmp_path: Path) -> None:
    first = GeneralizedExpectation(path, "kl", memory=0.9)
    batches = [CASE.make(CASE.parameters(4, seed=seed, batch=(3,)), LENGTHS) for seed in range(41, 45)]
    values = [first(p, TAGGED) for p in batches[:2]]
    torch.save(first.state_dict(), tmp_path / "state")
    values += [first(p, TAGGED) for p in batches[2:]]
    second = GeneralizedExpectation(path, "kl", memory=0.9)
    second.load_state_dict(torch.load(tmp_path / "state", weights_only=True))
    assert all(torch.equal(second(p, TAGGED), value) for p, value in zip(batches[2:], values[2:], strict=True))
    assert not torch.equal(GeneralizedExpectation(path, "kl", memory=0.9)(batches[2], TAGGED), values[2])


def test_constraints_about_no_word_of_a_batch(path: str) -> None:
    objective = GeneralizedExpectation(path, memory=0.9).train()
    p = CASE.make(CASE.parameters(4, seed=26, batch=(3,)), LENGTHS)
    objective(p, TAGGED)
    before = objective.state_dict()["numerators"].clone()
    others = tuple(
        replace(sentence, upos=("X",) * len(sentence), forms=("x",) * len(sentence)) for sentence in TAGGED.sentences
    )
    other = objective(p, replace(TAGGED, sentences=others))
    unchanged = objective.numerators == before
    assert unchanged.tolist() == [True, True, True, False, False, True]
    # Of those that are about all words, the first can never match without a dog; what is left is its share of 0.
    alone = GeneralizedExpectation(path).eval()(p, replace(TAGGED, sentences=others))
    far = (p.arcs.marginals * distance_mask((2, 3))).sum() / 9
    torch.testing.assert_close(alone.sum() / 9, (0.2**2 + far**2), rtol=0, atol=1e-12)
    assert other.isfinite().all()


def distance_mask(distances: tuple[int, ...]) -> Tensor:
    position = torch.arange(5)
    apart = (position - position.unsqueeze(-1)).abs()
    return ((apart == distances[0]) | (apart == distances[1])) & (position.unsqueeze(-1) > 0)


@pytest.mark.parametrize("kind", ["squared", "kl"])
@pytest.mark.parametrize("scale", [1e3, 1e5])
def test_sure_models_make_no_nan(kind: Any, scale: float, path: str) -> None:
    """Shares are 0 and 1 up to rounding, at the target or as far from it as can be."""
    objective = GeneralizedExpectation(path, kind)
    for seed in range(5):
        parameters = [part.requires_grad_() for part in CASE.parameters(4, seed=seed, batch=(3,), scale=scale)]
        loss = objective(CASE.make(parameters, LENGTHS), TAGGED).sum()
        loss.backward()
        assert 0 < loss < 6 * 9 * 14
        assert all(part.grad is not None and part.grad.isfinite().all() for part in parameters)


def test_faults(path: str) -> None:
    with pytest.raises(TreeparseError, match="penalty must be 'squared' or 'kl', got 'l1'"):
        GeneralizedExpectation(path, "l1")  # pyright: ignore[reportArgumentType]
    for memory in (-0.1, 1.0, float("nan")):
        with pytest.raises(TreeparseError, match="memory must be a number that is at least 0 and below 1, got"):
            GeneralizedExpectation(path, memory=memory)
    with pytest.raises(TreeparseError, match="Unknown file of constraints 'missing': choose one of ud"):
        GeneralizedExpectation("missing")
    with pytest.raises(OSError, match="missing"):
        GeneralizedExpectation("folder/missing.yaml")


# ---------------------------------------------------------------- training


def test_a_parser_learns_from_constraints_alone(tiny_config: Path, tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(
        "- {dependent: {upos: ADJ}, head: {upos: NOUN}, direction: left, probability: 1}\n"
        "- {dependent: {upos: ADJ}, head: {upos: NOUN}, distance: 1, at_least: 0.4}\n"
        "- {dependent: {upos: NOUN}, head: {upos: VERB}, label: [nsubj, obj, iobj, obl], probability: [0.6, 0.7]}\n"
        "- {dependent: {upos: NOUN}, head: {upos: VERB}, probability: 1}\n"
        "- {dependent: {upos: VERB}, head: root, probability: 1}\n",
        encoding="utf-8",
    )
    name = "treeparse.objectives.GeneralizedExpectation"
    objective = ["--objective", name, "--objective.constraints", str(tmp_path / "c.yaml"), "--objective.memory", "0"]
    options = ["--optimization.epochs", "16", "--optimization.learning_rate", "0.01", "--objective.penalty", "kl"]
    options += ["--data.batch_words", "40", "--seed", "2"]
    run = train(load_config(tiny_config, [*objective, *options]), quiet=True).parent
    state = torch.load(run / "checkpoints" / "last.ckpt", weights_only=True)["state_dict"]
    of_objective = {name for name in state if name.startswith("objective.")}
    assert of_objective == {"objective.numerators", "objective.denominators"}
    header, *lines = (run / "metrics.csv").read_text(encoding="utf-8").splitlines()
    losses, uas = (
        [float(line.split(",")[header.split(",").index(column)]) for line in lines] for column in ("loss", "dev_uas")
    )
    assert losses[-1] < losses[0] / 4
    assert uas[-1] > 0.85
