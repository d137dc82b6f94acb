"""The comparison of the default config with settings by hand trains each run once, on the right parts of treebanks."""

import json
from pathlib import Path

import pytest
from scripts.experiments import experiment_default
from scripts.experiments.experiment_default import TREEBANKS, Parts, files_of

from treeparse.data import load_treebank


@pytest.fixture
def treebanks(tiny_config: Path, tmp_path: Path) -> Path:
    """A folder of treebanks in which the tiny one is all of them."""
    for treebank in {treebank.files for treebank in TREEBANKS.values()}:
        (tmp_path / "all" / treebank).parent.mkdir(parents=True, exist_ok=True)
        for part, source in (("train", "train"), ("dev", "dev"), ("test", "dev")):
            text = (tmp_path / f"{source}.conllu").read_text(encoding="utf-8")
            (tmp_path / "all" / f"{treebank}{part}.conllu").write_text(text, encoding="utf-8")
    return tmp_path / "all"


def test_parts_of_treebanks(treebanks: Path, tmp_path: Path) -> None:
    def sent_ids(path: object) -> list[str | None]:
        return [sentence.sent_id for sentence in load_treebank([str(path)])]

    treebank = Parts(TREEBANKS["Latin"].files, slice(-4), slice(-4, None), "train")
    files = files_of(treebank, treebanks, tmp_path / "parts")
    assert sent_ids(files["data.train"]) == [f"1-{number}" for number in range(36)]
    assert sent_ids(files["data.dev"]) == [f"1-{number}" for number in range(36, 40)]
    every_fifth = files_of(TREEBANKS["EWT-100"], treebanks, tmp_path / "parts")["data.dev"]
    assert sent_ids(every_fifth) == ["2-0", "2-5", "2-10"]
    assert files_of(TREEBANKS["Latin, no dev set"], treebanks, tmp_path)["data.dev"] == "null"


@pytest.mark.parametrize("treebank", ["Turkish", "Latin, no dev set"])
def test_runs_are_made_once(
    treebank: str, treebanks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    short = {"optimization.epochs": 1, "model.encoder.hidden_size": 8, "model.encoder.layers": 1, "model.arc_size": 8}
    monkeypatch.setattr(
        experiment_default, "settings_of", lambda name: {"default": ("default", short), "by hand": ("fast", short)}
    )
    output = tmp_path / "runs.jsonl"
    arguments = [treebank, "--treebanks", str(treebanks), "--output", str(output), "--work", str(tmp_path / "work")]
    experiment_default.main(arguments)
    first = output.read_bytes()
    records = [json.loads(line) for line in first.splitlines()]
    assert [(record["treebank"], record["setting"]) for record in records] == [
        (treebank, "default"),
        (treebank, "by hand"),
    ]
    assert all((record["dev_las"] is None) == ("no dev set" in treebank) for record in records)
    shown = capsys.readouterr().out
    experiment_default.main(arguments)
    assert output.read_bytes() == first
    again = capsys.readouterr().out
    assert "epoch" in shown and "epoch" not in again
    for record in records:
        assert f"| {treebank} | {record['setting']} | {100 * record['uas']:.2f} | {100 * record['las']:.2f} |" in again
