"""The names that users choose by are those that the code behind them knows."""

from typing import get_args

import pytest
import torch

from treeparse.errors import TreeparseError
from treeparse.names import COMBINATIONS, DECODERS, LISTING_COMBINATIONS, LISTING_DECODERS, Schedule
from treeparse.training.parser_module import rate_share
from treeparse.training.train_config import ResolvedOptimization
from treeparse.trees import DISTRIBUTIONS, NonProjectiveCRF, distribution_named


def test_a_distribution_has_the_family_that_its_class_names() -> None:
    for distribution in DISTRIBUTIONS.values():
        kind = distribution.tree_family
        others = [torch.zeros(1, 2, 2, 2)] * len(kind.part_kinds)
        family = distribution(torch.zeros(1, 2, 2), *others).family
        assert isinstance(family, kind)


def test_trees_go_by_a_name_or_a_class_path() -> None:
    assert distribution_named("treeparse.trees.NonProjectiveCRF") is NonProjectiveCRF
    with pytest.raises(TreeparseError, match=r"Unknown kind of trees 'sibling', .*; did you mean siblings\?"):
        distribution_named("sibling")
    with pytest.raises(TreeparseError, match=r"must be a subclass of treeparse\.trees\.crf\.TreeCRF"):
        distribution_named("treeparse.trees.LabeledCRF")
    with pytest.raises(TreeparseError, match=r"the module treeparse\.trees has no class 'Missing'"):
        distribution_named("treeparse.trees.Missing")
    with pytest.raises(TreeparseError, match="'no_such_module' cannot be imported"):
        distribution_named("no_such_module.Trees")


def test_what_has_no_list_of_trees() -> None:
    assert set(DECODERS) - set(LISTING_DECODERS) == {"minimum_risk"}
    assert set(COMBINATIONS) - set(LISTING_COMBINATIONS) == {"marginals"}


@pytest.mark.parametrize("schedule", get_args(Schedule))
def test_every_schedule_has_a_rate(schedule: Schedule) -> None:
    values = {"epochs": 1, "steps": 9, "dev_every": 1, "patience": None, "average_decay": None}
    config = ResolvedOptimization(**values, schedule=schedule, warmup_steps=0)
    assert rate_share(config, 0) == 1.0
