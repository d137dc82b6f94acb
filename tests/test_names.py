"""The names that users choose by are those that the code behind them knows."""

from typing import get_args

import pytest
import torch

from treeparse.names import (
    COMBINATIONS,
    DECODERS,
    LISTING_COMBINATIONS,
    LISTING_DECODERS,
    Schedule,
    TreeKind,
)
from treeparse.training.loop.parser_module import rate_share
from treeparse.training.settings.train_config import ResolvedOptimization
from treeparse.trees.tree_kinds import DISTRIBUTIONS, have_crossing_arcs, have_sums, part_kinds


def test_every_kind_of_trees_has_a_distribution() -> None:
    assert set(get_args(TreeKind)) == set(DISTRIBUTIONS)
    for name, distribution in DISTRIBUTIONS.items():
        others = [torch.zeros(1, 2, 2, 2)] * len(part_kinds(name))
        family = distribution(torch.zeros(1, 2, 2), *others).family
        values = family.kinds, family.crossing, family.has_sums
        assert values == (part_kinds(name), have_crossing_arcs(name), have_sums(name))


def test_what_has_no_list_of_trees() -> None:
    assert set(DECODERS) - set(LISTING_DECODERS) == {"minimum_risk"}
    assert set(COMBINATIONS) - set(LISTING_COMBINATIONS) == {"marginals"}


@pytest.mark.parametrize("schedule", get_args(Schedule))
def test_every_schedule_has_a_rate(schedule: Schedule) -> None:
    values = {"epochs": 1, "steps": 9, "dev_every": 1, "patience": None, "average_decay": None}
    config = ResolvedOptimization(**values, schedule=schedule, warmup_steps=0)
    assert rate_share(config, 0) == 1.0
