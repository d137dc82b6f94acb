"""Characters, tags and adapters beside a transformer's vectors."""

import json
import pickle
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from helpers.broken_runs import break_off
from helpers.parsers import parser_encoder
from helpers.pretrained import bert_folder
from helpers.sentences import learnable_sentences
from safetensors.torch import load_file

from treeparse.batch import Batch
from treeparse.data.features.subwords import SpelledSubwords, SubwordFeatures
from treeparse.data.features.words import LexicalFeatures
from treeparse.errors import TreeparseError
from treeparse.model import Parser, ParserConfig
from treeparse.nn import TransformerConfig, TransformerEncoder
from treeparse.sentence import Sentence
from treeparse.training import load_config, train

TRAIN = [
    replace(sentence, upos=tuple("X" if len(form) < 4 else "NOUN" for form in sentence.forms))
    for sentence in learnable_sentences(12, seed=1)
]
BESIDE: dict[str, Any] = {"char_filters": 3, "char_size": 4, "char_widths": (1, 3), "tags": ("upos",), "tag_size": 5}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return bert_folder(tmp_path_factory.mktemp("bert"))


def built(folder: Path, **settings: Any) -> Parser:
    torch.manual_seed(2)
    encoder = TransformerConfig(model=str(folder), **settings)
    return Parser.build(ParserConfig(encoder, arc_size=8, label_size=8), TRAIN).eval()


def encoded(parser: Parser, batch: Batch) -> torch.Tensor:
    with torch.inference_mode():
        return parser_encoder(parser)(batch)


def test_they_stand_beside_the_pooled_subwords(folder: Path) -> None:
    """Character n-grams of all places, their maximum, by hand; the embedding of the tag; the subwords' as without."""
    parser, plain = built(folder, **BESIDE, window=16), built(folder, window=16)
    encoder = parser_encoder(parser)
    assert isinstance(encoder, TransformerEncoder) and encoder.output_size == 16 + 2 * 3 + 5
    assert encoder.characters is not None
    sentences = [*TRAIN[:3], replace(TRAIN[3], forms=tuple(f"{form}-{form}é" for form in TRAIN[3].forms))]
    batch = parser.collate(sentences)
    found, expected = encoded(parser, batch), encoded(plain, plain.collate(sentences))
    torch.testing.assert_close(found[:, 1:, :16], expected[:, 1:])
    table = encoder.get_parameter("tags.upos.weight")
    characters: Any = encoder.characters
    features = parser.indexer.features
    assert isinstance(features, SpelledSubwords)
    lexical = features.lexical
    for place, sentence in enumerate(sentences):
        assert sentence.upos is not None
        torch.testing.assert_close(found[place, 1, 22:], table[lexical.tags["upos"].index(sentence.upos[0])])
        ids = torch.tensor(lexical.characters.indices(["<begin>", *sentence.forms[1], "<end>"]))
        ids[0], ids[-1] = lexical.characters.special("<begin>"), lexical.characters.special("<end>")
        letters = characters.embedding.weight[ids].T.unsqueeze(0)
        parts = [
            torch.conv1d(letters, layer.weight, layer.bias, padding=layer.weight.shape[-1] // 2).amax(-1).relu()[0]
            for layer in characters.convolutions
        ]
        torch.testing.assert_close(found[place, 2, 16:22], torch.cat(parts))


def test_a_saved_model(folder: Path, tmp_path: Path) -> None:
    parser = built(folder, **BESIDE, hidden_size=4, min_count=1)
    parser.save_pretrained(tmp_path / "model")
    loaded = Parser.from_pretrained(tmp_path / "model")
    assert loaded.config == parser.config and loaded.indexer.to_json() == parser.indexer.to_json()
    assert loaded.parse(TRAIN) == parser.parse(TRAIN)
    with pytest.raises(TreeparseError, match="The model reads UPOS, but"):
        loaded.parse([["no", "tags"]])


@pytest.mark.parametrize("settings", [{"char_filters": 2}, {"tags": ("xpos", "feats")}])
def test_one_of_them_alone(folder: Path, settings: dict[str, Any]) -> None:
    sentences = [replace(s, xpos=s.forms, feats=s.forms, allowed=None) for s in TRAIN]
    encoder = TransformerConfig(model=str(folder), **settings)
    parser = Parser.build(ParserConfig(encoder, arc_size=8, label_size=8), sentences)
    assert parser_encoder(parser).output_size == 16 + (8 if "char_filters" in settings else 100)
    assert len(parser.parse(sentences[:2])) == 2


def test_features_survive_json_and_pickle_and_grow(folder: Path) -> None:
    features = built(folder, **BESIDE, min_count=1).indexer.features
    assert isinstance(features, SpelledSubwords)
    known = TRAIN[0].forms[0]
    new = Sentence((known, f"{known}λ"), upos=("NOUN", "NEW"))
    longer = features.extended([new], min_count=1)
    assert {noun: len(table) for noun, table in longer.vocabularies().items()} == {
        noun: len(table) + 1 for noun, table in features.vocabularies().items()
    }
    assert longer.windowed(12, 4).length(TRAIN[0]) >= features.length(TRAIN[0])
    expected = longer([new, TRAIN[0]])
    for copy in (
        SpelledSubwords.from_json(json.loads(json.dumps(longer.to_json()))),
        pickle.loads(pickle.dumps(longer)),
    ):
        found = copy([new, TRAIN[0]])
        assert found.keys() == expected.keys() and all(torch.equal(found[name], expected[name]) for name in found)
    assert isinstance(longer.subwords, SubwordFeatures) and isinstance(longer.lexical, LexicalFeatures)
    assert longer.known_words() is longer.lexical.words


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"tags": ("pos",)}, "Unknown column 'pos' in encoder.tags"),
        ({"char_filters": -1}, "encoder.char_filters must be at least 0, got -1"),
        ({"char_filters": 1, "char_widths": ()}, "encoder.char_widths must not be empty"),
        ({"min_count": 0}, "encoder.min_count must be at least 1, got 0"),
    ],
)
def test_settings_out_of_range(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(TreeparseError, match=words):
        TransformerConfig(**settings)


@pytest.fixture
def settings(folder: Path) -> list[str]:
    options = {"model": folder, "learning_rate_factor": 1.0}
    options |= {"lora_rank": 2, "lora_dropout": 0.2, "lora_targets": "[query,dense]"}
    options |= {"char_filters": 3, "char_widths": "[1,2]", "tags": "[upos]", "hidden_size": 4}
    return [
        "--data.batch_words=120",
        "--model.encoder=TransformerConfig",
        *(f"--model.encoder.{name}={value}" for name, value in options.items()),
    ]


def test_a_run_by_adapters(
    tiny_config: Path, settings: list[str], folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Broken and resumed, it ends as unbroken; the model needs no peft; others start from it, also by adapters."""
    settings = [*settings, "--optimization.epochs=2"]
    unbroken = train(load_config(tiny_config, [*settings, "--output", str(tmp_path / "unbroken")]), quiet=True)
    break_off(lambda: train(load_config(tiny_config, settings), quiet=True), 1, 2, monkeypatch)
    resumed = train(load_config(tiny_config, settings), resume=True, quiet=True)
    found, expected = (load_file(model / "model.safetensors") for model in (resumed, unbroken))
    assert found.keys() == expected.keys() and all(torch.equal(found[name], expected[name]) for name in found)

    start, prefix = load_file(folder / "model.safetensors"), "scorer.encoder.transformer."
    for name in (name for name in found if name.startswith(prefix)):
        learnt = name.endswith(("query.weight", "dense.weight"))
        assert torch.equal(found[name], start[name.removeprefix(prefix)]) != learnt, name

    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "peft", None)
        parser = Parser.from_pretrained(resumed)
    assert isinstance(parser.config.encoder, TransformerConfig) and parser.config.encoder.lora_rank == 0

    more = [*settings, "--init_from", str(resumed), "--output", str(tmp_path / "more")]
    more += ["--optimization.epochs=1", "--optimization.learning_rate=0"]
    again = load_file(train(load_config(tiny_config, more), quiet=True) / "model.safetensors")
    assert again.keys() == found.keys() and all(torch.equal(again[name], found[name]) for name in found)
