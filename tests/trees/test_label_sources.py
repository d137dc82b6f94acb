"""Label scores that are given by slices and at chosen arcs: the same distribution as by a tensor, with fewer looks."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from helpers.tree_cases import CASES, SECOND_ORDER, Case, generator
from torch import Size, Tensor
from torch.distributions import kl_divergence

from treeparse import LabeledCRF, TreeparseError
from treeparse.trees import LabelSource
from treeparse.trees.labels import best_labels
from treeparse.trees.labels.sources import ForbiddenLabels

LENGTHS = torch.tensor([5, 3, 4])
UNLABELED = [case for case in CASES if not case.labels]
every_base_and_order = pytest.mark.parametrize(
    "case", [*UNLABELED, *(case for case in SECOND_ORDER if not case.labels)], ids=lambda case: case.name
)
every_base = pytest.mark.parametrize("case", UNLABELED, ids=lambda case: case.name)


class Counted:
    """Label scores that count how often they are looked up."""

    def __init__(self, values: Tensor, bound: float | None) -> None:
        self.values, self.bound = values, bound
        self.shape: Size = values.shape
        self.dtype, self.device, self.requires_grad = values.dtype, values.device, values.requires_grad
        self.support, self.resolution = None, torch.finfo(torch.float64).eps
        self.looks, self.slices = 0, 0

    def from_heads(self, first: int, last: int) -> Tensor:
        self.slices += 1
        return self.values[:, first:last]

    def among(self, first: int, last: int, item: Tensor, head: Tensor, dependent: Tensor) -> Tensor:
        self.slices += 1
        return self.values[item, head, dependent]

    def at(self, item: Tensor, head: Tensor, dependent: Tensor) -> Tensor:
        self.looks += len(item)
        return self.values[item, head, dependent]

    def at_labels(self, item: Tensor, head: Tensor, dependent: Tensor, label: Tensor) -> Tensor:
        return self.values[item, head, dependent, label]

    def log_sums(self, arcs: Tensor) -> Tensor | None:
        return torch.zeros(arcs.shape, dtype=torch.float64) if self.bound == 0 else None

    def of_items(self, items: Tensor) -> "Counted":
        return Counted(self.values[items], self.bound)


def scores(case: Case, *, labels: int = 3, seed: int = 1, scale: float = 2.0) -> tuple[Any, Tensor]:
    """A base and log probabilities of labels."""
    base = case.make(case.parameters(5, seed=seed, batch=(3,), scale=scale), LENGTHS)
    noise = torch.randn(3, 6, 6, labels, generator=generator(seed), dtype=torch.float64)
    return base, (scale * noise).log_softmax(-1)


def both(case: Case, bound: float | None, **options: Any) -> tuple[LabeledCRF, LabeledCRF, Counted]:
    """The distribution by a tensor, by a source, and the source."""
    base, values = scores(case, **options)
    source = Counted(values, bound)
    assert isinstance(source, LabelSource)
    return LabeledCRF(base, values), LabeledCRF(base, source), source


@every_base
@pytest.mark.parametrize("bound", [0.0, 5.0, None], ids=["log probabilities", "a bound", "nothing known"])
def test_every_quantity_is_that_of_the_tensor(case: Case, bound: float | None) -> None:
    p, q, _ = both(case, bound)
    trees = p.sample((4,), generator=generator(2))
    known = torch.tensor([[-1, 0, -1, 2, -1, 1], [-1, 1, -1, -1, -1, -1], [-1] * 6])
    heads = torch.tensor([[-1, 2, -1, -1, -1, -1], [-1, -1, 0, -1, -1, -1], [-1] * 6])
    r = torch.randn(3, 6, 6, 3, 2, generator=generator(3), dtype=torch.float64)
    quantities: list[Callable[[LabeledCRF], Tensor]] = [
        lambda d: d.log_partition,
        lambda d: d.marginals,
        lambda d: d.log_prob(trees),
        lambda d: d.score(trees),
        lambda d: d.label_log_prob(*trees),
        lambda d: d.entropy(),
        lambda d: d.renyi_entropy(0.5),
        lambda d: d.cross_entropy(p),
        lambda d: kl_divergence(p, d),
        lambda d: d.expectation(r),
        lambda d: d.covariance(r, r),
        lambda d: d.risk(trees[0][0], trees[1][0]),
        lambda d: d.given(heads, known).log_partition,
        lambda d: d.given(heads, known).marginals,
        lambda d: d.tempered(0.7).log_partition,
        lambda d: d.topk(7).scores,
        lambda d: d.topk(7).log_probs,
        lambda d: d.sample_without_replacement(5, generator=generator(4)).log_probs,
        lambda d: d.expand((2, 3)).entropy(),
    ]
    for quantity in quantities:
        torch.testing.assert_close(quantity(q), quantity(p), rtol=1e-10, atol=1e-10)
    pairs = [(d.mode, d.minimum_risk(), d.topk(7)[:2], d.given(heads, known).mode) for d in (p, q)]
    pairs = [(*pair, d.sample((5,), generator=generator(5))) for pair, d in zip(pairs, (p, q), strict=True)]
    for expected, found in zip(*pairs, strict=True):
        assert all(torch.equal(one, other) for one, other in zip(expected, found, strict=True))


@every_base
def test_the_best_tree_where_scores_are_tied(case: Case) -> None:
    """Arcs and labels of whole numbers: which of many equal trees is best does not depend on how it is found."""
    for seed in range(30):
        base = case.make([torch.randint(-2, 2, (3, 6, 6), generator=generator(seed)).double()], LENGTHS)
        values = -torch.randint(0, 3, (3, 6, 6, 3), generator=generator(100 + seed)).double()
        found, expected = LabeledCRF(base, Counted(values, 0.0)).mode, LabeledCRF(base, values).mode
        assert all(torch.equal(*pair) for pair in zip(found, expected, strict=True))


@every_base_and_order
@pytest.mark.parametrize("rounds", [0, 1, 3])
def test_the_best_tree_where_bounds_say_little(case: Case, rounds: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(best_labels, "ROUNDS", rounds)
    for seed in range(10):
        p, q, source = both(case, 0.0, seed=seed, scale=5.0)
        assert all(torch.equal(*pair) for pair in zip(p.mode, q.mode, strict=True))
        assert all(torch.equal(*pair) for pair in zip(p.minimum_risk(), q.minimum_risk(), strict=True))
        assert source.looks <= (2 * rounds + 4) * int(LENGTHS.sum()) + 18


@every_base
@pytest.mark.parametrize(("near", "most"), [(1.0, 16), (1e9, 16), (1e9, 2)])
def test_the_best_tree_where_near_arcs_are_scored_first(
    case: Case, near: float, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All arcs are near, or few, or too many for this: the tree is the same, and is found in the fewest rounds."""
    monkeypatch.setattr(best_labels, "MANY", (0,))
    monkeypatch.setattr(best_labels, "NEAR", near)
    monkeypatch.setattr(best_labels, "MOST_NEAR", most)
    monkeypatch.setattr(best_labels, "ROUNDS", 1 if (near, most) == (1e9, 16) else best_labels.ROUNDS)
    for seed in range(10):
        p, q, source = both(case, 0.0, seed=seed, scale=5.0)
        assert all(torch.equal(*pair) for pair in zip(p.mode, q.mode, strict=True))
        if near == 1e9 and most == 16:
            assert source.slices == 0
            assert source.looks <= int((LENGTHS * LENGTHS).sum()) + 18


def test_few_arcs_are_looked_up_where_labels_are_certain() -> None:
    case = UNLABELED[0]
    base = case.make(case.parameters(40, seed=1, batch=(4,), scale=3.0))
    values = (8 * torch.randn(4, 41, 41, 50, generator=generator(2), dtype=torch.float64)).log_softmax(-1)
    source = Counted(values, 0.0)
    found, expected = LabeledCRF(base, source).mode, LabeledCRF(base, values).mode
    assert all(torch.equal(*pair) for pair in zip(found, expected, strict=True))
    assert source.slices == 0
    assert source.looks < 0.15 * 4 * 41 * 40


def test_gradients_flow_into_what_gives_the_scores() -> None:
    case = UNLABELED[0]
    base, values = scores(case)
    known = torch.tensor([[-1, 0, -1, 2, -1, 1], [-1, 1, -1, -1, -1, -1], [-1] * 6])
    nothing = torch.full((3, 6), -1)

    def quantity(values: Tensor, as_source: bool) -> Tensor:
        p = LabeledCRF(base, Counted(values, None) if as_source else values)
        return (p.entropy() + p.given(nothing, known).log_partition).sum()

    gradients = []
    for as_source in (True, False):
        leaf = values.clone().requires_grad_()
        gradients += torch.autograd.grad(quantity(leaf, as_source), leaf)
    torch.testing.assert_close(*gradients)


def test_a_source_must_fit_its_base() -> None:
    base, values = scores(UNLABELED[0])
    with pytest.raises(TreeparseError, match="must have the shape"):
        LabeledCRF(base, Counted(values[:2], 0.0))
    with pytest.raises(TreeparseError, match="floating-point"):
        LabeledCRF(base, Counted(values.long(), 0.0))


@pytest.mark.parametrize("bound", [None, 0.0])
@every_base
def test_forbidden_labels_are_those_of_a_tensor_with_holes(case: Case, bound: float | None) -> None:
    """One label of an arc, another one of all arcs into a word, and all labels of an arc; of items in another order."""
    base, values = scores(case)
    holes, every = values.clone(), torch.ones(3, dtype=torch.bool)
    holes[1, 2, 1, 0] = holes[0, :, 3, 1] = -torch.inf
    holes[0, 1, 2] = holes[2, 0, 2, 2] = -torch.inf
    labels = torch.stack([torch.arange(3) == 0, torch.arange(3) == 1, every, torch.arange(3) == 2])
    items, heads, words = torch.tensor([[1, 0, 0, 2], [2, -1, 1, 0], [1, 3, 2, 2]])
    expected = LabeledCRF(base, holes)
    p = LabeledCRF(base, Counted(values, bound)).forbidding(ForbiddenLabels(items, heads, words, labels))
    heads, names = LabeledCRF(base, values).sample((500,), generator=generator(6))  # with forbidden labels too
    assert (expected.log_prob(heads, names) == -torch.inf).any()
    assert torch.equal(p.mode[0], expected.mode[0]) and torch.equal(p.mode[1], expected.mode[1])
    assert all(map(torch.equal, p.topk(9)[:2], expected.topk(9)[:2]))
    for found, wanted in (
        (p.log_partition, expected.log_partition),
        (p.marginals, expected.marginals),
        (p.entropy(), expected.entropy()),
        (p.log_prob(heads, names), expected.log_prob(heads, names)),
        (p.log_prob(*LabeledCRF(base, values).mode), expected.log_prob(*LabeledCRF(base, values).mode)),
    ):
        torch.testing.assert_close(found, wanted)
    items = torch.tensor([2, 0, 1, 0])
    some = p.of_items(items)
    torch.testing.assert_close(some.marginals, expected.marginals[items])
    assert torch.equal(some.topk(9).heads, expected.topk(9).heads[:, items])
    assert torch.equal(some.of_items(torch.tensor([3])).mode[0], expected.mode[0][:1])
    one, three = torch.tensor([1]), torch.tensor([3])
    again = some.forbidding(ForbiddenLabels(one, one, three, every.unsqueeze(0)))
    assert torch.equal(again.mode[0][0], expected.mode[0][2])
    assert int(again.mode[0][1, 3]) != 1 and torch.equal(again.mode[0][3], expected.mode[0][0])
