import math
from functools import partial

import pytest
import torch
from torch import nn
from torch.optim.lr_scheduler import LambdaLR

from treeparse.training.parser_module import MovingAverage, build_optimizer, rate_share
from treeparse.training.train_config import OptimizationConfig, ResolvedOptimization

EPOCH = {"epochs": 1, "dev_every": 1, "patience": None, "average_decay": None}


def share(schedule: str, step: int, steps: int, warmup: int = 4) -> float:
    config = ResolvedOptimization(**EPOCH, steps=steps, warmup_steps=warmup, schedule=schedule)  # pyright: ignore
    return rate_share(config, step)


@pytest.mark.parametrize(
    ("schedule", "step", "steps", "expected"),
    [
        ("constant", 0, 100, 0.25),
        ("constant", 2, 100, 0.75),
        ("constant", 3, 100, 1.0),
        ("constant", 99, 100, 1.0),
        ("linear", 75, 100, 0.25),
        ("linear", 1, 2, 0.25),
        ("linear", 100, 100, 0.0),
        ("linear", 110, 100, 0.0),  # epochs that draw their sentences may have more steps than the first one
        ("cosine", 50, 100, 0.5),
        ("cosine", 25, 100, (1 + math.sqrt(0.5)) / 2),
        ("cosine", 100, 100, 0.0),
    ],
)
def test_the_rate_of_a_step(schedule: str, step: int, steps: int, expected: float) -> None:
    assert share(schedule, step, steps) == pytest.approx(expected, abs=1e-15)


def test_no_warmup() -> None:
    assert share("constant", 0, 9, warmup=0) == 1.0


def test_optimizer_leaves_frozen_weights_out() -> None:
    model = nn.Linear(2, 2)
    model.bias.requires_grad_(False)
    (group,) = build_optimizer(model.parameters(), OptimizationConfig(weight_decay=0.1), {}).param_groups
    assert [id(parameter) for parameter in group["params"]] == [id(model.weight)]
    assert (group["weight_decay"], group["betas"]) == (0.1, (0.9, 0.95))


def test_groups_of_parameters_have_their_shares_of_the_rate() -> None:
    weight, bias = nn.Parameter(torch.zeros(2, 2)), nn.Parameter(torch.zeros(2))
    optimizer = build_optimizer([weight, bias], OptimizationConfig(learning_rate=2.0), {weight: 0.25})
    groups = [([id(each) for each in group["params"]], group["lr"]) for group in optimizer.param_groups]
    assert groups == [([id(bias)], 2.0), ([id(weight)], 0.5)]  # the highest first: it is the one shown
    config = ResolvedOptimization(**EPOCH, steps=4, warmup_steps=2)  # pyright: ignore
    schedule = LambdaLR(optimizer, partial(rate_share, config))
    assert [group["lr"] for group in optimizer.param_groups] == [1.0, 0.25]
    optimizer.step()
    schedule.step()
    assert [group["lr"] for group in optimizer.param_groups] == [1.5, 0.375]


def test_one_rate_is_one_group() -> None:
    weight, bias = nn.Parameter(torch.zeros(2, 2)), nn.Parameter(torch.zeros(2))
    plain, same = (build_optimizer([weight, bias], OptimizationConfig(), rates) for rates in ({}, {weight: 1.0}))
    assert plain.state_dict() == same.state_dict()
    theirs = torch.optim.AdamW([weight, bias], fused=True).state_dict()
    assert plain.state_dict()["param_groups"][0].keys() == theirs["param_groups"][0].keys()


def test_average_follows_the_recurrence() -> None:
    model = nn.Linear(1, 1, bias=False)
    average = MovingAverage(model, decay=0.3)
    expected = 0.0
    for count, value in enumerate([4.0, 1.0, -2.0, 5.0, 0.5]):
        nn.init.constant_(model.weight, value)
        average.update_parameters(model)
        decay = min(0.3, (1 + count) / (10 + count))
        expected = value if count == 0 else decay * expected + (1 - decay) * value
    (averaged,) = average.module.parameters()
    assert averaged.item() == pytest.approx(expected, rel=1e-6)
    assert model.weight.item() == 0.5


def test_average_shares_what_is_frozen() -> None:
    model = nn.Linear(2, 2)
    model.bias.requires_grad_(False)
    average = MovingAverage(model, decay=0.5)
    weight, bias = average.module.parameters()
    assert bias.data_ptr() == model.bias.data_ptr() and weight.data_ptr() != model.weight.data_ptr()
    frozen = model.bias.clone()
    for _ in range(3):
        average.update_parameters(model)
    assert torch.equal(bias, frozen)
