import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from helpers.commands import Capture, error_of
from helpers.forked import Forks

from treeparse import Parser
from treeparse.cli.main import main
from treeparse.errors import TreeparseError
from treeparse.training import load_config, train


def test_train_and_resume(tiny_config: Path, tmp_path: Path, capsys: Capture) -> None:
    output = tmp_path / "elsewhere"
    train = ["train", "--config", str(tiny_config), "--output", str(output), "--threads", "1", "--device", "cpu"]
    assert main([*train, "--optimization.epochs", "1"]) == 0
    shown = capsys.readouterr()
    assert str(output / "model") in shown.out
    assert shown.err.splitlines() == [
        f"treeparse: training on {tmp_path / 'train.conllu'}; measured on {tmp_path / 'dev.conllu'}",
        "treeparse: data.train has UPOS, but the model reads the words alone: --config tagged reads UPOS and "
        "FEATS, which its input must have; --model.tags.upos 1 and --model.tags.feats 1 learn to predict them",
        "treeparse: chosen for this treebank and machine: optimization.dev_every 1",
        "treeparse: warning: the learning rate rises over 5 of 5 steps (optimization.warmup_steps; auto is 3% of them)",
        "treeparse: warning: 5 steps are few to learn from: raise optimization.steps, or lower data.batch_words",
    ]
    assert (output / "model" / "model.safetensors").is_file()

    assert "--resume" in error_of(capsys, *train, "--optimization.epochs", "1")
    assert main(["train", "--resume", str(output)]) == 0
    assert "finished" in capsys.readouterr().out
    error = error_of(capsys, "train", "--resume", output, "--optimization.epochs=2", "-q")
    assert "optimization.epochs was 1 and is 2" in error and "--init-from" in error


def test_resume_starts_where_there_is_no_run(tiny_config: Path, tmp_path: Path) -> None:
    new = str(tmp_path / "new")
    assert main(["train", "--config", str(tiny_config), "--resume", new, "-q", "--optimization.epochs=1"]) == 0
    assert (tmp_path / "new" / "model").is_dir()


def test_the_default_config_needs_treebanks_and_a_folder_alone(
    tiny_config: Path, tmp_path: Path, capsys: Capture
) -> None:
    sizes = ["--model.encoder.hidden_size=8", "--model.arc_size=8", "--model.encoder.char_filters=0"]
    budget = ["--optimization.epochs=1", "--optimization.steps=3"]
    data = ["--data.train", str(tmp_path / "train.conllu"), "--data.dev", str(tmp_path / "dev.conllu")]
    assert main(["train", "--output", str(tmp_path / "mine"), *data, *sizes, *budget]) == 0
    assert "40 sentences" in capsys.readouterr().out
    assert "auto" not in [str(value) for value in _values(yaml.safe_load((tmp_path / "mine/config.yaml").read_text()))]


def _values(settings: object) -> Iterator[object]:
    if isinstance(settings, dict):
        for name, value in settings.items():
            if name != "accelerator":  # a run may resume elsewhere
                yield from _values(value)
    else:
        yield settings


def test_shipped_configs_go_by_name(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TREEPARSE_TREEBANKS", "a folder that holds EWT, which was not asked for")
    assert main(["train", "--config", "fast"]) == 2
    assert "There is nothing to train on: name CoNLL-U files as data.train" in capsys.readouterr().err


SMALL = ["--model.encoder.hidden_size=8", "--model.arc_size=8", "--model.encoder.char_filters=0", "--threads=1"]


def trained(capsys: Capture, *arguments: object) -> str:
    """The line on standard error that says what a short run trained on."""
    short = ["--optimization.epochs=1", "--device=cpu", *SMALL]
    assert main(["train", *map(str, arguments), *short]) == 0
    return capsys.readouterr().err.splitlines()[0]


def test_training_says_which_files_it_reads(
    tiny_config: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tiny_config.parent)
    tiny = ["--config", "tiny", "--data.train", "train.conllu"]
    assert trained(capsys, *tiny, "--output", "a") == "treeparse: training on train.conllu; nothing is measured"
    held = trained(capsys, *tiny, "--data.dev_share", "0.1", "--output", "b")
    assert held == "treeparse: training on train.conllu; measured on 4 sentences held out of them"
    both = [*tiny, "dev.conllu", "--data.train_on_dev", "true"]
    several = trained(capsys, *both, "--data.dev", "d*.conllu", "--output", "c")
    assert several == "treeparse: training on train.conllu, dev.conllu; measured on dev.conllu"
    for name in "wxyz":
        (tmp_path / f"{name}.conllu").write_bytes((tmp_path / "dev.conllu").read_bytes())
    many = trained(capsys, "--config", "tiny", "--data.train", "[wxyz].conllu", "--output", "d")
    assert many == "treeparse: training on 4 files, w.conllu to z.conllu; nothing is measured"
    assert main(["train", *tiny, "--output", "e", "-q", "--optimization.epochs=1", *SMALL]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "data.train"),
        (["--output", "x", "--data.train", "a", "--data.dev", "b", "--data.dev_share", "0.1"], "data.dev_share"),
        (["--config", "CONFIG", "--data.dev", "null", "--data.dev_share", "0.001"], "data.dev_share 0.001"),
        (["--resume", "nowhere"], "nowhere"),
        (["--config", "CONFIG", "--resume", "a", "--output", "b"], "leave out --output"),
        (["--config", "CONFIG", "--device", "meta"], "There is no device 'meta' on this machine that computes"),
    ],
)
def test_faults(tiny_config: Path, capsys: Capture, arguments: list[str], words: str) -> None:
    assert words in error_of(capsys, "train", *(tiny_config if word == "CONFIG" else word for word in arguments))


LOSS = """
from treeparse.objectives import TreeLikelihood


class MyLoss(TreeLikelihood):
    pass
"""


def test_own_classes_of_the_current_folder(tiny_config: Path, tmp_path: Path, forks: Forks) -> None:
    """As the script of the installation runs: all but what takes seconds to import is imported anew."""
    (tmp_path / "my_losses.py").write_text(LOSS, encoding="utf-8")
    (tmp_path / "jsonargparse.py").write_text("raise SystemExit('a file of the current folder shadows a package')\n")
    script = Path(sys.executable).parent / "treeparse"
    train = ["train", "--config", tiny_config, "--optimization.epochs=1", "--threads=1", "-q"]
    own = ["--objective", "my_losses.MyLoss"]
    done = forks.run(script, *train, *own, folder=tmp_path, anew=["treeparse", "jsonargparse"])
    assert done.returncode == 0 and all(line.startswith("treeparse: ") for line in done.stderr.splitlines())
    assert "class_path: my_losses.MyLoss" in (tmp_path / "run" / "config.yaml").read_text(encoding="utf-8")


@pytest.fixture
def run(finished_run: Path) -> Path:
    """A run whose model was not written yet."""
    shutil.rmtree(finished_run / "model")
    return finished_run


def test_export(run: Path, tmp_path: Path, capsys: Capture) -> None:
    assert main(["export", str(run)]) == 0
    said = capsys.readouterr().out
    assert said.startswith("epoch ") and "the best of 3, dev LAS " in said and said.endswith(f": {run / 'model'}\n")
    assert main(["export", str(run)]) == 0
    assert "it stood there already" in capsys.readouterr().out
    assert main(["export", str(run), "-q", "-o", str(tmp_path / "copy")]) == 0
    assert capsys.readouterr().out == ""
    assert (tmp_path / "copy" / "config.json").read_bytes() == (run / "model" / "config.json").read_bytes()


def test_a_run_goes_for_its_model(run: Path, tmp_path: Path, capsys: Capture) -> None:
    text = tmp_path / "text.txt"
    text.write_text("noun1 verb1\n", encoding="utf-8")
    with pytest.raises(TreeparseError, match=f"no model yet: treeparse export {run}"):
        Parser.from_pretrained(run)
    assert main(["predict", str(run), str(text), "--format", "text"]) == 2
    assert f"treeparse export {run}" in capsys.readouterr().err
    assert main(["export", str(run), "-q"]) == 0
    for command in (["predict"], ["kbest", "-k", "2"], ["sample", "-k", "2"]):
        shown = []
        for model in (run, run / "model"):
            name, *options = command
            assert main([name, str(model), str(text), "--format", "text", "-q", *options]) == 0
            shown.append(capsys.readouterr().out)
        assert shown[0] == shown[1] and "noun1" in shown[0]
    assert Parser.from_pretrained(run).config == Parser.from_pretrained(run / "model").config


def test_evaluate_and_train_take_a_run(trained_config: Path, tmp_path: Path, capsys: Capture) -> None:
    run, dev = trained_config.parent / "run", trained_config.parent / "dev.conllu"
    tables = []
    for model in (run, run / "model"):
        assert main(["evaluate", str(dev), "--model", str(model)]) == 0
        tables.append(capsys.readouterr().out.replace(str(model), "MODEL"))
    assert tables[0] == tables[1]
    options = ["--init_from", str(run), "--output", str(tmp_path / "more"), "--optimization.epochs", "1"]
    train(load_config(trained_config, options), quiet=True)
