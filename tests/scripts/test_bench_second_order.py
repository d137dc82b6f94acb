"""The table of second order: a row a length and quantity, ratios where something is to be compared."""

import pytest
from scripts.benchmarks import bench_second_order


def test_every_quantity_is_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_second_order, "ROUNDS", 2)
    monkeypatch.setattr(bench_second_order, "BATCH", 2)
    lines = "\n".join(bench_second_order.table(None, [2, 4])).split("\n")[1:]
    header, _, *rows = ([cell.strip() for cell in line.split("|")[1:-1]] for line in lines)
    assert header[3:] == list(bench_second_order.OTHERS)
    assert [row[0] for row in rows] == ["2"] * 9 + ["4"] * 9
    assert len({row[1] for row in rows}) == 9
    for row in rows:
        assert all(float(cell) > 0 for cell in (row[2], row[5], row[6]))
        assert bool(row[4]) == (row[1] in ("log partition", "marginals", "best tree"))
        assert row[3] == ""  # SuPar is not there
