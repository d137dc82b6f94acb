"""The operators of ``torch.ops.treeparse`` are what torch asks of operators."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.autograd import gradgradcheck
from torch.fx.experimental.proxy_tensor import make_fx
from torch.library import opcheck

from treeparse import NonProjectiveCRF, TreeparseError
from treeparse.trees.families.second_order import SIBLINGS
from treeparse.trees.look_ups import OPERATORS
from treeparse.trees.operators import name_of

TREES = ("nonprojective:", "nonprojective:torch", "projective:", "sibling:", "second-order:")
KINDS = {"sibling:": 1, "second-order:": 2, "nonprojective sibling:": 1, "nonprojective sibling:5": 1}
LENGTHS = torch.tensor([3, 2])


def parts_of(trees: str, *, seed: int = 1, requires_grad: bool = False) -> list[Tensor]:
    generator = torch.Generator().manual_seed(seed)
    shapes = [(2, 4, 4), *[(2, *SIBLINGS.shape(4))] * KINDS.get(trees, 0)]
    parts = [torch.randn(shape, dtype=torch.float64, generator=generator) for shape in shapes]
    return [part.requires_grad_(requires_grad) for part in parts]


ARGUMENTS: dict[str, Callable[[str], tuple[Any, ...]]] = {
    "log_partition": lambda trees: (parts_of(trees, requires_grad=True), LENGTHS),
    "sums": lambda trees: (parts_of(trees, requires_grad=True), LENGTHS),
    "hessian_vector_product": lambda trees: (parts_of(trees), LENGTHS, parts_of(trees, seed=2, requires_grad=True)),
    "log_marginals": lambda trees: (parts_of(trees), LENGTHS),
    "best_trees": lambda trees: (parts_of(trees), LENGTHS),
    "are_trees": lambda trees: (torch.tensor([[-1, 0, 1, 2], [-1, 2, 0, -1]]), LENGTHS),
    "sample": lambda trees: (parts_of(trees), LENGTHS, torch.tensor([5, 6]), 3, None),
}


@pytest.mark.parametrize("trees", TREES)
@pytest.mark.parametrize("name", ARGUMENTS)
def test_operators_are_sound(name: str, trees: str) -> None:
    """Operators hand on whether there is a single root, which changes nothing else."""
    opcheck(getattr(OPERATORS, name).default, (*ARGUMENTS[name](trees), trees, trees != "projective:"))


@pytest.mark.parametrize("trees", ["nonprojective sibling:", "nonprojective sibling:5"])
@pytest.mark.parametrize("name", ["best_trees", "are_trees"])
def test_those_of_a_search_are_too(name: str, trees: str) -> None:
    opcheck(getattr(OPERATORS, name).default, (*ARGUMENTS[name](trees), trees, True))


def test_look_ups_are_sound() -> None:
    index = torch.tensor([[0, 3, 3], [1, 1, 2]])
    values = torch.randn(2, 4, dtype=torch.float64, requires_grad=True)
    gradients = torch.randn(2, 3, dtype=torch.float64, requires_grad=True)
    for operator, arguments in (
        (OPERATORS.gather, (values, 1, index)),
        (OPERATORS.scatter_add, (gradients, 1, index, [2, 4])),
    ):
        opcheck(operator.default, arguments)
        assert gradgradcheck(lambda value, operator=operator, rest=arguments[1:]: operator(value, *rest), arguments[:1])


def test_fake_tensors_have_the_shapes_of_results() -> None:
    with FakeTensorMode():
        p = NonProjectiveCRF(torch.empty(5, 7, 7), torch.empty(5, dtype=torch.int64))
        assert p.log_partition.shape == p.entropy().shape == (5,)
        assert p.marginals.shape == (5, 7, 7)
        assert p.mode.shape == (5, 7) and p.sample((2,)).shape == (2, 5, 7)


def test_programs_that_are_traced_compute_the_same() -> None:
    def loss(scores: Tensor) -> Tensor:
        p = NonProjectiveCRF(scores)
        return p.entropy() - p.log_prob(p.mode)

    [scores] = parts_of("nonprojective:")
    traced = make_fx(loss, tracing_mode="real")(scores)
    assert "treeparse" in traced.code
    [others] = parts_of("nonprojective:", seed=3)
    torch.testing.assert_close(traced(others), loss(others))


def test_a_family_without_operators_is_named() -> None:
    with pytest.raises(TreeparseError, match="no operators for own trees"):
        name_of(SimpleNamespace(name="own"))  # pyright: ignore[reportArgumentType]
