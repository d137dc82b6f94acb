"""Files of a run that a crash or a full disk cut off are refused with a sentence that names the file."""

import re
import shutil
from pathlib import Path

import pytest

from treeparse.errors import TreeparseError
from treeparse.training import TrainConfig, load_config, train
from treeparse.training.release import export_model
from treeparse.training.run_directory import RunDirectory


@pytest.fixture
def config(trained_config: Path, tmp_path: Path) -> TrainConfig:
    """A run to damage, whose model is not written yet."""
    run = tmp_path / "run"
    shutil.copytree(trained_config.parent / "run", run)
    shutil.rmtree(run / "model")
    return load_config(trained_config, ["--output", str(run)])


@pytest.mark.parametrize("name", ["last.ckpt", "best.ckpt"])
@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.9, 1.0])
def test_a_checkpoint_that_is_cut_off(config: TrainConfig, name: str, share: float) -> None:
    path = Path(config.output, "checkpoints", name)
    data = path.read_bytes()
    path.write_bytes(data[: int(share * (len(data) - 1))])
    with pytest.raises(TreeparseError, match=f"{path} is no checkpoint of a run, or is damaged: train anew") as caught:
        train(config, resume=True, quiet=True)
    assert "\n" not in str(caught.value)
    assert not Path(config.output, "model").exists()


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_a_parser_that_is_cut_off(config: TrainConfig, share: float) -> None:
    run = RunDirectory(config.output)
    data = run.parser.read_bytes()
    run.parser.write_bytes(data[: int(share * (len(data) - 1))])
    with pytest.raises(TreeparseError, match=re.escape(str(run.parser))):
        export_model(run)
    run.parser.unlink()
    with pytest.raises(TreeparseError, match=r"is missing.*--resume"):
        export_model(run)
    assert not run.model.exists()
