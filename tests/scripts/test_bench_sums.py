"""The sums benchmark times methods that solve the same problem, and its error columns find those that do not."""

import numpy as np
import pytest
import torch
from helpers.oracles import enumerated_sums
from helpers.oracles import precise_log_partition as oracle
from scripts.benchmarks import bench_sums
from scripts.support.peers.sums import Method, lu, treeparse


def methods() -> list[Method]:
    torch_form = treeparse(torch.float32, "torch")
    return [treeparse(torch.float32), treeparse(torch.float64), torch_form, lu(torch.float64), lu(torch.float32)]


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.split("|")[1:-1]]


@pytest.fixture
def one_round(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_sums, "MIN_ROUNDS", 2)
    monkeypatch.setattr(bench_sums, "MAX_ROUNDS", 2)
    monkeypatch.setattr(bench_sums, "ROUND", 0.0)


def test_all_methods_take_the_same_sums(one_round: None) -> None:
    lines = [cells(line) for line in bench_sums.log_partition_table(methods(), "N(0, 1)", [4])]
    header, _, *rows, precise = lines[1:]
    assert {len(line) for line in lines[1:]} == {len(header)}
    assert [row[1] for row in rows] == [method.name for method in methods()]
    assert all(row[-1] == "0 of 32" for row in rows)
    assert all(float(row[5]) < 1e-5 and float(row[6]) < 1e-5 for row in rows)
    assert float(precise[5].split()[0]) < 1e-12
    assert rows[0][3] == "1.00"


def test_determinants_are_found_wrong_where_two_words_prefer_each_other() -> None:
    scores = np.random.default_rng(1).normal(size=(3, 6, 6))
    scores[1:, 2, 3] += 60
    scores[1:, 3, 2] += 60
    assert [bench_sums.errors(method, scores)[2] for method in methods()] == ["0 of 3"] * 3 + ["2 of 3"] * 2


def test_every_sum_is_timed(one_round: None) -> None:
    rows = [cells(line) for line in bench_sums.sums_table(methods(), bench_sums.TRAINED, [3])][3:]
    ours = [row[1] for row in rows if row[2] == "treeparse, float32"]
    assert ours == list(bench_sums.SUMS)
    assert {row[1] for row in rows if row[2] == "LU, float64"} == set(bench_sums.SUMS[:4])
    assert all(float(row[3]) > 0 for row in rows)


def test_determinant_against_enumeration() -> None:
    scores = np.random.default_rng(2).normal(size=(1, 5, 5))
    method = lu(torch.float64)
    leaf = method.lay_out(scores).requires_grad_()
    log_z, marginals = enumerated_sums(scores[0], single_root=True)
    assert method.log_partition(leaf).item() == pytest.approx(log_z, abs=1e-12)
    assert np.allclose(method.marginals(leaf).detach().numpy()[0], marginals, atol=1e-12)


def test_elimination_in_fifty_digits() -> None:
    scores = np.random.default_rng(3).normal(size=(8, 8)) * 100
    assert bench_sums.precise_log_partition(scores) == pytest.approx(oracle(scores, single_root=True), rel=1e-15)
