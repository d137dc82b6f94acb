"""The race of the sums that training takes: a row a length and sum, a ratio a peer."""

import bench_sums
import bench_sums_race
import pytest
import torch
from support.peers.sums import lu, treeparse


def test_every_sum_is_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"MIN_ROUNDS": 2, "MAX_ROUNDS": 2, "ROUND": 0.0}.items():
        monkeypatch.setattr(bench_sums, name, value)
    methods = [treeparse(torch.float32), treeparse(torch.float64), lu(torch.float32)]
    lines = list(bench_sums_race.race_table(methods, "N(0, 1)", [3, 4]))[1:]
    header, _, *rows = ([cell.strip() for cell in line.split("|")[1:-1]] for line in lines)
    assert header[2:] == [method.name for method in methods[1:]]
    assert [row[:2] for row in rows] == [[n, name] for n in ("3", "4") for name in bench_sums_race.SUMS]
    assert all(float(ratio) > 0 for row in rows for ratio in row[2:])
