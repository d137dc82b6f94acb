"""The sampler benchmark times samplers of the same trees, tests their laws, and says of peers what went wrong."""

import math
from argparse import Namespace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from scripts.benchmarks import bench_samplers
from scripts.benchmarks.bench_samplers import Contest
from scripts.support.peers import samplers as sampler_peers
from scripts.support.peers.samplers import Array, DrawTrees, Sampler
from scripts.support.sampling import laws as sampler_laws
from scripts.support.sampling import speed_map
from scripts.support.sampling.laws import law_of

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
