"""Scorers by their settings: a custom scorer is one file, named by its path; a config that names none is biaffine."""

import json
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pytest
import torch
import yaml
from helpers.commands import Capture
from helpers.parsers import CONFIG, TRAINING, random_parser

import treeparse
from treeparse.cli.main import main
from treeparse.errors import TreeparseError
from treeparse.model import Parser, ParserConfig
from treeparse.training import load_config, train

PACKAGE = Path(treeparse.__file__).parent
CUSTOM = '''
"""Scores of arcs by the distance between two words and of labels by the head, over any encoder."""

from dataclasses import dataclass

import torch
from torch import nn

from treeparse.model import EncoderScorer, ScorerConfig, ScorerOutput
from treeparse.nn import TagScorer


class Distances(EncoderScorer):
    def __init__(self, encoder, indexer, size, farthest):
        super().__init__(encoder)
        self.farthest = farthest
        self.heads, self.dependents = (nn.Linear(encoder.output_size, size) for _ in range(2))
        self.distances = nn.Embedding(2 * farthest + 1, 1)
        self.labels = nn.Linear(encoder.output_size, len(indexer.label_names))
        self.tags = TagScorer(encoder.output_size, {name: tags.items for name, tags in indexer.tags.items()})

    def forward(self, batch):
        nodes = self.encoder(batch)  # (B, n+1, encoder.output_size)
        places = torch.arange(nodes.shape[1], device=nodes.device)
        distances = (places - places.unsqueeze(-1)).clamp(-self.farthest, self.farthest) + self.farthest
        arcs = self.heads(nodes) @ self.dependents(nodes).mT + self.distances(distances).squeeze(-1)
        labels = self.labels(nodes).unsqueeze(2) + self.labels(nodes).unsqueeze(1)
        return ScorerOutput(arcs, labels, self.tags(nodes))


@dataclass(frozen=True)
class DistancesConfig(ScorerConfig):
    size: int = 8
    farthest: int = 5

    def module(self, config, indexer):
        return Distances(config.encoder.module(indexer.features), indexer, self.size, self.farthest)
'''
PATH = "my_scorer.DistancesConfig"


@pytest.fixture
def custom(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The custom scorer as a module that can be imported."""
    (tmp_path / "my_scorer.py").write_text(CUSTOM, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    yield PATH
    sys.modules.pop("my_scorer", None)


def test_only_its_own_files_know_the_biaffine_scorer() -> None:
    naming = {path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py") if re.search("Biaffine", path.read_text())}
    layers = {"nn/__init__.py", "nn/biaffine.py", "nn/int8.py", "cli/commands/warm.py"}
    own = {"model/parser_config.py", "model/settings.py", "model/biaffine_scorer.py"}
    assert naming == {*map(Path, layers | own)}


def test_a_custom_scorer_trains_and_its_model_parses(
    custom: str, tiny_config: Path, tmp_path: Path, capsys: Capture
) -> None:
    options = ["--model.scorer", custom, "--model.scorer.size=16", "--model.tags.upos=1", "--optimization.epochs=1"]
    run, words = tmp_path / "run", str(tmp_path / "dev.conllu")
    assert main(["train", "--config", str(tiny_config), "-q", *options]) == 0
    saved = json.loads((run / "model" / "config.json").read_bytes())
    assert saved["scorer"] == {"class_path": custom, "init_args": {"size": 16, "farthest": 5}}
    settings = yaml.safe_load((run / "config.yaml").read_text(encoding="utf-8"))["model"]["scorer"]
    assert settings == saved["scorer"]
    assert main(["train", "--resume", str(run), "-q"]) == 0
    model = Parser.from_pretrained(run)
    expected = model.parse([["noun1", "verb2"]])
    assert expected[0].labels[expected[0].heads.index(0)] == "root" and expected[0].upos is not None
    sys.modules.pop("my_scorer")
    with pytest.raises(
        TreeparseError, match=r"config.json, scorer: the module of 'my_scorer.DistancesConfig'.*--import my_sco"
    ):
        Parser.from_pretrained(run)
    capsys.readouterr()
    assert main(["predict", str(run), words, "-q", "--import", "my_scorer"]) == 0
    assert capsys.readouterr().out.count("\n\n") == 12


def test_a_training_starts_from_a_model_of_the_same_scorer(custom: str, tiny_config: Path, tmp_path: Path) -> None:
    options = ["--model.scorer", custom, "--optimization.epochs=1"]
    model = train(load_config(tiny_config, options), quiet=True)
    more = [f"--init_from={model}", "--optimization.epochs=1"]
    again = train(load_config(tiny_config, [*options, *more, f"--output={tmp_path / 'more'}"]), quiet=True)
    assert Parser.from_pretrained(again).config.scorer == Parser.from_pretrained(model).config.scorer
    other = [*more, f"--output={tmp_path / 'other'}"]
    with pytest.raises(TreeparseError, match="its scorer is DistancesConfig there and BiaffineConfig here"):
        train(load_config(tiny_config, other), quiet=True)
    with pytest.raises(TreeparseError, match=r"model.scorer.farthest is 5 there and 3 here"):
        train(load_config(tiny_config, [*options, *other, "--model.scorer.farthest=3"]), quiet=True)


def test_the_distribution_of_a_custom_scorer_is_that_of_its_scores(custom: str) -> None:
    config = custom_config(custom)
    parser = Parser.build(config, TRAINING).double().eval()
    batch = parser.collate(TRAINING[:3])
    with torch.no_grad():
        p, scores = parser.distribution(batch), parser.scorer(batch)
    assert isinstance(scores.labels, torch.Tensor) and isinstance(p.label_scores, torch.Tensor)
    root = parser.indexer.root_label
    labels = scores.labels.clone()
    labels[:, 0, :, [each for each in range(labels.shape[-1]) if each != root]] = -torch.inf
    labels[:, 1:, :, root] = -torch.inf
    words = batch.word_mask().unsqueeze(1).expand_as(scores.arcs)
    torch.testing.assert_close(p.label_scores[words], labels.log_softmax(-1)[words])
    torch.testing.assert_close(p.base.scores[words], scores.arcs[words])


def custom_config(path: str) -> ParserConfig:
    """The small config with the custom scorer."""
    module, _, name = path.rpartition(".")
    return replace(CONFIG, scorer=getattr(import_module(module), name)())


@pytest.mark.parametrize("name", ["my_scorer.Missing", "Nothing", "my_scorer.Distances"])
def test_a_scorer_that_does_not_exist_is_a_sentence(custom: str, name: str, tiny_config: Path) -> None:
    with pytest.raises(TreeparseError, match=name):
        load_config(tiny_config, [f"--model.scorer={name}"])


def test_settings_of_a_custom_scorer_are_listed(custom: str, tiny_config: Path, capsys: Capture) -> None:
    with pytest.raises(SystemExit):
        load_config(tiny_config, ["--model.scorer.help", custom])
    assert "--model.scorer.farthest " in capsys.readouterr().out


def test_a_model_of_an_unknown_scorer_is_refused(tmp_path: Path) -> None:
    random_parser().save_pretrained(tmp_path / "model")
    path = tmp_path / "model" / "config.json"
    config = json.loads(path.read_bytes())
    assert config["scorer"] == {"class_path": "BiaffineConfig", "init_args": {}}
    path.write_text(json.dumps({**config, "scorer": {"class_path": "CubicConfig"}}), encoding="utf-8")
    with pytest.raises(TreeparseError, match="CubicConfig"):
        Parser.from_pretrained(tmp_path / "model")
