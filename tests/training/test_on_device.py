"""Training where a device computes: batches are made ahead; what only a GPU can show."""

from pathlib import Path

import pytest
import torch
from helpers.trained_runs import equal, weights

from treeparse import Parser
from treeparse.data import load_treebank
from treeparse.metrics import attachment_scores
from treeparse.training import load_config, run, train


@pytest.mark.usefixtures("one_thread")
def test_a_run_with_batches_made_ahead_has_the_same_bits(
    tiny_config: Path, trained_config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run.batches_ahead(torch.device("cuda")) > 0 == run.batches_ahead(torch.device("cpu"))
    monkeypatch.setattr(run, "batches_ahead", lambda device: 2)
    train(load_config(tiny_config), quiet=True)
    assert equal(*(weights(path.parent / "run" / "model") for path in (tiny_config, trained_config)))


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("precision", ["32-true", "bf16-mixed"])
def test_a_run_on_a_device(tiny_config: Path, precision: str) -> None:
    """It learns what a run on the CPU learns, goes on after an end, and its model parses anywhere."""
    settings = {"trainer.accelerator": "cuda", "trainer.precision": precision, "optimization.epochs": "16"}
    config = load_config(tiny_config, [word for name, value in settings.items() for word in (f"--{name}", value)])
    model = train(config, quiet=True)
    train(config, resume=True, quiet=True)  # finished: nothing is left
    gold = [each.words for each in load_treebank([str(tiny_config.parent / "dev.conllu")])]
    parser = Parser.from_pretrained(model)
    here = parser.parse(gold)
    there = parser.cuda().use_precision("auto").parse(gold, batch_words=60)
    for parses in (here, there):
        system = [words.with_tree(each.heads, each.labels) for words, each in zip(gold, parses, strict=True)]
        assert attachment_scores(gold, system).las > 0.7
