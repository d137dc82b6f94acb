import shutil
from pathlib import Path

import pytest
from helpers.commands import Capture

from treeparse import Parser
from treeparse.cli.main import main
from treeparse.errors import TreeparseError
from treeparse.training import load_config, train


@pytest.fixture
def run(trained_config: Path, tmp_path: Path) -> Path:
    """A run whose model was not written yet."""
    shutil.copytree(trained_config.parent / "run", tmp_path / "run")
    shutil.rmtree(tmp_path / "run" / "model")
    return tmp_path / "run"


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
