"""Probabilities of the arcs of given trees, by enumeration."""

from typing import Any

import numpy as np
import pytest
import torch
from helpers.tree_cases import Case, Enumerated, every_labeled_case

from treeparse import TreeparseError
from treeparse.trees import Mixture

WORDS, LABELS = 3, 2


def of_parts(marginals: torch.Tensor, heads: torch.Tensor, labels: torch.Tensor) -> tuple[Any, Any]:
    """Those of the arcs ``(trees, words)`` and labelled arcs, from the marginals of all parts."""
    place = heads[:, 1:], torch.arange(1, WORDS + 1), labels[:, 1:]
    return marginals.sum(-1)[place[:2]], marginals[place]


@every_labeled_case
@pytest.mark.parametrize("forbidden", [0.0, 0.15])
def test_of_all_trees_by_enumeration(case: Case, forbidden: float) -> None:
    parameters = case.parameters(WORDS, seed=5, scale=2.0, forbidden=forbidden)
    trees = Enumerated(case, parameters)
    p: Any = case.make(parameters)
    found = p.tree_marginals(*trees.values)
    for part, expected in zip(found, of_parts(trees.marginals, *trees.values), strict=True):
        np.testing.assert_allclose(part[:, 1:], expected, atol=1e-12)
        assert not part[:, 0].any()


@every_labeled_case
def test_of_a_mixture_by_enumeration(case: Case) -> None:
    parameters = [case.parameters(WORDS, seed=7 + m, scale=2.0) for m in range(2)]
    trees = [Enumerated(case, each) for each in parameters]
    weights = torch.tensor([0.3, 0.7], dtype=torch.float64)
    distributions: Any = [case.make(each) for each in parameters]
    heads, labels = trees[0].values
    found = Mixture(distributions, weights.log()).tree_marginals(heads, labels)
    marginals = sum(weight * each.marginals for weight, each in zip(weights, trees, strict=True))
    for part, expected in zip(found, of_parts(marginals, heads, labels), strict=True):  # pyright: ignore
        np.testing.assert_allclose(part[:, 1:], expected, atol=1e-12)


@every_labeled_case
def test_batches_padding_and_what_is_not_known(case: Case) -> None:
    """In a batch of two sentences; unknown heads and labels, and labels that there are not, count 0."""
    parameters = case.parameters(WORDS, seed=9, batch=(2,), scale=2.0)
    p: Any = case.make(parameters, torch.tensor([WORDS, WORDS - 1]))
    heads = torch.tensor([[-1, 2, 0, -1], [-1, 0, 1, -1]])
    labels = torch.tensor([[-1, 1, LABELS, 0], [-1, -1, 0, -1]])
    found = p.tree_marginals(heads, labels)
    assert (found.arcs > 0).tolist() == [[False, True, True, False], [False, True, True, False]]
    assert (found.labeled > 0).tolist() == [[False, True, False, False], [False, False, True, False]]
    marginals = p.marginals
    assert found.arcs[0, 1].item() == pytest.approx(marginals[0, 2, 1].sum().item())
    assert found.labeled[1, 2].item() == pytest.approx(marginals[1, 1, 2, 0].item())
    with pytest.raises(TreeparseError, match="Labels must be integers"):
        p.tree_marginals(heads, labels.double())
