"""The algorithms of the lecture against the library's, and the tables of the script."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
import torch
from helpers.drawn_orders import random_scores
from helpers.lecture import derivations as derivations_of_heads
from scripts.support.lecture import best_by_chart, derivations, marginals_by_determinants, new_chart

from treeparse import NonProjectiveCRF, ProjectiveCRF


@pytest.mark.parametrize("n", range(1, 8))
def test_the_chart_has_the_score_of_the_best_projective_tree(n: int) -> None:
    scores = torch.from_numpy(random_scores(n, 1.0, seed=n))
    p = ProjectiveCRF(scores.unsqueeze(0), single_root=False)
    assert best_by_chart(scores.numpy(), new_chart(n + 1)) == pytest.approx(float(p.score(p.mode)), abs=1e-9)


def test_marginals_by_determinants_are_those_of_elimination() -> None:
    scores = random_scores(5, 1.0, seed=3)
    p = NonProjectiveCRF(torch.from_numpy(scores).unsqueeze(0), single_root=False)
    np.testing.assert_allclose(marginals_by_determinants(scores), p.marginals[0].numpy(), atol=1e-10)


@pytest.mark.parametrize("heads", [[2, 0, 2], [0, 1, 1, 1], [2, 4, 2, 0, 4, 5], [2, 0, 2, 3, 2]])
def test_derivations_are_counted(heads: Sequence[int]) -> None:
    count = derivations_of_heads(np.array(heads))
    assert math.exp(derivations(torch.tensor([-1, *heads]))) == pytest.approx(count)
