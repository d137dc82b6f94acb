"""What the README and the docstrings of packages show is run as it stands there."""

import importlib
import pydoc
import re
import shlex
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
import yaml
from helpers.commands import Capture
from helpers.docstrings import block_after
from helpers.parsers import parser_encoder
from helpers.sentences import learnable_sentences

import treeparse
from treeparse import objectives, trees
from treeparse.cli import main as cli
from treeparse.data import load_treebank
from treeparse.model import Parser, ParserConfig
from treeparse.nn import BiLSTMConfig
from treeparse.training import load_config, train


def lines_of(block: str) -> int:
    return len([line for line in block.split("\n") if line.strip()])


def with_settings(path: Path, **changes: object) -> Path:
    """A config file with other settings of some sections."""
    settings = yaml.safe_load(path.read_text(encoding="utf-8"))
    for name, value in changes.items():
        settings[name] = {**settings[name], **value} if isinstance(value, dict) and name != "objective" else value
    path.write_text(yaml.safe_dump(settings), encoding="utf-8")
    return path


def best_uas(run: Path) -> float:
    header, *rows = ((run / "metrics.csv").read_text(encoding="utf-8")).splitlines()
    return max(float(row.split(",")[header.split(",").index("dev_uas")]) for row in rows)


PACKAGES = sorted(path.parent for path in Path(treeparse.__path__[0]).rglob("__init__.py"))


@pytest.mark.parametrize("folder", PACKAGES, ids=lambda folder: folder.name)
def test_help_lists_what_a_package_has(folder: Path) -> None:
    """Names that load at their first use as well."""
    module = importlib.import_module(".".join(folder.relative_to(PACKAGES[0].parent).parts))
    shown = pydoc.plain(pydoc.render_doc(module))
    for name in getattr(module, "__all__", ()):
        assert re.search(rf"^ +(class {name}\b|{name}\(|{name} = |{name}: )", shown, re.MULTILINE), name


LEARNING = {"optimization.epochs": 8, "optimization.learning_rate": 0.02}
OPTIONS = [f"--{key}={value}" for key, value in LEARNING.items()]


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The file ``mine.py`` of the text, in a folder from which it is imported."""
    sentences = "A custom objective is a subclass of", "A custom cost of whole trees"
    blocks = [block_after(objectives.__doc__, sentence) for sentence in sentences]
    assert all(lines_of(block) <= 20 for block in blocks)
    path = tmp_path / "mine.py"
    path.write_text("\n".join(blocks), encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    yield path
    sys.modules.pop("mine", None)  # other tests have other modules of that name


def test_an_objective_of_ones_own(mine: Path, tiny_config: Path) -> None:
    objective = {"class_path": "mine.Decisive", "init_args": {"weight": 0.5}}
    run = train(load_config(with_settings(tiny_config, objective=objective), OPTIONS), quiet=True).parent
    assert best_uas(run) > 0.8


def test_a_cost_of_ones_own(mine: Path, tiny_config: Path, tmp_path: Path) -> None:
    """The trees that are drawn get the gold root, which is all that costs."""
    objective = {"class_path": "mine.WrongRoot", "init_args": {"samples": 4}}
    model = train(load_config(with_settings(tiny_config, objective=objective), OPTIONS), quiet=True)
    gold = [sentence.words for sentence in load_treebank(tmp_path / "dev.conllu")]
    parses = treeparse.Parser.from_pretrained(model).parse(gold)
    right = [parse.heads.index(0) == (s.heads or ()).index(0) for parse, s in zip(parses, gold, strict=True)]
    assert sum(right) > 0.8 * len(right)


def test_a_constraint(tiny_config: Path, tmp_path: Path) -> None:
    """As it is written, for the tags of a treebank that has others."""
    entry = block_after(objectives.__doc__, "A constraint is an entry of a file")
    path = tmp_path / "constraints.yaml"
    path.write_text(entry.replace("DET", "ADJ"), encoding="utf-8")
    objective = {"class_path": "treeparse.objectives.GeneralizedExpectation", "init_args": {"constraints": str(path)}}
    run = train(load_config(with_settings(tiny_config, objective=objective), OPTIONS), quiet=True).parent
    header, *rows = (run / "metrics.csv").read_text(encoding="utf-8").splitlines()
    losses = [float(row.split(",")[header.split(",").index("loss")]) for row in rows]
    assert losses[-1] < losses[0] / 4


def test_a_latent_tree_in_a_model_of_ones_own() -> None:
    """Learned from the loss of a task that needs the tree: each word is to know the key of the word it hangs from."""
    block = block_after(trees.__doc__, "A custom model can learn a latent tree")
    assert lines_of(block) <= 15
    names: dict[str, type[torch.nn.Module]] = {}
    exec(block, {"torch": torch, "NonProjectiveCRF": treeparse.NonProjectiveCRF}, names)
    torch.manual_seed(1)
    words, size = 5, 12
    layer, readout = names["HeadAttention"](size), torch.nn.Linear(size, 4)
    lengths = torch.full((32,), words)
    optimizer = torch.optim.Adam([*layer.parameters(), *readout.parameters()], lr=0.02)
    losses = []
    for _ in range(150):
        # Word j hangs from word j - 1, the first from the root: places are in the vectors, and so are keys.
        keys = torch.randint(4, (32, words + 1))
        places = torch.eye(words + 1).expand(32, -1, -1)
        vectors = torch.cat([places, torch.nn.functional.one_hot(keys, 4), torch.zeros(32, words + 1, 2)], -1)
        found = readout(layer(vectors, lengths))[:, 1:]
        loss = torch.nn.functional.cross_entropy(found.flatten(0, 1), keys[:, :-1].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert sum(losses[-10:]) < 0.6 * sum(losses[:10])
    layer.eval()
    assert torch.isfinite(layer(torch.randn(32, words + 1, size), lengths)).all()


ROOT = Path(__file__).parents[1]
ENCODERS = (ROOT / "scripts" / "guide" / "pages" / "howto" / "encoder.md").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")


def readme_blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.DOTALL | re.MULTILINE)


def readme_commands() -> list[list[str]]:
    lines = [line for block in readme_blocks("sh") for line in block.splitlines()]
    pieces = [shlex.split(piece, comments=True) for line in lines for piece in line.split(" | ")]
    return [piece for piece in pieces if piece[:1] == ["treeparse"]]


def test_the_commands_parse() -> None:
    found = readme_commands()
    assert {"train", "evaluate", "predict", "check"} <= {command[1] for command in found}
    modules = cli._commands(cli.COMMANDS)
    parser = cli._build_parser(modules)
    for command in found:
        args = cli._parse(parser, modules, command[1:])
        assert args.command == command[1]


def test_the_readme_fits_on_two_pages() -> None:
    assert len(README.splitlines()) <= 120


def test_the_python_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    torch.manual_seed(1)
    encoder = BiLSTMConfig(word_size=4, char_size=4, char_filters=4, hidden_size=4, layers=1, min_count=1)
    parser = Parser.build(ParserConfig(encoder=encoder, arc_size=4, label_size=4), learnable_sentences(10, seed=1))
    parser.save_pretrained(tmp_path / "model")
    monkeypatch.chdir(ROOT)
    parsing, library = readme_blocks("python")
    exec(library, {})
    exec(parsing.replace("runs/mine", str(tmp_path / "model")), {})
    assert len(capsys.readouterr().out.splitlines()) == 1


def test_the_encoder_of_the_guide_trains_and_its_model_parses(
    tiny_config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
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
