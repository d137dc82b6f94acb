"""A step of training and a batch of parses wait for a CUDA device as seldom as can be, and find what the CPU finds."""

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import cast

import pytest
import torch
from helpers.parsers import CONFIG, TRAINING, random_parser
from helpers.pretended import Pretended, Waits, pretended_device, to_device

from treeparse.batch import Batch
from treeparse.data.batches.steps import ShareOfStep
from treeparse.errors import NoTreeError
from treeparse.model import Parser
from treeparse.model.inference import parsing
from treeparse.model.tagging import TagWeights
from treeparse.objectives import HeadSelection, TreeLikelihood, Weighted, WeightedSum
from treeparse.training.parser_module import FiniteNumbers, ParserModule, Step, WordMean
from treeparse.training.train_config import ResolvedOptimization

FEW = TRAINING[:3]
OBJECTIVE = WeightedSum([Weighted(TreeLikelihood()), Weighted(HeadSelection(), 0.5)])
OPTIMIZATION = ResolvedOptimization(epochs=1, steps=4, dev_every=1, warmup_steps=0, patience=None, average_decay=0.5)


def tagging_parser() -> Parser:
    return random_parser(replace(CONFIG, tags=TagWeights(upos=1.0)))


class Steps:
    """Steps of training as a trainer takes them."""

    def __init__(self, parser: Parser) -> None:
        self.module = ParserModule(parser, OBJECTIVE, OPTIMIZATION)

    def take(self, count: int) -> None:
        module = self.module
        for part in module.modules():  # LSTM and dropout would draw
            part.training = isinstance(part, torch.nn.LSTM)
        module.log = lambda *arguments, **options: None  # type: ignore[method-assign]
        optimizer = module.configure_optimizers()["optimizer"]
        for number in range(count):
            optimizer.zero_grad()
            module.training_step(ShareOfStep(module.parser.collate(FEW), seed=1), number).backward()
            module.configure_gradient_clipping(optimizer, 1.0)
            optimizer.step()
            module.average.update_parameters(module.parser)  # type: ignore[union-attr]

    def losses(self) -> dict[str, float]:
        """The means that are logged, as sums over words."""
        means = cast("dict[str, WordMean]", dict(self.module.means.items()))
        return {name: float(mean.total) for name, mean in means.items()}

    def weights(self) -> list[torch.Tensor]:
        found = self.module.state_dict().values()
        return [each.held if isinstance(each, Pretended) else each for each in found]


@pytest.fixture
def waits() -> Iterator[Waits]:
    """The device."""
    with pretended_device() as found:
        yield found


def test_a_step_waits_for_nothing_and_learns_the_same(waits: Waits) -> None:
    here, there = Steps(tagging_parser()), Steps(tagging_parser())
    for steps in (here, there):  # which makes the means that are logged
        steps.take(1)
    to_device(there.module)
    assert there.module.parser.device.type == "cuda"
    here.take(2)
    waits.clear()
    there.take(2)
    assert waits == []
    for own, expected in zip(there.weights(), here.weights(), strict=True):
        torch.testing.assert_close(own, expected, rtol=1e-6, atol=1e-8)
    found = there.losses()
    assert len(found) == 4  # the loss and its terms
    assert found == pytest.approx(here.losses(), rel=1e-9)


def test_a_batch_of_parses_waits_once(waits: Waits) -> None:
    parser = tagging_parser()
    expected = parser.parse(FEW)
    to_device(parser)
    waits.clear()
    assert [each.heads for each in parser.parse(FEW)] == [each.heads for each in expected]
    assert waits == [("event", "batch.py"), ("tolist", "model/tagging.py")]
    assert parser.parse(FEW)[0].upos == expected[0].upos


def test_scores_that_are_no_numbers_are_found_in_the_parses(waits: Waits) -> None:
    parser = random_parser()
    for weight in parser.parameters():
        weight.data.fill_(math.nan)
    to_device(parser)
    with pytest.raises(NoTreeError, match=r"Sentence \d \(counted from 0\) has no tree, because its scores are not"):
        parser.parse(FEW)


def test_numbers_of_steps_are_read_together(waits: Waits) -> None:
    def error(problem: str, step: Step) -> Exception:
        return ValueError(f"{problem} at {step.number}")

    batch = Batch(torch.ones(1), torch.ones(1), {})
    numbers = FiniteNumbers(error, every=3)
    values = [Pretended(torch.tensor(value)) for value in (1.0, math.nan, math.inf, 2.0)]
    for place, value in enumerate(values[:3]):
        numbers.add("the loss", value, Step(0, batch, place))
        numbers.add("the norm", value, Step(0, batch, place))
    assert waits == []
    with pytest.raises(ValueError, match="the loss is nan at 1"):
        numbers.add("the loss", values[3], Step(0, batch, 3))
    assert len(waits) == 1
    numbers.sync()
    with pytest.raises(ValueError, match="the norm is inf at 7"):
        numbers.add("the norm", torch.tensor(math.inf), Step(0, batch, 7))  # on the CPU at once


def test_batches_are_moved_and_known_here(waits: Waits) -> None:
    batch = random_parser().collate(FEW)
    there = batch.to("cuda:0")
    assert there.lengths.device.type == "cuda" and there.on_cpu is batch and batch.to("cpu") is batch
    assert there.num_words == sum(map(len, FEW)) and there.longest == max(map(len, FEW)) and not waits
    back = there.to("cpu")
    assert back.on_cpu is back and torch.equal(back.lengths, batch.lengths)
    assert waits and {what for what, _ in waits} == {"copy"}


def test_threads_where_a_device_computes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two batches in work at once find what one after the other does; torch keeps its threads in each."""
    parser = random_parser()
    expected = parser.parse(TRAINING, batch_words=40)
    monkeypatch.setattr(parsing, "_threads", lambda device: {"threads": 2, "torch_threads": torch.get_num_threads()})
    assert parser.parse(TRAINING, batch_words=40) == expected
    monkeypatch.undo()
    device, count = torch.device("cuda"), torch.get_num_threads()
    assert parsing._threads(device) == {"threads": parsing.ON_DEVICE, "torch_threads": count}
    with torch.autocast("cpu", torch.bfloat16):
        assert parsing._threads(torch.device("cpu")) == {"threads": 1}


GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


@pytest.mark.gpu
@GPU
def test_a_step_on_a_device_waits_for_nothing() -> None:
    steps = Steps(tagging_parser())
    steps.module.cuda()
    steps.take(2)  # compiles kernels, and makes what an optimiser keeps
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        steps.take(2)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert all(map(math.isfinite, steps.losses().values()))


@pytest.mark.gpu
@GPU
def test_parsing_in_two_threads_on_a_device() -> None:
    parser = random_parser()
    expected = parser.parse(TRAINING, batch_words=40)
    found = parser.cuda().parse(TRAINING, batch_words=40)
    assert [(each.heads, each.labels) for each in found] == [(each.heads, each.labels) for each in expected]
