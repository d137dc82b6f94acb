"""What the README says to type works."""

import re
import shlex
import sys
import textwrap
from pathlib import Path

import pytest
import torch
import yaml
from helpers.parsers import parser_encoder
from helpers.sentences import learnable_sentences

from treeparse.cli import main as cli
from treeparse.model import Parser, ParserConfig
from treeparse.nn import BiLSTMConfig

ROOT = Path(__file__).parents[1]
ENCODERS = (ROOT / "scripts" / "guide" / "pages" / "howto" / "encoder.md").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.DOTALL | re.MULTILINE)


def commands() -> list[list[str]]:
    lines = [line for block in blocks("sh") for line in block.splitlines()]
    pieces = [shlex.split(piece, comments=True) for line in lines for piece in line.split(" | ")]
    return [piece for piece in pieces if piece[:1] == ["treeparse"]]


def test_the_commands_parse() -> None:
    found = commands()
    assert {"train", "evaluate", "predict", "check"} <= {command[1] for command in found}
    modules = cli._commands(cli.COMMANDS)
    parser = cli._build_parser(modules)
    for command in found:
        args = cli._parse(parser, modules, command[1:])
        assert args.command == command[1]


def test_the_readme_fits_on_two_pages() -> None:
    assert len(README.splitlines()) <= 120


def test_the_python_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    torch.manual_seed(1)
    encoder = BiLSTMConfig(word_size=4, char_size=4, char_filters=4, hidden_size=4, layers=1, min_count=1)
    parser = Parser.build(ParserConfig(encoder=encoder, arc_size=4, label_size=4), learnable_sentences(10, seed=1))
    parser.save_pretrained(tmp_path / "model")
    monkeypatch.chdir(ROOT)
    parsing, library = blocks("python")
    exec(library, {})
    exec(parsing.replace("runs/mine", str(tmp_path / "model")), {})
    assert len(capsys.readouterr().out.splitlines()) == 1


def test_the_encoder_of_the_guide_trains_and_its_model_parses(
    tiny_config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    [block] = re.findall(r"<<'PYTHON'\n(.*?)^PYTHON$", ENCODERS, re.DOTALL | re.MULTILINE)
    assert len(block.splitlines()) <= 30
    (tmp_path / "mine.py").write_text(block, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    options = " ".join(re.findall(r"--model\.encoder\S* \S+", ENCODERS))
    config = yaml.safe_load(tiny_config.read_text(encoding="utf-8"))
    del config["model"]["encoder"]
    tiny_config.write_text(yaml.safe_dump(config), encoding="utf-8")
    try:
        assert cli.main(["train", "--quiet", "--config", str(tiny_config), *shlex.split(options)]) == 0
        imported = re.findall(r"--import \w+", ENCODERS)[0]
        run, words = str(tmp_path / "run"), str(tmp_path / "dev.conllu")
        capsys.readouterr()
        assert cli.main(["predict", run, words, *shlex.split(imported)]) == 0
        parsed = capsys.readouterr().out
        assert parser_encoder(Parser.from_pretrained(run)).output_size == 50
    finally:
        sys.modules.pop("mine", None)
    (tmp_path / "parsed.conllu").write_text(parsed, encoding="utf-8")
    assert parsed.count("\n\n") == 12
    assert cli.main(["check", str(tmp_path / "parsed.conllu")]) == 0


def test_the_line_on_distributions_runs() -> None:
    [line] = re.findall(r"`(parser\.distribution\(.*?\))` gives", README)
    parser = Parser.build(ParserConfig(arc_size=4, label_size=4), learnable_sentences(10, seed=1))
    distribution = eval(line, {"parser": parser, "sentences": [["They", "saw", "her"], ["Go"]]})
    assert distribution.log_partition.shape == (2,)


def test_the_line_on_annotation_runs() -> None:
    [line] = re.findall(r"`(parser\.annotate\(.*?\))` gives", README)
    sentences = learnable_sentences(10, seed=1)
    parser = Parser.build(ParserConfig(arc_size=4, label_size=4), sentences)
    annotated = list(eval(line, {"parser": parser, "sentences": sentences}))
    assert [sentence.forms for sentence in annotated] == [sentence.forms for sentence in sentences]
    assert [sentence.heads for sentence in annotated] == [parse.heads for parse in parser.parse(sentences)]


def test_the_example_of_the_guide_to_distributions_runs() -> None:
    import treeparse.trees

    [block] = re.findall(r"from samples::\n\n(.*?)\n\n", treeparse.trees.__doc__ or "", re.DOTALL)
    names = {**vars(treeparse.trees), "torch": torch, "lengths": torch.randint(5, 21, (32,))}
    exec(textwrap.dedent(block), names)
    methods = set(dir(treeparse.trees.NonProjectiveCRF)) | set(dir(treeparse.trees.LabeledCRF)) | set(names)
    [guide] = re.findall(r"Which method::\n\n(.*?)\n\n", treeparse.trees.__doc__ or "", re.DOTALL)
    named = set(re.findall(r"\b[a-z]+_[a-z_]+\b|\b(?:mode|topk|sample|entropy|tempered)\b", guide))
    assert len(named) >= 20 and named - {"kl_divergence"} <= methods
