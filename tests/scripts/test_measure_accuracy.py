"""The 60-digit elimination of the script, against the sum over all trees."""

import pytest
from helpers.precise import Precise
from helpers.tree_cases import CASES
from scripts.experiments.measure_accuracy import precise_sums


def test_elimination_agrees_with_the_sum_over_all_trees() -> None:
    case = next(each for each in CASES if each.kind.name == "numba" and each.single_root and not each.labels)
    parameters = case.parameters(4, seed=3, scale=5.0)
    exact = Precise(case, parameters)
    log_z, marginals = precise_sums(parameters[0])
    assert log_z == pytest.approx(float(exact.log_partition), rel=1e-15)
    assert marginals.numpy() == pytest.approx(exact.marginals[0].numpy(), abs=1e-16)
