"""Benchmarks of parsing and of training: peers in turns, parts that add up, costs and variances of objectives."""

import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from pathlib import Path

import pytest
import torch
from helpers.parsers import TRAINING, random_parser
from scripts.benchmarks import bench_objectives
from scripts.experiments import compare_risk_estimators
from scripts.support.peers.parser_race import peer_table
from scripts.support.peers.parsers import PeerParser, Tree
from scripts.support.training.parts import Clock, Parts, parsing_parts, step_parts, waiting_clock, whole_steps

from treeparse.nn.biaffine import LabelVectors
from treeparse.objectives import HeadSelection, Objective, TreeLikelihood
from treeparse.sentence import Sentence

SENTENCES = [Sentence(("a", "b", "c"), upos=("X", "Y", "Z")), Sentence(("d",))]
TREES: list[Tree] = [([2, 0, 2], ["x", "root", "y"]), ([0], ["root"])]


class Watch:
    """A clock that goes on only where a fake lets time pass."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Scorer(torch.nn.Module):
    """What takes these seconds of the watch, call by call."""

    def __init__(self, watch: Watch, seconds: Iterable[float]) -> None:
        super().__init__()
        self.watch, self.seconds = watch, iter(seconds)

    def forward(self) -> None:
        self.watch.now += next(self.seconds)


def peer(watch: Watch, seconds: Iterable[float], trees: Sequence[Tree] = TREES) -> PeerParser:
    """A peer that scores in two calls a pass, and takes a second more a pass."""
    scorer = Scorer(watch, seconds)

    def parse(sentences: Sequence[Sentence]) -> list[Tree]:
        for _ in range(2):
            scorer()
        watch.now += 1
        return list(trees)

    return PeerParser("fake", scorer, parse)


def ours(watch: Watch, seconds: Iterable[float]) -> Callable[[], None]:
    times = iter(seconds)

    def run() -> None:
        watch.now += next(times)

    return run


def test_the_table_by_hand() -> None:
    """Ours takes 0.5, 1 and 0.5 s a pass; the peer scores in 3, 1 and 2 s, and takes 4, 2 and 3: ratios 8, 2 and 6."""
    watch = Watch()
    scoring = [50, 50, 1, 2, 0.5, 0.5, 1, 1]  # the first pass is not timed
    lines = list(peer_table(ours(watch, [70, 0.5, 1, 0.5]), [peer(watch, scoring)], SENTENCES, 3, watch))
    table = [[cell.strip() for cell in line.split("|")[1:-1]] for text in lines for line in text.splitlines()]
    assert [len(row) for row in table] == [6] * 4
    assert table[2] == ["treeparse", "125000.00", "8", "", "", ""]
    assert table[3] == ["fake", "750000.00", "1", "6.0", "500000.00", "4.0"]


BATCHES = [TRAINING[:4], TRAINING[4:7]]


class Ticks:
    """A clock that goes on by one whenever it is read."""

    def __init__(self) -> None:
        self.now = 0

    def __call__(self) -> float:
        self.now += 1
        return self.now


def test_a_block_within_another_has_its_own_time() -> None:
    clock = Clock(Ticks())
    with clock("outer"):
        with clock("inner"):
            pass
        with clock("inner"), clock("outer"):
            pass
    assert clock.seconds == {"outer": 4, "inner": 3}  # each turn lasts a tick


@pytest.mark.parametrize("objective", [TreeLikelihood(), HeadSelection()], ids=["trees", "heads"])
def test_gradients_through_the_parts_are_those_of_the_whole(objective: Objective) -> None:
    parser, method = random_parser(), LabelVectors.scores_at
    batch = parser.collate(TRAINING[:4])
    parser.loss(batch, objective).backward()
    expected = {name: weight.grad for name, weight in parser.named_parameters()}
    parser.zero_grad()
    parts = Parts(Clock(Ticks()))
    with parts.timed(parser):
        parser.loss(batch, objective).backward()
    parts.backward()
    for name, weight in parser.named_parameters():
        torch.testing.assert_close(weight.grad, expected[name], rtol=1e-9, atol=1e-12)
    assert {"encoder", "scorer", "labels"} <= parts.clock.seconds.keys()
    assert LabelVectors.scores_at is method and "forward" not in vars(parser.scorer)


def test_all_parts_are_timed() -> None:
    parser = random_parser()
    optimizer = torch.optim.AdamW(parser.parameters(), lr=0.0)
    given = parser, BATCHES, TreeLikelihood(), optimizer, nullcontext
    assert step_parts(*given, Ticks()).keys() == {"batches", "encoder", "scorer", "labels", "trees", "optimiser"}
    assert whole_steps(*given, Ticks()) == 1
    found = parsing_parts(parser, BATCHES, lambda: None, nullcontext, waiting_clock(torch.device("cpu")))
    assert found.keys() == {"reading", "batches", "encoder", "scorer", "labels", "trees", "parses"}
    assert all(seconds >= 0 for seconds in found.values())


def test_costs_are_ratios_to_the_likelihood(trained_config: Path, tmp_path: Path) -> None:
    treebank, model = trained_config.parent / "train.conllu", trained_config.parent / "run" / "model"
    output = tmp_path / "costs.md"
    arguments = ["--treebank", str(treebank), "--model", str(model), "--batches", "2", "--rounds", "2", "--no-bf16"]
    bench_objectives.main([*arguments, "--output", str(output)])
    text = output.read_text(encoding="utf-8")
    rows = re.findall(r"^\| (.+?) \| (\d+) \| (\d+\.\d\d) \| (\d+\.\d\d) to (\d+\.\d\d) \|$", text, re.MULTILINE)
    assert rows[0][0] == bench_objectives.LIKELIHOOD
    assert rows[0][2:] == ("1.00", "1.00", "1.00")
    assert {"exact minimum risk", "likelihood and entropy", "likelihood and 20 constraints"} <= {row[0] for row in rows}
    assert len(rows) == 10
    for _, _, median, low, high in rows:
        assert float(low) <= float(median) <= float(high)


def test_estimates_are_unbiased_and_vary_less_without_replacement(
    trained_config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    treebank, model = trained_config.parent / "dev.conllu", trained_config.parent / "run" / "model"
    monkeypatch.setattr(compare_risk_estimators, "LENGTHS", range(3, 6))
    monkeypatch.setattr(compare_risk_estimators, "COUNTS", (2, 4))
    output = tmp_path / "estimates.md"
    arguments = ["--treebank", str(treebank), "--model", str(model), "--sentences", "8", "--repeats", "60"]
    compare_risk_estimators.main([*arguments, "--output", str(output)])
    pattern = r"^\| (\d) \| (\S+) \((\S+)\) \| (\S+) \((\S+)\) \| (\S+) \|$"
    rows = re.findall(pattern, output.read_text(encoding="utf-8"), re.MULTILINE)
    assert [row[0] for row in rows] == ["2", "4"]
    for _, with_replacement, off, without, also_off, ratio in rows:
        assert float(without) < float(with_replacement)
        assert float(ratio) == pytest.approx(float(without) / float(with_replacement), abs=0.02)
        assert max(float(off), float(also_off)) < 1.5
    assert float(rows[1][1]) < float(rows[0][1])
