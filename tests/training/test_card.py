"""A model's card tells what its run knows, and no folder's name."""

import json
import re
from pathlib import Path

import pytest
import yaml
from helpers.commands import Capture

from treeparse.cli.main import main
from treeparse.training import load_config, train
from treeparse.training.release import Provenance, licence_tag
from treeparse.training.run_directory import RunDirectory, best_record

README = "# Summary\n\n=== Machine-readable metadata ====\nData available since: UD v1.0\nLicense: CC BY-SA 4.0\n"


@pytest.fixture
def run(tiny_config: Path, tmp_path: Path) -> Path:
    """A run on a treebank of a UD release, with its licence."""
    folder = tmp_path / "ud-treebanks-v2.17" / "UD_English-EWT"
    folder.mkdir(parents=True)
    (tmp_path / "train.conllu").rename(folder / "en_ewt-ud-train.conllu")
    (folder / "README.md").write_text(README, encoding="utf-8")
    train(load_config(tiny_config, [f"--data.train={folder}/*.conllu", "--optimization.epochs=1"]), quiet=True)
    return tmp_path / "run"


def front_matter(card: str) -> dict[str, object]:
    _, head, _ = card.split("---\n", 2)
    return yaml.safe_load(head)


def test_the_card_of_a_run(run: Path, tmp_path: Path, capsys: Capture) -> None:
    card = (run / "model" / "README.md").read_text(encoding="utf-8")
    assert front_matter(card) == {
        "library_name": "treeparse",
        "tags": ["dependency-parsing", "treeparse"],
        "language": ["en"],
        "license": "cc-by-sa-4.0",
    }
    best = best_record(RunDirectory(run).read_history())
    assert f"| {100 * (best.dev_uas or 0):.2f} | {100 * (best.dev_las or 0):.2f} |" in card
    assert "en_ewt-ud-train.conllu (40 sentences, " in card and "Universal Dependencies 2.17" in card
    assert str(tmp_path) not in card
    [shown] = re.findall(r"```yaml\n(.*?)```", card, re.DOTALL)
    own = yaml.safe_load((run / "config.yaml").read_text(encoding="utf-8"))
    own["data"] |= {"train": "*.conllu", "dev": "dev.conllu"}
    assert yaml.safe_load(shown) == own | {"output": "run"}

    assert main(["card", str(run), str(tmp_path / "dev.conllu"), "--model-name", "mine"]) == 0
    assert capsys.readouterr().err == f"card: {run / 'model' / 'README.md'}\n"
    scores = tmp_path / "scores.json"
    evaluate = ["evaluate", "--model", str(run), str(tmp_path / "dev.conllu"), "--output", str(scores), "-q"]
    assert main(evaluate) == 0
    [system] = json.loads(scores.read_text(encoding="utf-8"))["systems"]
    row = " | ".join(f"{100 * system['scores'][name]:.2f}" for name in ("uas", "las", "clas", "complete_match"))
    card = (run / "model" / "README.md").read_text(encoding="utf-8")
    assert f"| dev.conllu | 12 | {row} |\n" in card and "\n# mine\n" in card


def treebank(*sentences: list[str]) -> str:
    """CoNLL-U in which every word hangs from the first."""
    return "".join(
        "".join(
            f"{word}\t{form}\t_\tX\t_\t_\t{int(word > 1)}\t{'dep' if word > 1 else 'root'}\t_\t_\n"
            for word, form in enumerate(forms, 1)
        )
        + "\n"
        for forms in sentences
    )


def run_example(model: Path, output: Capture) -> str:
    """Run the Python of a model's card, which prints a line a sentence, and return the program."""
    [program] = re.findall(r"```python\n(.*?)```", (model / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    output.readouterr()
    exec(program.replace("THIS FOLDER", str(model)), {})
    assert len(output.readouterr().out.splitlines()) == 1
    return program


COMMON, PRIVATE = ["Ne", "var", "ne", "yok", "?"], ["Ayşe", "dün", "istifa", "etti", "."]


def test_the_example_is_an_everyday_sentence_of_the_treebank(
    tiny_config: Path, tmp_path: Path, capsys: Capture
) -> None:
    (tmp_path / "train.conllu").write_text(treebank(PRIVATE, *[COMMON] * 10, PRIVATE), encoding="utf-8")
    train(load_config(tiny_config, ["--optimization.epochs=1"]), quiet=True)
    program = run_example(tmp_path / "run" / "model", capsys)
    assert json.dumps(COMMON, ensure_ascii=False) in program and "Ayşe" not in program


@pytest.mark.parametrize("options", [[], ["--model.encoder.tags=[upos]", "--model.encoder.tag_size=4"]])
def test_the_example_reads_a_file_where_no_sentence_will_do(
    options: list[str], tiny_config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    """None is common enough, or the model reads tags."""
    sentences = [COMMON] * (10 if options else 9)
    (tmp_path / "train.conllu").write_text(treebank(PRIVATE, *sentences), encoding="utf-8")
    train(load_config(tiny_config, ["--optimization.epochs=1", *options]), quiet=True)
    monkeypatch.chdir(tmp_path)
    Path("my-text.conllu").write_text(treebank(PRIVATE), encoding="utf-8")
    program = run_example(tmp_path / "run" / "model", capsys)
    assert "Ne" not in program and "Ayşe" not in program


def test_what_is_not_known_is_not_told(finished_run: Path) -> None:
    card = finished_run / "model" / "README.md"
    assert "Licence of the treebanks: not known" in card.read_text(encoding="utf-8")
    (finished_run / "origin.json").unlink()
    assert main(["card", str(finished_run), "-q"]) == 0
    text = card.read_text(encoding="utf-8")
    assert front_matter(text).keys() == {"library_name", "tags"}
    assert "Machine" not in text and "Time: " in text and "config.yaml" in text


def test_a_resumed_run_keeps_its_provenance(finished_run: Path) -> None:
    origin = finished_run / "origin.json"
    first = json.loads(origin.read_text(encoding="utf-8"))
    origin.write_text(json.dumps(first | {"device": "another machine"}), encoding="utf-8")
    train(load_config(finished_run / "config.yaml"), resume=True, quiet=True)
    provenance = Provenance.read(RunDirectory(finished_run))
    assert provenance is not None and provenance.device == "another machine" and provenance.sentences == 40


def test_licences_have_tags() -> None:
    licences = {"CC BY-SA 4.0": "cc-by-sa-4.0", "CC-BY-NC-SA-2.5": "cc-by-nc-sa-2.5", "GNU GPL 3.0": None}
    assert {licence: licence_tag(licence) for licence in licences} == licences
