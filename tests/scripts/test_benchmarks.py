"""Benchmarks time methods that solve the same problem, and count the mistakes of those that do not."""

import math
import shutil
from argparse import Namespace
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.oracles import enumerated_sums
from helpers.oracles import precise_log_partition as oracle
from helpers.parsers import CONFIG, TRAINING, random_parser
from scripts.benchmarks import (
    bench_decoders,
    bench_device,
    bench_nonprojective_search,
    bench_samplers,
    bench_second_order,
    bench_sums,
)
from scripts.benchmarks.bench_decoders import KINDS, mistakes
from scripts.benchmarks.bench_samplers import Contest
from scripts.support.peers import decoders as decoder_peers
from scripts.support.peers import samplers as sampler_peers
from scripts.support.peers.samplers import Array, DrawTrees, Sampler
from scripts.support.peers.sums import Method, lu, treeparse
from scripts.support.sampling import laws as sampler_laws
from scripts.support.sampling import speed_map
from scripts.support.sampling.laws import law_of

from treeparse import NonProjectiveCRF
from treeparse.data.conllu import ConlluSentence, write_conllu


@pytest.mark.parametrize("kind", KINDS)
def test_installed_decoders_find_the_same_trees(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_decoders, "MAX_ROUNDS", 1)
    optional = [decoder_peers.networkx(), decoder_peers.ufal(True), decoder_peers.ufal(False)]
    decoders = [*map(decoder_peers.best_trees, (True, False)), decoder_peers.reweighted_trees()]
    decoders += [decoder for decoder in optional if decoder is not None]
    scores = KINDS[kind](np.random.default_rng(1), 6, 32)
    entries = bench_decoders.time_decoders(decoders, scores, 1)
    assert [entry.mistakes.tolist() for entry in entries] == [[0, 0, 0]] * len(decoders)
    assert all(entry.times for entry in entries)


def test_mistakes_of_a_list_by_hand() -> None:
    """Trees of two words under one root; 1 -> 2 scores higher than 2 -> 1."""
    decoder = decoder_peers.best_trees()
    scores = np.array([[0.0, 0, 0], [0, 0, 2], [0, 1, 0]])
    ours = np.array([2.0, 1.0, -np.inf])
    best, second, none = [-1, 0, 1], [-1, 2, 0], [-1, -1, -1]
    assert mistakes(decoder, scores, np.array([best, second, none]), ours) == (0, 0, 0)
    assert mistakes(decoder, scores, np.array([[0, *best[1:]], best]), ours) == (1, 1, 0)
    assert mistakes(decoder, scores, np.array([second]), ours) == (1, 0, 0)
    assert mistakes(decoder, scores, np.array([second]), ours[:1]) == (1, 0, 0)
    assert mistakes(decoder, scores, np.array([second, best]), ours) == (0, 0, 1)
    with pytest.raises(SystemExit, match="better tree"):
        mistakes(decoder, scores, np.array([best]), np.array([1.0]))
    with pytest.raises(SystemExit, match="no tree by its rule"):
        mistakes(decoder, scores, np.array([[-1, 0, 0]]), ours)


def test_every_decoder_is_timed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_decoders, "MAX_ROUNDS", 2)
    monkeypatch.setattr(bench_decoders, "ROUND", 0.0)
    monkeypatch.setattr(torch, "set_num_threads", lambda threads: None)  # other tests run in this process
    output = tmp_path / "table.md"
    bench_decoders.main(["--lengths", "5", "6", "--trees", "1", "3", "--output", str(output)])
    text = output.read_text(encoding="utf-8")
    assert text.count("| treeparse |") == 4 + 4 + 2 + 4 + 4 + 4
    assert "| 6 | 50 | treeparse |" in text and "| 5 | 3 | treeparse |" in text and "nan" not in text


OURS = bench_samplers.contests(Namespace(treesample=None, synjax=None, supar=None, torch_struct=None))
UNLIKELY = 1e-3


@pytest.mark.parametrize(
    ("contest", "sampler"),
    [pytest.param(contest, one, id=f"{contest.title}: {one.name}") for contest in OURS for one in contest.samplers],
)
def test_our_samplers_keep_the_law(contest: Contest, sampler: Sampler) -> None:
    law = law_of(sampler, contest.family, contest.distinct)
    assert law.p > UNLIKELY and law.wrong == 0


def changed(change: float, *, repeat: bool = False) -> Sampler:
    """Our sampler at another temperature, or one that repeats trees."""
    ours = sampler_peers.treeparse_distinct() if repeat else sampler_peers.treeparse()

    def prepare(scores: Array, count: int) -> DrawTrees:
        draw = ours.prepare(scores * change, count)
        return lambda: draw()[:, [0] * count] if repeat else draw()

    return Sampler("changed", prepare)


def constant(heads: list[list[int]]) -> Sampler:
    """What draws the same trees for every sentence."""
    return Sampler("constant", lambda scores, count: lambda: np.tile(heads, (len(scores), 1, 1))[:, :count])


def test_another_law_is_rejected() -> None:
    assert law_of(changed(0.7), NonProjectiveCRF, False).p < UNLIKELY
    assert law_of(changed(1.0, repeat=True), NonProjectiveCRF, True).p == 0
    multi_root = partial(NonProjectiveCRF, single_root=False)
    several_roots = law_of(sampler_peers.treeparse(single_root=False), NonProjectiveCRF, False)
    assert several_roots.wrong > 0
    assert law_of(sampler_peers.treeparse(), multi_root, False).p < UNLIKELY


def test_chi_square_by_hand() -> None:
    deviate = (30 - 50) / math.sqrt(100 * 0.5 * 0.5)  # with one degree of freedom, the statistic is its square
    found = sampler_laws.chi_square(np.array([30, 70]), np.array([0.5, 0.5]))
    assert found == pytest.approx(math.erfc(abs(deviate) / math.sqrt(2)))
    found = sampler_laws.chi_square(np.array([60, 31, 7, 2]), np.array([0.5, 0.44, 0.04, 0.02]))
    statistic = 10**2 / 50 + 13**2 / 44 + 3**2 / 6  # the last two cells are pooled
    assert found == pytest.approx(math.exp(-statistic / 2))  # with two degrees of freedom
    assert sampler_laws.chi_square(np.array([1, 99]), np.array([0.0, 1.0])) == 0


def test_every_sampler_is_timed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (bench_samplers, speed_map):
        monkeypatch.setattr(module, "MAX_ROUNDS", 2)
        monkeypatch.setattr(module, "ROUND", 0.0)
    monkeypatch.setattr(torch, "set_num_threads", lambda threads: None)  # other tests run in this process
    output = tmp_path / "table.md"
    options = ["--lengths", "5", "6", "--map-lengths", "3", "4", "--scales", "1", "10", "--shifts", "0", "5"]
    bench_samplers.main([*options, "--output", str(output)])
    text = output.read_text(encoding="utf-8")
    assert text.count("| treeparse |") == 2 * (5 + 4 + 3 + 4 + 4 + 4)
    assert text.count("| treeparse, expansion |") == 2 * (5 + 4) and "nan" not in text
    assert "One root: trapped scores, 6 words, 100 trees of each of 4 sentences" in text
    assert "\n| 4 | 10 |" in text and "\n| 5 | 1 |" in text


def methods() -> list[Method]:
    torch_form = treeparse(torch.float32, "torch")
    return [treeparse(torch.float32), treeparse(torch.float64), torch_form, lu(torch.float64), lu(torch.float32)]


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.split("|")[1:-1]]


@pytest.fixture
def one_round_of_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_sums, "MIN_ROUNDS", 2)
    monkeypatch.setattr(bench_sums, "MAX_ROUNDS", 2)
    monkeypatch.setattr(bench_sums, "ROUND", 0.0)


def test_all_methods_take_the_same_sums(one_round_of_sums: None) -> None:
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


def test_every_sum_is_timed(one_round_of_sums: None) -> None:
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


def test_a_row_for_each_model(tmp_path: Path) -> None:
    parser = random_parser(replace(CONFIG, trees="nonprojective_siblings", part_size=4)).float()
    parser.save_pretrained(tmp_path / "model")
    parsed = [
        ConlluSentence.from_forms(each.forms).with_parse(each.heads or (), each.labels or ()) for each in TRAINING
    ]
    write_conllu(test := tmp_path / "test.conllu", parsed[:6])
    row = [*bench_nonprojective_search.table([(tmp_path / "model", test)])][-1]
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells[:3] == ["model", "test", "6"] and cells[4] == "100.0%" and int(cells[5]) >= 1
    root, projective, climbed = (float(cells[at].rstrip("%")) for at in (3, 6, 7))
    assert 0 <= root <= 100 and projective <= climbed <= 100
    assert all(float(cell) > 0 for cell in cells[8:])


CPU = torch.device("cpu")
TABLES = "sanitizer", "sums", "projective", "best", "samples", "training"


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
