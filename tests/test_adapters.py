"""Parsers whose transformer learns by adapters alone: trained, resumed, saved as ordinary ones, trained on."""

import sys
from pathlib import Path

import pytest
import torch
from helpers.broken_runs import break_off
from helpers.pretrained import bert_folder
from safetensors.torch import load_file

from treeparse.model import Parser
from treeparse.nn import TransformerConfig
from treeparse.training import load_config, train


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return bert_folder(tmp_path_factory.mktemp("bert"))


@pytest.fixture
def settings(folder: Path) -> list[str]:
    options = {"model": folder, "learning_rate_factor": 1.0}
    options |= {"lora_rank": 2, "lora_dropout": 0.2, "lora_targets": "[query,dense]"}
    options |= {"char_filters": 3, "char_widths": "[1,2]", "tags": "[upos]", "hidden_size": 4}
    return [
        "--data.batch_words=120",
        "--model.encoder=TransformerConfig",
        *(f"--model.encoder.{name}={value}" for name, value in options.items()),
    ]


def test_a_run_by_adapters(
    tiny_config: Path, settings: list[str], folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Broken and resumed, it ends as unbroken; the model needs no peft; others start from it, also by adapters."""
    settings = [*settings, "--optimization.epochs=2"]
    unbroken = train(load_config(tiny_config, [*settings, "--output", str(tmp_path / "unbroken")]), quiet=True)
    break_off(lambda: train(load_config(tiny_config, settings), quiet=True), 1, 2, monkeypatch)
    resumed = train(load_config(tiny_config, settings), resume=True, quiet=True)
    found, expected = (load_file(model / "model.safetensors") for model in (resumed, unbroken))
    assert found.keys() == expected.keys() and all(torch.equal(found[name], expected[name]) for name in found)

    start, prefix = load_file(folder / "model.safetensors"), "scorer.encoder.transformer."
    for name in (name for name in found if name.startswith(prefix)):
        learnt = name.endswith(("query.weight", "dense.weight"))
        assert torch.equal(found[name], start[name.removeprefix(prefix)]) != learnt, name

    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "peft", None)
        parser = Parser.from_pretrained(resumed)
    assert isinstance(parser.config.encoder, TransformerConfig) and parser.config.encoder.lora_rank == 0

    more = [*settings, "--init_from", str(resumed), "--output", str(tmp_path / "more")]
    more += ["--optimization.epochs=1", "--optimization.learning_rate=0"]
    again = load_file(train(load_config(tiny_config, more), quiet=True) / "model.safetensors")
    assert again.keys() == found.keys() and all(torch.equal(again[name], found[name]) for name in found)
