"""The memory of steps against torch's own record of allocations, and batches within a budget of it."""

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from helpers.pretrained import bert_folder
from safetensors.torch import load_file
from torch import Tensor
from torch.profiler import ProfilerActivity, profile

from treeparse.data.batches.batching import counted_nodes
from treeparse.errors import TreeparseError
from treeparse.model import Parser, ParserConfig
from treeparse.nn import BiLSTMConfig, EncoderConfig, TransformerConfig
from treeparse.objectives import TreeLikelihood
from treeparse.sentence import Sentence
from treeparse.training import load_config, train
from treeparse.training.settings import step_memory
from treeparse.training.settings.step_memory import (
    GIGABYTE,
    BatchBounds,
    LiveStorage,
    StepMemory,
    lower_bounds,
    measure_step_memory,
)

CPU = torch.device("cpu")


def sentences_of(count: int, words: int) -> list[Sentence]:
    stream = random.Random(words)
    labels = ("root",) + ("dep",) * (words - 1)
    forms = [tuple(stream.choices(["noun", "verb", "a", "b,"], k=words)) for _ in range(count)]
    return [Sentence(each, heads=tuple(range(words)), labels=labels) for each in forms]


TRAIN = [sentence for words in range(3, 60, 4) for sentence in sentences_of(1, words)]


def allocated(loss: Callable[[], Tensor]) -> int:
    """The most bytes that torch's allocator had given out at once, by the record of its profiler."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as record:
        loss().backward()
    assert record.profiler is not None and record.profiler.kineto_results is not None
    events: list[Any] = [e for e in record.profiler.kineto_results.events() if e.name() == "[memory]"]
    now = most = 0
    for event in sorted(events, key=lambda e: e.start_ns()):
        now += event.nbytes()
        most = max(most, now)
    return most


@pytest.mark.parametrize("settings", [{}, {"gradient_checkpointing": True}, {"frozen": True}, None])
def test_the_estimate_at_lengths_that_were_not_measured(settings: dict[str, Any] | None, tmp_path: Path) -> None:
    encoder: EncoderConfig = BiLSTMConfig(char_filters=10, hidden_size=40)
    if settings is not None:
        sizes = {"hidden_size": 64, "num_hidden_layers": 2, "intermediate_size": 256, "limit": 256}
        encoder = TransformerConfig(model=str(bert_folder(tmp_path / "bert", **sizes)), **settings)
    torch.manual_seed(1)
    parser = Parser.build(ParserConfig(encoder, arc_size=50, label_size=16), TRAIN)
    before = torch.get_rng_state()
    memory = measure_step_memory(parser, TreeLikelihood(), TRAIN, max_words=200, device=CPU)
    assert torch.equal(torch.get_rng_state(), before) and all(each.grad is None for each in parser.parameters())
    learnt = sum(each.nbytes for each in parser.parameters() if each.requires_grad)
    resident = sum(each.nbytes for each in parser.state_dict().values()) + 2 * learnt
    for count, words in ((6, 20), (3, 44)):
        sentences = sentences_of(count, words)
        batch, nodes = parser.collate(sentences), max(counted_nodes([*map(parser.length, sentences)]))
        found = allocated(lambda batch=batch: parser.loss(batch, TreeLikelihood()))
        parser.zero_grad(set_to_none=True)
        assert memory.bytes(count * nodes, count * nodes**2) - resident == pytest.approx(found, rel=0.3)


def test_live_storage_by_hand() -> None:
    given = torch.ones(100)
    with LiveStorage() as live:
        first = given * 2  # 400 bytes
        second = first.view(10, 10).T  # no bytes
        assert live.peak == 400
        third = torch.cat([first, first])  # 800
        del first
        fourth = third[:5] + second.sum()  # 4 + 20
        assert live.peak == 400 + 800 + 4 + 20
        del second, third, fourth
        given.view(-1)
        given.add_(1)
        torch.zeros(200)
        assert live.peak == 1224


def test_lowered_bounds_keep_to_the_budget_and_use_it() -> None:
    stream = random.Random(3)
    for _ in range(200):
        memory = StepMemory(stream.uniform(0, 1e9), stream.uniform(0, 1e6), stream.uniform(0, 1e4))
        words, longest = stream.randint(100, 5000), stream.randint(10, 100)
        bounds = BatchBounds(words, stream.choice([None, stream.randint(100, 10**6)]))
        alone, room = memory.bytes(longest, longest**2), stream.choice([1.0, 2.5])
        most = max(alone, memory.bytes(room * words, room * min(bounds.max_squared or 10**9, words * longest)))
        amount = stream.uniform(0.5 * alone, 1.5 * most) / GIGABYTE
        if alone > amount * GIGABYTE:
            with pytest.raises(TreeparseError, match="the longest sentence alone"):
                lower_bounds(bounds, amount, memory, longest, room)
            continue
        found = lower_bounds(bounds, amount, memory, longest, room)
        if most <= amount * GIGABYTE:
            assert found == bounds
            continue
        assert found.max_words < bounds.max_words and (found.max_squared is None) == (bounds.max_squared is None)
        cells = room * min(found.max_squared or 10**9, found.max_words * longest)
        assert memory.bytes(room * found.max_words, cells) <= amount * GIGABYTE * (1 + 1e-9)
        larger = room * min((found.max_squared or 10**9) + 1, (found.max_words + 1) * longest)
        assert memory.bytes(room * (found.max_words + 1), larger) >= 0.97 * amount * GIGABYTE


def test_a_run_within_a_budget(tiny_config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is the run that the lowered bounds give, bit for bit, and goes on with these without another measurement."""
    torch.set_num_threads(1)
    more = ["--data.batch_words=400", "--data.batch_squared=20000", "--optimization.epochs=1"]
    config = load_config(tiny_config, [*more, "--data.memory=0.001"])
    found = load_file(train(config, quiet=True) / "model.safetensors")
    data = yaml.safe_load((tmp_path / "run" / "config.yaml").read_text())["data"]
    assert 10 < data["batch_words"] < 400 and 100 < data["batch_squared"] < 20000 and data["memory"] == 0.001
    monkeypatch.setattr(step_memory, "measure_step_memory", None)
    train(config, resume=True, quiet=True)
    plain = replace(
        config,
        data=replace(config.data, **{name: data[name] for name in ("batch_words", "batch_squared")}, memory=None),
        output=str(tmp_path / "plain"),
    )
    expected = load_file(train(plain, quiet=True) / "model.safetensors")
    assert all(torch.equal(found[name], expected[name]) for name in expected)


def test_a_budget_that_is_too_small(tiny_config: Path) -> None:
    with pytest.raises(TreeparseError, match=r"data.memory is 1e-05 GB, but a step takes about 0.000"):
        train(load_config(tiny_config, ["--data.memory=1e-5"]), quiet=True)
    with pytest.raises(TreeparseError, match=r"data.memory must be more than 0, or null, got 0.0"):
        load_config(tiny_config, ["--data.memory=0"])
