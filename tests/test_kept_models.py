"""What earlier versions wrote is read for good: a model to the same parses, a run to the same model and to its end."""

import csv
import json
import re
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from treeparse.cli.main import main
from treeparse.errors import TreeparseError
from treeparse.training.settings.config import TrainConfig
from treeparse.training.settings.reading import load_config
from treeparse.training.state.identity import with_values_of_before
from treeparse.training.state.run_directory import RunDirectory

MODELS = Path(__file__).parent / "models"
COMMANDS = {
    "predict.conllu": ["predict"],
    "projective.conllu": ["predict", "--decoder", "projective"],
    "minimum_risk.conllu": ["predict", "--decoder", "minimum_risk"],
    "kbest.conllu": ["kbest", "-k", "4"],
    "kbest.jsonl": ["kbest", "-k", "4"],
    "sample.jsonl": ["sample", "-k", "4", "--seed", "1"],
    "distinct.jsonl": ["sample", "-k", "4", "--seed", "1", "--without-replacement"],
}
NUMBER = re.compile(r"-?\d+\.\d+(?:e-?\d+)?")
V1_EPOCHS = 60


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the first kept folder, as the current folder."""
    shutil.copytree(MODELS / "v1", tmp_path / "v1")
    monkeypatch.chdir(tmp_path / "v1")
    return tmp_path / "v1"


@pytest.mark.parametrize("folder", sorted(path.name for path in MODELS.iterdir()))
@pytest.mark.parametrize("output", COMMANDS)
def test_a_kept_model_gives_what_it_gave(folder: str, output: str, tmp_path: Path) -> None:
    """To the byte, but for the last digits of scores, which no two kinds of processors have alike."""
    command, *options = COMMANDS[output]
    kept, found = MODELS / folder, tmp_path / output
    assert main([command, str(kept / "run"), str(kept / "text.conllu"), "-q", "-o", str(found), *options]) == 0
    expected = (kept / output).read_text(encoding="utf-8")
    text = found.read_text(encoding="utf-8")
    assert NUMBER.sub("0", text) == NUMBER.sub("0", expected)
    numbers, wanted = (list(map(float, NUMBER.findall(each))) for each in (text, expected))
    assert numbers == pytest.approx(wanted, abs=1e-4)
    assert bool(numbers) == ("# log_prob" in expected or output.endswith("jsonl"))


def test_a_kept_run_gives_its_model(kept: Path) -> None:
    assert main(["export", "run", "-q", "-o", "again"]) == 0
    for name in ("model.safetensors", "vocabulary.json"):
        assert (kept / "again" / name).read_bytes() == (kept / "run" / "model" / name).read_bytes()
    before, now = (json.loads((kept / each / "config.json").read_bytes()) for each in ("run/model", "again"))
    assert before == {name: value for name, value in now.items() if name in before}
    assert before["encoder"] == {name: value for name, value in now["encoder"].items() if name in before["encoder"]}


def test_a_kept_run_goes_on(kept: Path) -> None:
    before = load_file(kept / "run" / "model" / "model.safetensors")
    epochs = V1_EPOCHS + 10
    assert main(["train", "--resume", "run", "-q", "--optimization.epochs", str(epochs)]) == 0
    with (kept / "run" / "metrics.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["epoch"]) for row in rows] == [*range(10, epochs + 1, 10)]
    assert float(rows[-1]["loss"]) < float(rows[0]["loss"]) / 2
    assert load_file(kept / "run" / "model" / "model.safetensors").keys() == before.keys()


def test_the_settings_of_a_kept_run_are_those_that_it_had(kept: Path) -> None:
    """Whatever has come since has its value of before."""
    path = kept / "run" / "config.yaml"
    lacking = path.read_text(encoding="utf-8").replace("  dev_every: 10\n", "").replace("  dev_share: 0.0\n", "")
    path.write_text(lacking, encoding="utf-8")
    config: TrainConfig = load_config(path, of_run=True)
    assert (config.optimization.dev_every, config.data.dev_share) == (1, 0.0)
    assert load_config(path, ["--optimization.dev_every", "3"], of_run=True).optimization.dev_every == 3
    assert load_config(path).optimization.dev_every == "auto"  # a file of a user's, who leaves out what is usual


def test_what_an_earlier_run_lacks_has_its_value_of_before(kept: Path) -> None:
    config = load_config(kept / "run" / "config.yaml", ["--optimization.dev_every", "3"])
    settings = config.to_dict()
    del settings["optimization"]["dev_every"], settings["data"]["dev_share"]
    del settings["model"]["encoder"]["recurrent_dropout"]
    found = with_values_of_before(settings, config)
    assert found["optimization"]["dev_every"] == 1 and "dev_every" not in settings["optimization"]
    assert found["model"]["encoder"]["recurrent_dropout"] == 0.0
    assert found.pop("learning")  # of linear models, which this run has none of
    assert found == {**config.to_dict(), "optimization": {**config.to_dict()["optimization"], "dev_every": 1}}


def test_files_of_a_run_name_the_version_that_wrote_them(kept: Path) -> None:
    run = RunDirectory("run")
    parser = run.read_parser()
    run.write_parser(parser)
    values = json.loads(run.parser.read_bytes())
    assert values["format"] == 1 and run.read_parser().config == parser.config
    run.parser.write_text(json.dumps({**values, "format": 99, "treeparse": "9.8.7"}), encoding="utf-8")
    with pytest.raises(TreeparseError, match=r"parser.json, config is of another format \(99\).* by treeparse 9\.8\.7"):
        run.read_parser()
    state = torch.load(run.state, weights_only=True)
    torch.save({**state, "format": 99, "treeparse": "9.8.7"}, run.state)
    with pytest.raises(
        TreeparseError, match=r"another version of treeparse than .*, treeparse 9\.8\.7: resume with that version"
    ):
        run.read_state()
    torch.save({**state, "later": 1, "treeparse": "9.8.7"}, run.state)
    with pytest.raises(TreeparseError, match=r"written by treeparse 9\.8\.7, holds later, which this version does not"):
        run.read_state()
