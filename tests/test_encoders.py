"""Encoders by their settings: one that reads other features than the BiLSTM, and classes of users' own."""

import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import own_encoder
import pytest
import torch
import yaml
from helpers.commands import Capture
from helpers.parsers import parser_encoder
from helpers.sentences import learnable_sentences
from torch import Tensor, nn

import treeparse
from treeparse.batch import Batch
from treeparse.cli.main import main
from treeparse.data.features.vector_files import WordVectors
from treeparse.data.features.words import Features, LexicalFeatures
from treeparse.errors import TreeparseError
from treeparse.model import Parser, ParserConfig
from treeparse.nn import BiLSTMConfig, Encoder, EncoderConfig
from treeparse.nn.encoder_config import Learner
from treeparse.sentence import Sentence
from treeparse.training import load_config, train

PACKAGE = Path(treeparse.__file__).parent
TRAIN = learnable_sentences(30, seed=1)
WINDOWS = "own_encoder.WindowsConfig"
LENGTHS = f"{__name__}.LengthConfig"


def own(**settings: Any) -> ParserConfig:
    return ParserConfig(own_encoder.WindowsConfig(**settings), arc_size=8, label_size=8)


def written(path: Path, **values: object) -> Path:
    settings = {"output": "runs/x", "data": {"train": "a.conllu"}, **values}
    path.write_text(yaml.safe_dump(settings), encoding="utf-8")
    return path


def test_only_its_own_files_know_the_bilstm() -> None:
    naming = {path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py") if re.search("BiLSTM", path.read_text())}
    files = ("nn/__init__.py", "nn/bilstm.py")
    over = ("nn/transformer.py",)  # which may have one on top
    chosen = ("model/parser_config.py", "model/settings.py", "training/reading.py")  # by default
    assert naming == {*map(Path, (*files, *over, *chosen))}


# An encoder that reads no words at all, but their lengths, and has weights that come from elsewhere.


class Lengths(Features):
    def __init__(self, longest: int) -> None:
        self.longest = longest

    def __call__(self, sentences: Sequence[Sentence]) -> dict[str, Tensor]:
        rows = [torch.tensor([0, *(min(len(form), self.longest) for form in s.forms)]) for s in sentences]
        return {"lengths": nn.utils.rnn.pad_sequence(rows, batch_first=True)}

    def extended(self, sentences: Sequence[Sentence], *, min_count: int = 2) -> Self:
        return self

    def to_json(self) -> dict[str, Any]:
        return {"longest": self.longest}


class LengthEncoder(Encoder):
    def __init__(self, longest: int) -> None:
        super().__init__()
        self.table = nn.Embedding(longest + 1, 4)
        self.output_size = 4

    def forward(self, batch: Batch) -> Tensor:
        return self.table(batch.features["lengths"])


@dataclass(frozen=True)
class LengthConfig(EncoderConfig):
    longest: int = 5
    revision: str = ""

    def start(
        self, sentences: Sequence[Sentence], vectors: WordVectors | None = None
    ) -> tuple[Self, Features, Callable[[Learner], None]]:
        def initialise(module: Learner) -> None:
            nn.init.constant_(module.get_parameter("table.weight"), 7.0)

        return replace(self, revision="abc"), Lengths(self.longest), initialise

    def restored(self, data: dict[str, Any]) -> Lengths:
        return Lengths(data["longest"])

    def module(self, features: Features) -> LengthEncoder:
        assert isinstance(features, Lengths)
        return LengthEncoder(features.longest)

    def continuing(self, earlier: "LengthConfig") -> Self:
        return replace(self, revision=earlier.revision)

    def shaping(self) -> Mapping[str, Any]:
        return {"longest": self.longest}


def test_an_encoder_of_another_sort(tmp_path: Path) -> None:
    encoder = {"class_path": LENGTHS, "init_args": {"longest": 3}}
    config = load_config(written(tmp_path / "c.yaml", model={"encoder": encoder}))
    assert config.model.encoder == LengthConfig(longest=3)
    parser = Parser.build(config.model, TRAIN)
    assert parser.config.encoder == LengthConfig(longest=3, revision="abc")  # completed by what was built
    table = parser.get_parameter("scorer.encoder.table.weight")
    assert table.shape == (4, 4) and (table == 7).all()
    nn.init.constant_(table, 8.0)
    parser.save_pretrained(tmp_path / "model")
    loaded = Parser.from_pretrained(tmp_path / "model")
    assert loaded.config == parser.config and (loaded.get_parameter("scorer.encoder.table.weight") == 8).all()
    assert loaded.parse(TRAIN) == parser.eval().parse(TRAIN)


def test_an_encoder_of_another_sort_trains(tiny_config: Path) -> None:
    """Over the settings of the file, which are a BiLSTM's: they are left out."""
    model = train(load_config(tiny_config, ["--model.encoder", LENGTHS, "--optimization.epochs=1"]), quiet=True)
    assert json.loads((model / "config.json").read_bytes())["encoder"]["class_path"] == LENGTHS
    more = [f"--model.encoder={LENGTHS}", "--optimization.epochs=1", "--init_from", str(model)]
    again = train(load_config(tiny_config, [*more, "--output", str(model.parent.parent / "more")]), quiet=True)
    assert len(Parser.from_pretrained(again).parse([["a", "bb"]])) == 1
    assert Parser.from_pretrained(again).config.encoder == LengthConfig(revision="abc")
    with pytest.raises(TreeparseError, match="its encoder is LengthConfig there and BiLSTMConfig here"):
        train(load_config(tiny_config, ["--init_from", str(model), "--output", "other"]), quiet=True)


def test_an_option_names_another_encoder_than_the_file(tmp_path: Path) -> None:
    path = written(tmp_path / "c.yaml", model={"arc_size": 9, "encoder": {"hidden_size": 7, "layers": 3}})
    for options in ([f"--model.encoder={LENGTHS}"], ["--model.encoder", f"{{class_path: {LENGTHS}}}"]):
        model = load_config(path, options).model
        assert (model.encoder, model.arc_size) == (LengthConfig(), 9)
    assert load_config(path, ["--model.encoder.layers=2"]).model.encoder == BiLSTMConfig(hidden_size=7, layers=2)
    assert load_config(path, ["--model.encoder=BiLSTMConfig"]).model.encoder == BiLSTMConfig()
    with pytest.raises(TreeparseError, match="longst"):
        load_config(path, [f"--model.encoder={LENGTHS}", "--model.encoder.longst=3"])


def test_there_is_no_such_encoder(tmp_path: Path) -> None:
    with pytest.raises(TreeparseError, match="bilst"):
        load_config(written(tmp_path / "c.yaml"), ["--model.encoder", "bilst"])
    with pytest.raises(TreeparseError, match=r"model\.encoder"):
        load_config(written(tmp_path / "c.yaml", model={"encoder": {"class_path": 7}}))


# Classes of users' own.


def test_an_encoder_of_ones_own_is_built_saved_and_loaded(tmp_path: Path) -> None:
    torch.manual_seed(1)
    parser = Parser.build(own(size=6, min_count=1), TRAIN).eval()
    assert isinstance(parser_encoder(parser), own_encoder.Windows)
    for parameter in parser.parameters():
        nn.init.normal_(parameter)
    parser.save_pretrained(tmp_path / "model")
    saved = json.loads((tmp_path / "model" / "config.json").read_bytes())["encoder"]
    settings = {"size": 6, "width": 3, "layers": 2, "min_count": 1}  # defaults too, which may be others later
    assert saved == {"class_path": WINDOWS, "init_args": settings}
    loaded = Parser.from_pretrained(tmp_path / "model")
    assert loaded.config == parser.config and loaded.parse(TRAIN) == parser.parse(TRAIN)


def test_no_word_of_the_example_sees_padding() -> None:
    parser = Parser.build(own(min_count=1), TRAIN).eval()
    alone, longer = TRAIN[0], max(TRAIN, key=len)
    assert len(longer) > len(alone)
    with torch.inference_mode():
        [expected], both = (parser_encoder(parser)(parser.collate(batch)) for batch in ([alone], [alone, longer]))
    torch.testing.assert_close(both[0, : len(alone) + 1], expected)


@pytest.fixture
def trained(tiny_config: Path) -> Path:
    options = ["--model.encoder", WINDOWS, "--model.encoder.size=16", "--optimization.epochs=1"]
    assert main(["train", "--config", str(tiny_config), "-q", *options, "--model.encoder.min_count", "1"]) == 0
    return tiny_config.parent / "run"


def test_a_model_is_loaded_where_its_class_was_imported(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    text, out = tmp_path / "dev.conllu", tmp_path / "parsed.conllu"
    expected = Parser.from_pretrained(trained).parse([["noun1", "verb2"]])
    monkeypatch.delitem(sys.modules, "own_encoder")
    with pytest.raises(
        TreeparseError, match=r"config.json, encoder: .*'own_encoder.WindowsConfig'.* --import own_encoder"
    ):
        Parser.from_pretrained(trained)
    assert "own_encoder" not in sys.modules
    commands: list[list[str]] = [
        ["predict", str(trained), str(text), "-o", str(out)],
        ["kbest", str(trained), str(text), "-k", "2", "-o", str(out)],
        ["sample", str(trained), str(text), "-k", "2", "-o", str(out)],
        ["evaluate", "--model", str(trained), str(text)],
        ["export", str(trained), "-o", str(tmp_path / "copy")],
    ]
    for command in commands:
        assert main([*command, "-q"]) == 2
        assert "--import own_encoder." in capsys.readouterr().err
    for command in commands:
        assert main([*command, "-q", "--import", "own_encoder"]) == 0
    assert Parser.from_pretrained(tmp_path / "copy").parse([["noun1", "verb2"]]) == expected
    assert main(["predict", str(trained), str(text), "--import", "no_such_module"]) == 2
    assert "The module 'no_such_module' cannot be imported (ModuleNotFoundError" in capsys.readouterr().err


def test_a_run_of_ones_own_encoder_goes_on_and_another_starts_from_it(trained: Path, tmp_path: Path) -> None:
    assert yaml.safe_load((trained / "config.yaml").read_text())["model"]["encoder"]["class_path"] == WINDOWS
    assert main(["train", "--resume", str(trained), "-q"]) == 0
    file, encoder = str(tmp_path / "config.yaml"), ["--model.encoder", WINDOWS]
    more = ["train", "--config", file, "-q", "--output", str(tmp_path / "more"), "--init-from", str(trained), *encoder]
    treebank = tmp_path / "train.conllu"
    treebank.write_text(treebank.read_text().replace("adj1", "zebra"), encoding="utf-8")
    options = ["--model.encoder.size=16", "--model.encoder.min_count=1"]
    assert main([*more, *options, "--optimization.epochs=1"]) == 0
    features = Parser.from_pretrained(tmp_path / "more").indexer.features
    assert isinstance(features, LexicalFeatures) and {"adj1", "zebra"} <= {*features.words.items}
    with pytest.raises(TreeparseError, match=r"model.encoder.size is 16 there and 64 here"):
        config = load_config(file, [*encoder, "--init_from", str(trained), "--output", str(tmp_path / "other")])
        train(config, quiet=True)


def test_the_settings_of_ones_own_encoder(tmp_path: Path, capsys: Capture) -> None:
    path = written(tmp_path / "c.yaml", model={"encoder": {"class_path": WINDOWS, "init_args": {"size": 5}}})
    assert load_config(path).model.encoder == own_encoder.WindowsConfig(size=5)
    config = load_config(path, ["--model.encoder.width=5"])
    assert config.model.encoder == own_encoder.WindowsConfig(size=5, width=5)
    (tmp_path / "again.yaml").write_text(config.to_yaml(), encoding="utf-8")
    assert load_config(tmp_path / "again.yaml") == config
    with pytest.raises(SystemExit):
        load_config(path, ["--model.encoder.help", WINDOWS])
    text = capsys.readouterr().out
    assert "--model.encoder.width " in text and "hidden_size" not in text


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([".sise=3"], "sise"),
        ([".size=big"], "(?s)model.encoder.*size.*int.*big"),
        ([".features=3"], "features"),
        (["=own_encoder.Doors"], "own_encoder.Doors"),
        (["=torch.nn.Linear"], "torch.nn.Linear"),
        (["=no_such.Thing"], "no_such"),
        (["=own_encoder.Windows"], "own_encoder.Windows"),
    ],
)
def test_faults_of_ones_own_encoder_are_named(tmp_path: Path, options: list[str], words: str) -> None:
    path = written(tmp_path / "c.yaml", model={"encoder": {"class_path": WINDOWS}})
    with pytest.raises(TreeparseError, match=words):
        load_config(path, [f"--model.encoder{option}" for option in options])


def test_classes_that_no_model_can_have(tmp_path: Path) -> None:
    @dataclass(frozen=True)
    class Inner(own_encoder.WindowsConfig):
        pass

    with pytest.raises(TreeparseError, match=r"Inner must be a class at the top of a module, because"):
        Parser.build(ParserConfig(Inner()), TRAIN).save_pretrained(tmp_path / "model")
    with pytest.raises(TreeparseError, match="Windows reads no pretrained vectors"):
        Parser.build(own(), TRAIN, WordVectors(("a",), torch.ones(1, 2)))


def test_tags_and_counts_are_settings_by_their_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = (
        "from dataclasses import dataclass\nfrom torch import nn\nfrom treeparse.nn import Encoder, EncoderConfig\n"
        "class Tagged(Encoder):\n"
        "    def __init__(self, tag, count):\n"
        "        super().__init__()\n"
        "        self.output_size = 4\n"
        "        self.table = nn.Embedding(count, 4)\n"
        "        self.tag = tag\n"
        "    def forward(self, batch):\n"
        "        return self.table(batch.features[self.tag])\n"
        "@dataclass(frozen=True)\n"
        "class TaggedConfig(EncoderConfig):\n"
        "    tags: tuple[str, ...] = ()\n"
        "    min_count: int = 2\n"
        "    def module(self, features):\n"
        "        return Tagged(self.tags[0], features.sizes()[self.tags[0]])\n"
    )
    (tmp_path / "tagged_encoder.py").write_text(module, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    path = written(tmp_path / "c.yaml", model={"encoder": {"class_path": "tagged_encoder.TaggedConfig"}})
    config = load_config(path, ["--model.encoder.tags", "[upos]"]).model
    sentences = [Sentence(("a",), upos=("X",), heads=(0,), labels=("root",))]
    parser = Parser.build(config, sentences)
    assert config.encoder.name == "Tagged"
    with pytest.raises(TreeparseError, match="The model reads UPOS"):
        parser.parse([["a"]])
    assert len(parser.parse(sentences)) == 1
