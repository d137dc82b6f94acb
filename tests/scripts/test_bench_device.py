"""The benchmark of devices, run on the CPU: every call is timed, and methods are told apart that give other results."""

import shutil

import pytest
import torch
from scripts.benchmarks import bench_device

CPU = torch.device("cpu")
TABLES = "sanitizer", "sums", "projective", "best", "samples", "training"


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.split("|")[1:-1]]


def one_round_of(patch: pytest.MonkeyPatch) -> None:
    for name, value in {"MIN_ROUNDS": 2, "ROUNDS": 2, "ROUND": 0.0}.items():
        patch.setattr(bench_device, name, value)


@pytest.fixture(autouse=True)
def one_round(monkeypatch: pytest.MonkeyPatch) -> None:
    one_round_of(monkeypatch)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The report of all sections but the tests, on the CPU."""
    output = tmp_path_factory.mktemp("report") / "device.md"
    with pytest.MonkeyPatch.context() as patch:
        one_round_of(patch)
        patch.setattr(shutil, "which", lambda name: None)
        bench_device.main(["--device", "cpu", "--small", "--section", *TABLES, "--output", str(output)])
        patch.setattr(bench_device, "SMALL_LENGTHS", (3,))
        bench_device.main(["--device", "cpu", "--small", "--section", "best", "--output", str(output)])
    return output.read_text(encoding="utf-8")


def rows_of(report: str, heading: str) -> list[list[str]]:
    """The rows of all tables whose headings begin so."""
    parts = [part for part in report.split("\n## ") if part.startswith(heading)]
    return [cells(line) for part in parts for line in part.splitlines() if line.startswith("| ")]


def test_all_sums_and_trees_are_timed(small: str) -> None:
    counts = {"Sums: ": 2 * (1 + 7 + 2 * 6 + 2 * 4), "Projective sums": 2 * 4, "Best trees": 4 * 3, "Samples": 4 * 3}
    for heading, count in counts.items():
        header, *rows = rows_of(small, heading)
        assert 1 + len(rows) == count, heading
        rows = [row for row in rows if row != header]
        assert {len(row) for row in rows} == {len(header)}
        assert all(float(row[4]) > 0 for row in rows)
        firsts = [row for previous, row in zip([header, *rows], rows, strict=False) if previous[2] != row[2]]
        assert {row[5] for row in firsts} == {"1.00"}
        assert {row[3] for row in firsts} <= {"treeparse, float32", "treeparse"}
        assert any(": " in row[7] for row in rows) == (heading == "Sums: ")  # nothing is aimed at in a batch of 3


def test_trees_have_a_share_of_training_and_parsing(small: str) -> None:
    header, *rows = rows_of(small, "Training and parsing")
    assert [row[0] for row in rows][:2] == ["training step, 32", "parsing, 32"]
    for row in rows:
        share = float(row[2].rstrip("%"))
        assert len(row) == len(header) and 0 < share < 100 and float(row[1].replace(",", "")) > 0
        assert row[3] == f"at most 5%: {'ok' if share <= 5 else 'missed'}" or abs(share - 5) < 0.06
    assert "There are no graphs on cpu." in small
