"""The benchmark of devices, run on the CPU: every call is timed, and methods are told apart that give other results."""

from functools import partial

import bench_device
import pytest
import torch

CPU = torch.device("cpu")


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.split("|")[1:-1]]


@pytest.fixture(autouse=True)
def one_round(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"MIN_ROUNDS": 2, "ROUNDS": 2, "ROUND": 0.0, "BATCHES": (3, 5)}.items():
        monkeypatch.setattr(bench_device, name, value)


def test_all_sums_and_trees_are_timed() -> None:
    methods = bench_device.methods_on(CPU, None, None)
    sizes = [4, 3], [2], bench_device.clock_of(CPU)
    sums = list(bench_device.times_table(partial(bench_device.sums_of, methods), "Sums", "N(0, 1)", *sizes))
    trees = list(bench_device.times_table(partial(bench_device.trees_of, CPU), "Trees", bench_device.TRAINED, *sizes))
    for lines, count in ((sums, 2 * (7 + 2 * 6 + 2 * 4)), (trees, 8)):
        header, _, *rows = map(cells, lines[1:])
        assert {len(row) for row in rows} == {len(header)}
        assert len(rows) == count
        assert all(float(row[4]) > 0 for row in rows)
        firsts = [row for previous, row in zip([header, *rows], rows, strict=False) if previous[2] != row[2]]
        assert {row[5] for row in firsts} == {"1.00"}
        assert {row[3] for row in firsts} <= {"treeparse, float32", "treeparse"}


def test_errors_are_found() -> None:
    methods = bench_device.methods_on(CPU, None, None)
    rows = [cells(line) for line in list(bench_device.errors_table(methods, "N(0, 1) x 100", [10]))[3:]]
    wrong = {row[1]: row[-1] for row in rows}
    ours = "treeparse, float32", "treeparse, float32, torch form", bench_device.BY_CPU
    assert [wrong[name] for name in ours] == ["0 of 3"] * 3
    assert wrong["LU, float32"] != "0 of 3"
