"""Batches of hostile scores: trees must be trees, and sums right, in every family, backend and dtype."""

import functools
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import numpy as np
import torch
from helpers.precise import Precise
from helpers.tree_cases import CASES, EMULATED_CASES, SECOND_ORDER, Case, Distribution, generator
from hypothesis import strategies as st
from torch import Tensor
from torch.distributions import kl_divergence

from treeparse import NoTreeError
from treeparse.trees.checks import MAX_SCORE

KINDS = ("normal", "ties", "near ties", "last digits", "equal", "alternating", "uniform", "pairs", "tiny")
FORBIDDEN = (0.0, 0.0, 0.1, 0.3, 0.6)
DTYPES = (torch.float64, torch.float64, torch.float64, torch.float32, torch.bfloat16, torch.float16)
COPIES = (1, 8)
ONE_IN = 100  # cases of one that is compared with 60 digits
RIGHT = 1e-9  # relative, or absolute in nats and probabilities
CANCELLING = 3e-16  # of the squared scores: the error of entropies and divergences, differences of large numbers


@dataclass(frozen=True)
class Item:
    """The scores of one sentence, drawn anew from a seed."""

    kind: str
    words: int
    magnitude: float  # log10
    forbidden: float
    seed: int

    def parameters(self, case: Case, dtype: torch.dtype) -> list[Tensor]:
        """Scores as ``case`` takes them; what is to be ignored is NaN or infinite."""
        stream, scale = np.random.default_rng(self.seed), 10.0**self.magnitude
        most = min(MAX_SCORE, torch.finfo(dtype).max)
        result = []
        for shape, pattern in zip(case.shapes(self.words, ()), case.parameters(self.words, seed=0), strict=True):
            scores = np.clip(_scores(self.kind, shape, scale, stream), -most, most)
            scores[stream.random(shape) < self.forbidden / (1 if len(result) == 0 else 4)] = -np.inf
            ignored = stream.choice([np.nan, np.inf, -np.inf], size=shape)
            result.append(torch.from_numpy(np.where(pattern.isnan().numpy(), ignored, scores)).to(dtype))
        return result


@dataclass(frozen=True)
class Scores:
    """A batch of sentences under one distribution, several of each kind that is drawn."""

    case: Case
    drawn: list[Item]
    copies: int
    dtype: torch.dtype

    @functools.cached_property
    def items(self) -> list[Item]:
        return [replace(item, seed=item.seed + copy) for item in self.drawn for copy in range(self.copies)]

    @functools.cached_property
    def of_items(self) -> list[list[Tensor]]:
        """The scores of each item."""
        return [item.parameters(self.case, self.dtype) for item in self.items]

    def parameters(self) -> tuple[list[Tensor], Tensor]:
        """The scores of the batch, with NaN as padding, and lengths."""
        lengths = torch.tensor([item.words for item in self.items])
        shapes = self.case.shapes(int(lengths.max()), (len(self.items),))
        batch = [torch.full(shape, torch.nan, dtype=self.dtype) for shape in shapes]
        for index, parts in enumerate(self.of_items):
            for padded, own in zip(batch, parts, strict=True):
                padded[(index, *map(slice, own.shape))] = own
        return batch, lengths

    @functools.cached_property
    def sizes(self) -> Tensor:
        """The largest score of each item ``(B,)``."""
        return torch.tensor(list(map(_size, self.of_items)), dtype=torch.float64)

    @property
    def last_digits(self) -> Tensor:
        """What the rounding of a few sums of each item's scores may change ``(B,)``."""
        return (1e-14 if self.dtype == torch.float64 else 1e-6) * self.sizes

    def of_item(self, parameters: Sequence[Tensor], index: int) -> list[Tensor]:
        return self.case.of_item(parameters, index, self.items[index].words)


def batches(cases: Sequence[Case], most: int) -> st.SearchStrategy[Scores]:
    """Batches of up to ``most`` sentences under one of the distributions."""

    @st.composite
    def draw(draw: st.DrawFn) -> Scores:
        case = draw(st.sampled_from(cases))
        item = st.builds(
            Item,
            kind=st.sampled_from(KINDS),
            words=st.integers(0, 3 if case.labels else 4),
            magnitude=st.floats(-3.0, 6.0) | st.sampled_from([-320.0, 3.0, 6.0]),
            forbidden=st.sampled_from(FORBIDDEN),
            seed=st.integers(0, 2**32 - 1),
        )
        items = draw(st.lists(item, min_size=1, max_size=most))
        return Scores(case, items, draw(st.sampled_from(COPIES)), draw(st.sampled_from(DTYPES)))

    return draw()


ON_CPU = batches(CASES + SECOND_ORDER, most=16)
EMULATED = batches(EMULATED_CASES, most=4)


def check(example: Scores) -> int:
    """Check all that holds of any scores, and one case of a hundred against 60 digits."""
    parameters, lengths = example.parameters()
    leaves = [part.requires_grad_() for part in parameters]
    p = example.case.make(leaves, lengths, validate_args=False)
    exists = p.log_partition.detach() > -torch.inf
    largest = _check_existence(example, parameters, lengths, exists)
    _check_trees(example, p, exists, largest)
    _check_numbers(example, p, leaves, exists)
    chosen = random.Random(repr(example.items))
    if example.dtype == torch.float64:
        for index, item in enumerate(example.items):
            if exists[index] and item.words and chosen.randrange(ONE_IN) == 0:
                check_digits(example.case, example.of_item(parameters, index), seed=item.seed)
    return len(example.items)


def _check_existence(example: Scores, parameters: Sequence[Tensor], lengths: Tensor, exists: Tensor) -> Tensor:
    """An item has a log partition if one of its trees has no forbidden part; otherwise, validation names it.

    Returns the best trees' scores ``(B,)``.
    """
    exact = [part.detach().double() for part in parameters]
    of_items = [example.case.enumerated(example.of_item(exact, index)) for index in range(len(lengths))]
    largest = torch.stack([trees.totals.max() for trees in of_items])
    assert torch.equal(exists, largest > -torch.inf)
    strict = example.case.make([part.detach() for part in parameters], lengths, validate_args=True)
    if bool(exists.all()):
        assert torch.equal(strict.log_partition, example.case.make(parameters, lengths).log_partition)
        return largest
    try:
        strict.log_partition  # noqa: B018
    except NoTreeError as error:
        assert f"batch item {int((~exists).nonzero()[0])}" in str(error), error
    else:
        raise AssertionError("A batch with an item without a tree was taken.")
    return largest


def _check_trees(example: Scores, p: Distribution, exists: Tensor, largest: Tensor) -> None:
    """All trees that are found are trees of the support; without a tree, all heads are -1."""
    *listed, scores, _ = p.topk(3)
    best, several = _rows(p.mode), _rows(listed)
    found = [best.unsqueeze(0), _rows(p.minimum_risk()).unsqueeze(0), several]
    found.append(_rows(p.sample((3,), generator=generator(1))))
    columns = p.sample_without_replacement(3, generator=generator(2))
    found.append(_rows(columns[: 1 + bool(example.case.labels)]))
    for trees in found:
        has_tree = (trees >= 0).any((-2, -1)) | (p.lengths == 0)
        heads = tuple(trees.unbind(-2)) if example.case.labels else trees[..., 0, :]
        assert (p.support.check(heads) == (has_tree & exists)).all(), "not a tree of the support"
        assert (has_tree <= exists).all()
        assert (trees[~(has_tree & (p.lengths > 0))] == -1).all()
    for trees in (several, found[-1]):
        for item in trees.unbind(1):
            rows = item[(item >= 0).any((-2, -1))].flatten(1)
            assert len(rows.unique(dim=0)) == len(rows), "a tree twice"
    assert (scores[:-1] >= scores[1:]).all()
    for trees in (best, several[0]):
        own = p.score(tuple(trees.unbind(-2)) if example.case.labels else trees[..., 0, :]).detach()
        for score in (own, scores[0]):  # both are the best tree's but for the order of sums
            difference = torch.where(exists, score - largest, 0.0).abs()
            assert (difference <= example.last_digits).all(), "the best tree"


def _check_numbers(example: Scores, p: Distribution, leaves: Sequence[Tensor], exists: Tensor) -> None:
    """Probabilities lie between 0 and 1 and add up, entropies are possible, and nothing is NaN."""
    right = RIGHT if example.dtype == torch.float64 else 1e-5
    cancelling = torch.maximum(torch.tensor(right), CANCELLING * example.sizes**2)
    marginals, entropy = p.marginals.detach(), p.entropy().detach()
    arcs = marginals.sum(-1) if example.case.labels else marginals
    assert (arcs >= 0).all() and (arcs <= 1 + right).all()
    heads = arcs.sum(-2) - (p.word_mask & exists.unsqueeze(-1)).double()
    assert (heads.abs() <= right).all(), "the probabilities of a word's heads"
    trees = torch.tensor([max(1, len(example.case.trees(item.words)[0])) for item in example.items]).double().log()
    assert (entropy[~exists] == -torch.inf).all()
    assert (entropy >= -cancelling)[exists].all() and (entropy <= trees + cancelling).all(), "entropy"
    again = example.case.make([part.detach() for part in leaves], p.lengths, validate_args=False)
    assert (kl_divergence(p, again).abs() <= cancelling)[exists].all(), "KL(p, p)"
    best = p.log_prob(p.mode if isinstance(p.mode, Tensor) else tuple(p.mode)).detach()
    assert (best[exists] <= right).all() and not best.isnan().any()
    total = torch.where(exists, p.log_partition + p.entropy() + p.renyi_entropy(2.0), 0.0).sum()
    for gradient in torch.autograd.grad(total, leaves):
        assert gradient.isfinite().all(), "gradient"


def _size(parameters: Sequence[Tensor]) -> float:
    """The sum of the largest score of each kind; what is ignored does not count."""
    finite = [part[part.abs() <= MAX_SCORE].detach().abs() for part in parameters]
    return sum(float(part.max()) for part in finite if part.numel())


def _rows(value: Any) -> Tensor:
    """Heads, or heads and labels ``(..., 1 or 2, n+1)``."""
    columns = [value] if isinstance(value, Tensor) else list(value)
    return torch.stack(columns, -2)


def check_digits(case: Case, parameters: Sequence[Tensor], *, seed: int) -> None:
    """Compare sums over the trees of one item, and their gradients, with 60 digits."""
    for name, error in errors(case, parameters, seed=seed).items():
        assert error <= (most := tolerance(name, parameters)), f"{name} is off by {error:.1e}, and may be by {most:.1e}"


def tolerance(name: str, parameters: Sequence[Tensor]) -> float:
    """Return by how much a quantity may be off: 1e-9; for differences of large numbers 3e-8 at 1e4, 3e-4 at 1e6."""
    cancels = any(word in name for word in ("entropy", "divergence"))
    return max(RIGHT, CANCELLING * _size(parameters) ** 2) if cancels else RIGHT


def errors(case: Case, parameters: Sequence[Tensor], *, seed: int) -> dict[str, float]:
    """Return by how much each quantity of one item is off: absolutely, or relatively where it is above 1.

    Gradients count relative to their largest entry, or to the value itself.
    """
    first = [part.detach().clone().requires_grad_() for part in parameters]
    second = [part.detach().clone().requires_grad_() for part in _neighbour(parameters, seed)]
    exact, other = Precise(case, first), Precise(case, second)
    p, q = case.make(first), case.make(second)
    gold = [column[seed % len(column)] for column in exact.trees]
    are_right = torch.stack([column == own for column, own in zip(exact.trees, gold, strict=True)]).all(0)
    right = are_right[:, 1:].sum(1).tolist()
    words = parameters[0].shape[-1] - 1
    entropy, cross_entropy, risk = p.entropy(), p.cross_entropy(q), p.risk(*gold)
    found: dict[str, tuple[Any, Any]] = {
        "log partition": (p.log_partition, float(exact.log_partition)),
        "marginals": (case.marginals(p), _as_marginals(case, exact)),
        "log probabilities": (p.log_prob(_value(exact.trees)), list(map(float, exact.log_probs))),
        "entropy": (entropy, exact.entropy),
        "cross-entropy": (cross_entropy, exact.code_length(other.log_probs)),
        "KL divergence": (kl_divergence(p, q), exact.divergence(other)),
        "risk": (risk, 1 - exact.expectation(right) / words),
    }
    gradients = {
        "log partition": (p.log_partition, first, exact.marginals),
        "entropy": (entropy, first, exact.covariances([-value for value in exact.log_probs])),
        "risk": (risk, first, [-part / words for part in exact.covariances(_decimals(right))]),
        "cross-entropy": (cross_entropy, first, exact.covariances([-value for value in other.log_probs])),
        "cross-entropy, of q": (
            cross_entropy,
            second,
            [theirs - own for own, theirs in zip(exact.marginals, other.marginals, strict=True)],
        ),
    }
    result = {name: _error(*pair) for name, pair in found.items()}
    for name, (value, leaves, expected) in gradients.items():
        parts = torch.autograd.grad(value, leaves, retain_graph=True)
        of_parts = [torch.as_tensor(part, dtype=torch.float64) for part in expected]
        largest = max(abs(float(value.detach())), *(float(part.abs().max()) for part in of_parts))
        result[f"gradient of {name}"] = max(map(_error, parts, of_parts, [largest] * len(parts)))
    return result


def _neighbour(parameters: Sequence[Tensor], seed: int) -> list[Tensor]:
    """Other scores with the same forbidden parts: some differ a little, some a lot."""
    stream = generator(seed)
    result = []
    for part in parameters:
        near = part + torch.randn(part.shape, generator=stream, dtype=torch.float64)
        far = part[torch.randperm(len(part), generator=stream)].nan_to_num(0.0, 0.0, 0.0).clamp(-MAX_SCORE, MAX_SCORE)
        chosen = torch.where(torch.rand(part.shape, generator=stream) < 0.3, far, near)
        result.append(torch.where(part.isfinite(), chosen.clamp(-MAX_SCORE, MAX_SCORE), part))
    return result


def _as_marginals(case: Case, exact: Precise) -> Tensor:
    """In the shape of ``Case.marginals``."""
    arcs, *others = exact.marginals
    arcs = others.pop() if case.labels else arcs
    return torch.cat([part.flatten() for part in (arcs, *others)]) if others else arcs


def _value(trees: Sequence[Tensor]) -> Any:
    return trees[0] if len(trees) == 1 else tuple(trees)


def _decimals(values: Sequence[int]) -> list[Decimal]:
    return [Decimal(value) for value in values]


def _error(found: Tensor, expected: Any, size: float | None = None) -> float:
    """The largest error, relative to sizes above 1: by default each expected number's own."""
    expected = torch.as_tensor(expected, dtype=torch.float64).reshape(found.shape)
    found, sizes = found.detach(), expected.abs() if size is None else torch.full(found.shape, size)
    difference = torch.where(found == expected, 0.0, (found - expected).abs() / sizes.clamp_min(1.0))
    return float(difference.nan_to_num(math.inf).max())


def _scores(kind: str, shape: Sequence[int], scale: float, stream: np.random.Generator) -> np.ndarray:
    """Scores of one kind: mostly such as leave little to tell trees by."""
    signs = stream.choice([0.0, scale, -scale], size=shape)
    if kind == "normal":
        return stream.normal(size=shape) * scale
    if kind == "ties":
        return signs
    if kind == "near ties":
        return signs + stream.normal(size=shape)
    if kind == "last digits":
        return np.where(signs == 0, scale, signs) * (1 + stream.integers(-2, 3, size=shape) * 2.0**-52)
    if kind == "equal":
        return np.full(shape, stream.choice([scale, -scale]))
    if kind == "alternating":
        return np.where(np.indices(shape).sum(0) % 2 == 0, scale, -scale)
    if kind == "uniform":
        return stream.uniform(-scale, scale, size=shape)
    if kind == "tiny":
        return stream.choice([5e-324, -5e-324, 1e-310, 0.0, -0.0, scale], size=shape)
    result = stream.normal(size=shape)  # words that prefer each other, far from the root
    first = np.arange(1, shape[0] - 1, 2)
    result[first, first + 1] = result[first + 1, first] = scale
    result[0] = -scale
    return result
