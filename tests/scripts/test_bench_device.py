"""The benchmark of devices, run on the CPU: every call is timed, and methods are told apart that give other results."""

import shutil
import subprocess
from collections.abc import Sequence

import bench_device
import pytest
import torch
from support.device import checks
from support.device.targets import BY_CPU, NONPROJECTIVE, PROJECTIVE, TREES, Target, verdict

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


def test_a_section_that_is_measured_anew_takes_its_place(small: str) -> None:
    assert {row[0] for row in rows_of(small, "Best trees")} == {"n", "3"}
    assert {row[0] for row in rows_of(small, "Samples")} == {"n", "5"}
    assert "Without SuPar: not named." in small and "not installed: memory and races were not checked" in small


def test_trees_have_a_share_of_training_and_parsing(small: str) -> None:
    header, *rows = rows_of(small, "Training and parsing")
    assert [row[0] for row in rows][:2] == ["training step, 32", "parsing, 32"]
    for row in rows:
        share = float(row[2].rstrip("%"))
        assert len(row) == len(header) and 0 < share < 100 and float(row[1].replace(",", "")) > 0
        assert row[3] == f"at most 5%: {'ok' if share <= 5 else 'missed'}" or abs(share - 5) < 0.06
    assert "There are no graphs on cpu." in small


def test_targets_by_hand() -> None:
    def judged(targets: Sequence[Target], what: str, method: str, n: int, batch: int, ratio: float) -> str:
        return verdict(targets, what, method, n, batch, ratio)

    assert judged(NONPROJECTIVE, "log partition", "LU, float64", 80, 32, 10.0) == "10: ok"
    assert judged(NONPROJECTIVE, "log partition", "LU, float32", 80, 32, 9.9) == "10: missed"
    assert judged(NONPROJECTIVE, "marginals, differentiable", "LU, float64", 160, 32, 4.1) == "4: ok"
    assert judged(NONPROJECTIVE, "covariance", "LU, float64", 20, 32, 99) == ""
    assert judged(NONPROJECTIVE, "log partition", "SuPar", 20, 32, 99) == ""
    assert judged(PROJECTIVE, "marginals, differentiable", "SynJax", 40, 32, 3) == "10: missed"
    assert judged(TREES, "samples", BY_CPU, 40, 1024, 20) == "20: ok"
    assert judged(TREES, "samples", BY_CPU, 40, 32, 1) == "" == judged(TREES, "samples", "treeparse", 40, 1024, 1)


def test_what_a_peer_cannot_do_is_a_line() -> None:
    def fail() -> None:
        raise RuntimeError("no memory left")

    named = [(("best trees", "treeparse"), lambda: None), (("best trees", "peer"), fail)]
    clock = bench_device.waiting_clock(CPU)
    *_, line = bench_device.times_table(lambda scores: named, "Trees", "N(0, 1)", [3], [2], clock, budget=1.0)
    assert cells(line) == ["3", "2", "best trees", "peer", "", "", "RuntimeError", ""]


@pytest.mark.parametrize("code", [0, 1])
def test_tests_that_fail_are_told(code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(command: Sequence[str], **options: object) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(command, code, f"{command[-1]}\n7 passed", "oh no")

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(shutil, "which", lambda name: "/bin/sanitizer")
    lines = [*checks.tests_lines(), *checks.sanitizer_lines(["memcheck"])]
    assert ("- tests marked gpu: FAILED" in "\n".join(lines)) == bool(code) == any("oh no" in line for line in lines)
    assert any(line.startswith("- compute-sanitizer memcheck") and line.endswith("7 passed") for line in lines)


def test_errors_are_found() -> None:
    methods = bench_device.methods_on(CPU, None, None)
    rows = [cells(line) for line in list(bench_device.errors_table(methods, "N(0, 1) x 100", [10], 3))[3:]]
    wrong = {row[1]: row[-1] for row in rows}
    ours = "treeparse, float32", "treeparse, float32, torch form", BY_CPU
    assert [wrong[name] for name in ours] == ["0 of 3"] * 3
    assert wrong["LU, float32"] != "0 of 3"
