"""The parts of a training step and of parsing add up to the whole, and change nothing of what is computed."""

from contextlib import nullcontext

import pytest
import torch
from helpers.parsers import TRAINING, random_parser
from scripts.support.training.parts import Clock, Parts, parsing_parts, step_parts, waiting_clock, whole_steps

from treeparse.nn.biaffine import LabelVectors
from treeparse.objectives import HeadSelection, Objective, TreeLikelihood

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
