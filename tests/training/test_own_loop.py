"""Loops of others: Lightning's Trainer with its callbacks, and wrappers that share a parser among devices."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import pytorch_lightning as pl
import torch
import torch.distributed as dist
from helpers.parsers import TRAINING, random_parser
from helpers.trained_runs import equal, weights
from lightning_fabric.utilities import move_data_to_device
from pytorch_lightning.callbacks import ModelCheckpoint
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DataParallel, DistributedDataParallel

from treeparse import Parser, TreeparseError
from treeparse.data import load_treebank
from treeparse.data.batches.treebank_module import TreebankModule
from treeparse.data.parses import with_parses
from treeparse.metrics import attachment_scores
from treeparse.objectives import TreeLikelihood
from treeparse.shipped import shipped_file
from treeparse.training import load_config, prepare, run, train


@pytest.mark.filterwarnings("ignore:.*LeafSpec.*:FutureWarning", "ignore::UserWarning:pytorch_lightning")
def test_a_trainer_of_ones_own(tiny_config: Path, tmp_path: Path) -> None:
    """It logs the scores by which a callback chooses a checkpoint, and predicts; nothing else is written."""
    training = prepare(load_config(tiny_config), quiet=True)
    assert isinstance(training.config.data.batch_words, int) and isinstance(training.config.optimization.epochs, int)
    best = ModelCheckpoint(tmp_path / "own", monitor="las", mode="max")
    quiet: Any = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False}
    trainer = pl.Trainer(**training.trainer_options, **quiet, callbacks=[best])
    trainer.fit(training.module, datamodule=training.data)
    assert trainer.current_epoch == training.work.epochs and not (tmp_path / "run").exists()
    logged = {name: float(value) for name, value in trainer.callback_metrics.items()}
    assert {"loss", "uas", "las"} <= {*logged} and logged["loss"] > 0

    weights: Any = torch.load(best.best_model_path, weights_only=True)["state_dict"]
    training.module.load_state_dict(weights)
    [*batches] = trainer.predict(training.module, dataloaders=_dev(training.data)) or ()
    gold = [sentence for share in _dev(training.data) for sentence in share.batch.sentences]
    scores = attachment_scores(gold, with_parses(gold, [parse for batch in batches for parse in batch]))
    assert best.best_model_score is not None
    assert scores.las == pytest.approx(float(best.best_model_score), abs=1e-6)


def _dev(data: TreebankModule) -> Any:
    return data.val_dataloader()


def test_a_linear_model_has_no_trainer(tiny_config: Path) -> None:
    config = load_config(tiny_config)
    linear = load_config(shipped_file("linear"), [f"--data.train={config.data.train}", f"--output={config.output}"])
    with pytest.raises(TreeparseError, match="not trained by Lightning's Trainer"):
        prepare(linear)


def test_sentences_and_batches_pass_through_lightning() -> None:
    parser = random_parser()
    given = {"sentences": TRAINING[:2], "batch": parser.collate(TRAINING[:2]), "numbers": torch.ones(2)}
    moved = move_data_to_device(given, torch.device("cpu"))
    assert moved["sentences"] == TRAINING[:2] and torch.equal(moved["batch"].lengths, given["batch"].lengths)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_a_batch_is_pinned() -> None:
    batch = random_parser().collate(TRAINING[:2]).pin_memory()
    assert batch.lengths.is_pinned() and all(feature.is_pinned() for feature in batch.features.values())


GPU = pytest.param("cuda", marks=[pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="")])


@pytest.fixture(params=["cpu", GPU])
def device(request: pytest.FixtureRequest) -> Iterator[torch.device]:
    """A device, in a group of one process."""
    device = torch.device(request.param)
    store = dist.HashStore()  # pyright: ignore[reportPrivateImportUsage]
    dist.init_process_group("gloo" if device.type == "cpu" else "nccl", store=store, rank=0, world_size=1)
    yield device
    dist.destroy_process_group()


@pytest.mark.parametrize("wrap", [DistributedDataParallel, fully_shard, DataParallel])
def test_wrappers_of_a_parser_need_no_class_of_ones_own(wrap: Any, device: torch.device) -> None:
    losses, gradients = [], []
    for wrapped in (False, True):
        parser = random_parser().to(device)
        for module in parser.modules():
            module.training = isinstance(module, torch.nn.LSTM)  # cuDNN has no gradient outside training
        model = wrap(parser) if wrapped else parser
        loss = model(parser.collate(TRAINING[:5]), TreeLikelihood())
        loss.backward()
        losses.append(loss.detach())
        gradients.append([getattr(each.grad, "full_tensor", lambda g=each.grad: g)() for each in parser.parameters()])
    torch.testing.assert_close(*losses)
    for own, other in zip(*gradients, strict=True):
        torch.testing.assert_close(own, other)


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
