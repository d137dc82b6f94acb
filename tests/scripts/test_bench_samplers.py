"""The sampler benchmark times samplers of the same trees, tests their laws, and says of peers what went wrong."""

import math
import time
from argparse import Namespace
from functools import partial
from pathlib import Path

import bench_samplers
import numpy as np
import pytest
import torch
from bench_samplers import KINDS, Contest, SamplerRun
from support.peers import samplers as sampler_peers
from support.peers.samplers import Array, DrawTrees, Sampler
from support.sampling import laws as sampler_laws
from support.sampling import speed_map
from support.sampling.laws import law_of, quality
from support.sampling.methods import AUTO, COLBOURN, EXPANSION, WILSON
from support.sampling.speed_map import Map

from treeparse import NonProjectiveCRF

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


def test_quality_by_hand() -> None:
    """Trees of two words under one root: 1 -> 2 weighs three times as much as 2 -> 1."""
    p = NonProjectiveCRF(torch.tensor([[[0, 0, 0], [0, 0, math.log(3)], [0, 0, 0.0]]], dtype=torch.float64))
    likely, other, none, loop = [0, 0, 1], [0, 2, 0], [-1, -1, -1], [0, 2, 1]
    found = quality(p, np.array([[likely, likely, none, loop]]))
    assert found[:2] == (2, 1) and found.mass == pytest.approx(0.75) and np.isnan(found.errors)
    assert quality(p, np.array([[likely, other, likely, likely]])).errors == pytest.approx(0, abs=1e-9)
    mean, variance = 0.75 * math.log(3), 0.75 * 0.25 * math.log(3) ** 2
    errors = (math.log(3) - mean) / math.sqrt(variance / 4)
    assert quality(p, np.array([[likely] * 4])).errors == pytest.approx(errors)


@pytest.mark.parametrize(("kind", "prefers"), [("peaked", False), ("trapped", True)])
def test_which_sentences_are_trapped(kind: str, prefers: bool) -> None:
    """Two words are trapped where an arc in either direction is much better than noise."""
    scores = KINDS[kind](np.random.default_rng(1), 12, 7)
    assert scores.shape == (7, 13, 13)
    mutual = np.minimum(scores, scores.swapaxes(1, 2)) > 20
    assert (mutual.any((1, 2)) == prefers).all()


def broken(draw: DrawTrees) -> Sampler:
    return Sampler("broken", lambda scores, count: draw)


def fail() -> None:
    raise ValueError("probabilities are not non-negative")


@pytest.mark.parametrize(
    ("draw", "reason"), [(fail, "probabilities are not non-negative"), (partial(time.sleep, 9), "none in 0.05 s")]
)
def test_a_peer_that_fails_has_its_reason_for_a_row(
    draw: DrawTrees, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench_samplers, "PATIENCE", 0.05)
    monkeypatch.setattr(bench_samplers, "MAX_ROUNDS", 1)
    monkeypatch.setattr(bench_samplers, "ROUND", 0.0)
    ours = sampler_peers.treeparse()
    contest = Contest("One root", [ours, broken(draw)])
    scores = KINDS["random"](np.random.default_rng(1), 5, 2)
    entries = bench_samplers.time_samplers(contest, scores, 3)
    first, second = (bench_samplers.measured(contest, entry, entries, scores) for entry in entries)
    assert len(first) == len(second) and first[5] == "-"
    assert second[:3] == ["broken", "6", reason] and not any(second[3:])


def test_our_failures_are_raised() -> None:
    sampler = Sampler("ours", lambda scores, count: fail, is_peer=False)
    with pytest.raises(ValueError, match="not non-negative"):
        bench_samplers.enter(sampler, np.zeros((1, 3, 3)), 1)


def test_speed_is_that_of_a_tree() -> None:
    """Ten trees in 2 s and two in 1 s, in the middle of three rounds; one of them is missing in each sentence."""
    ten, two = (SamplerRun(fail, sampler_peers.treeparse(), shape) for shape in ((5, 3), (1, 3)))
    ten.heads, two.heads = (np.tile([[-1, 0, 1], [-1, 2, 0], [-1, -1, -1]], (items, 1, 1)) for items in (5, 1))
    ten.times, two.times = [2.0, 2.0, 4.0], [1.0, 1.0, 1.0]
    assert ten.speed(two) == pytest.approx(2.5) and two.speed(ten) == pytest.approx(0.4)


def test_weights_of_a_sentence_do_not_overflow() -> None:
    """Each word's best head weighs about 1, nothing heads itself or the root, and missing trees are -1."""
    given = []

    def draw(weights: Array, count: int) -> list[np.ndarray]:
        given.append(weights)
        return [np.array([-1, 0, 1])]

    scores = np.array([[[0, 900.0, 1000], [0, 0, 999], [0, 899, 0]]])
    heads = sampler_peers.by_sentence("peer", draw, False).prepare(scores, 2)()
    assert heads.tolist() == [[[-1, 0, 1], [-1, -1, -1]]]
    assert given[0] == pytest.approx(np.array([[0, 1, 1], [0, 0, math.exp(-1)], [0, math.exp(-1), 0]]))


def test_a_sampler_of_one_sentence_that_finds_nothing_fails() -> None:
    draw = sampler_peers.by_sentence("peer", lambda weights, count: [], True).prepare(np.zeros((1, 3, 3)), 2)
    with pytest.raises(ValueError, match="no tree"):
        draw()


def cell(**milliseconds: float) -> speed_map.Cell:
    result = {}
    for name, time_ in milliseconds.items():
        result[{"auto": AUTO, "expansion": EXPANSION, "wilson": WILSON}[name]] = draws = speed_map.Draws(fail, 1)
        draws.times = [time_ / 1000] * 3
    return result


def test_what_a_choice_loses() -> None:
    found = cell(auto=1.1, expansion=3.0, wilson=1.0)
    assert speed_map.fastest(found) == WILSON and speed_map.loss(found) == pytest.approx(0.1)
    assert speed_map.loss(cell(auto=0.5, expansion=1.0, wilson=2.0)) == pytest.approx(-0.5)


def test_the_map_says_how_trees_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where two words prefer each other or the root is far away, walks are long."""
    monkeypatch.setattr(speed_map, "MAX_ROUNDS", 1)
    chart = Map([0.0, -20.0], [1.0], words=6)
    near, far = chart.measure(0.0, 1.0), chart.measure(-20.0, 1.0)
    assert list(near) == [AUTO, EXPANSION, WILSON, COLBOURN] and near[EXPANSION].steps == 6
    assert near[WILSON].steps < 60 < far[WILSON].steps
    assert chart.cells == {(0.0, 1.0): near, (-20.0, 1.0): far}


def test_writes_tables_and_plot(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (bench_samplers, speed_map):
        monkeypatch.setattr(module, "MAX_ROUNDS", 2)
        monkeypatch.setattr(module, "ROUND", 0.0)
    monkeypatch.setattr(torch, "set_num_threads", lambda threads: None)  # other tests run in this process
    output = tmp_path / "table.md"
    options = ["--lengths", "5", "6", "--map-lengths", "3", "4", "--scales", "1", "10", "--shifts", "0", "5"]
    bench_samplers.main([*options, "--output", str(output)])
    text = output.read_text(encoding="utf-8")
    assert text == capsys.readouterr().out
    assert text.count("| treeparse |") == 2 * (5 + 4 + 3 + 4 + 4 + 4)
    assert text.count("| treeparse, expansion |") == 2 * (5 + 4) and "nan" not in text
    assert "One root: trapped scores, 6 words, 100 trees of each of 4 sentences" in text
    assert "\n| 4 | 10 |" in text and "\n| 5 | 1 |" in text
    assert output.with_suffix(".png").read_bytes().startswith(b"\x89PNG")
