"""Runs whose frozen transformer is computed once: what they learn, what is kept for them, and what goes out."""

import json
import shutil
from collections import namedtuple
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from helpers.broken_runs import break_off
from helpers.commands import Capture
from helpers.parsers import parser_encoder
from helpers.pretrained import bert_folder
from helpers.sentences import learnable_sentences
from helpers.trained_runs import equal, weights
from torch import Tensor

from treeparse import Parser
from treeparse.batch import Batch
from treeparse.data.features.indexer import Indexer
from treeparse.data.features.layer_cache import WORD_LAYERS
from treeparse.data.features.vocabulary import Vocabulary
from treeparse.errors import TreeparseError
from treeparse.model import ParserConfig
from treeparse.names import CacheDtype
from treeparse.nn import TransformerConfig, TransformerEncoder
from treeparse.progress import Console
from treeparse.sentence import Sentence
from treeparse.training import TrainConfig, load_config, train
from treeparse.training.frozen_layers import cached_indexer
from treeparse.training.resolve import resolve_data, resolve_settings
from treeparse.training.train_config import DataConfig, ResolvedConfig

pytestmark = pytest.mark.usefixtures("one_thread")

SENTENCES = [*learnable_sentences(12, seed=1), Sentence(("noun", "verb,") * 30)]  # the last one of several windows
QUIET = Console(quiet=True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return bert_folder(tmp_path_factory.mktemp("bert"))


def frozen(folder: Path, **settings: Any) -> Parser:
    settings = {"overlap": 8, "mixed_layers": 2, **settings}
    encoder = TransformerConfig(model=str(folder), frozen=True, **settings)
    torch.manual_seed(3)
    return Parser.build(ParserConfig(encoder, arc_size=8, label_size=8), SENTENCES[:12])


def config_of(parser: Parser, cache: Path, dtype: CacheDtype = "float16") -> ResolvedConfig:
    data = DataConfig("a.conllu", batch_words=60, cache=str(cache), cache_dtype=dtype)
    config = TrainConfig(data, str(cache / "run"), model=parser.config, trainer={"accelerator": "cpu"})
    return resolve_settings(config, resolve_data(config, [*map(len, SENTENCES)]), steps_per_epoch=10)


def encoder_of(parser: Parser) -> TransformerEncoder:
    found = parser_encoder(parser)
    assert isinstance(found, TransformerEncoder)
    return found


def test_a_new_frozen_model_has_no_dropout(folder: Path) -> None:
    """Before anyone has called ``train``, which Lightning does not."""
    encoder = encoder_of(frozen(folder))
    assert encoder.training and not any(module.training for module in encoder.transformer.modules())


def test_a_words_vectors_are_those_of_its_subwords(folder: Path) -> None:
    """Against the transformer alone, sentence by sentence."""
    parser = frozen(folder, mixed_layers=0).eval()
    encoder, sentences = encoder_of(parser), SENTENCES[:5]
    with torch.inference_mode():
        layers = encoder.word_layers(parser.collate(sentences))
        for place, sentence in enumerate(sentences):
            features = parser.indexer.features([sentence])
            hidden = encoder.transformer(input_ids=features["subwords"], output_hidden_states=True).hidden_states
            assert len(hidden) == len(layers) == 4
            for layer, vectors in zip(layers, hidden, strict=True):
                for word in range(1, len(sentence) + 1):
                    expected = vectors[0, features["words"][0] == word].mean(0)
                    torch.testing.assert_close(layer[place, word], expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(("dtype", "error"), [("float32", 1e-5), ("float16", 4e-3), ("bfloat16", 3e-2)])
@pytest.mark.parametrize("mixed", [1, 2])
def test_the_encoder_gives_the_same_by_the_cache(
    folder: Path, tmp_path: Path, dtype: CacheDtype, error: float, mixed: int
) -> None:
    parser = frozen(folder, mixed_layers=mixed, hidden_size=4).eval()
    indexer = cached_indexer(config_of(parser, tmp_path, dtype), parser, SENTENCES, QUIET)
    for sentences in (SENTENCES[:4], SENTENCES[-2:]):
        plain, cached = parser.collate(sentences), indexer.collate(sentences)
        assert {*cached.features} == {WORD_LAYERS} and WORD_LAYERS not in plain.features
        with torch.inference_mode():
            expected, found = (parser_encoder(parser)(batch) for batch in (plain, cached))
        words = plain.word_mask()
        words[:, 0] = True
        torch.testing.assert_close(found[words], expected[words], atol=error, rtol=0)
        assert [*map(indexer.features.length, sentences)] == [*map(parser.length, sentences)]
    unknown = indexer.collate([SENTENCES[0], Sentence(("unseen",))])
    assert unknown.features.keys() == plain.features.keys()


def test_characters_and_tags_stand_beside_what_is_cached(folder: Path, tmp_path: Path) -> None:
    parser = frozen(folder, char_filters=3, char_widths=(2,), tags=("upos",), tag_size=2).eval()
    sentences = SENTENCES[:4]
    indexer = cached_indexer(config_of(parser, tmp_path, "float32"), parser, sentences, QUIET)
    batch = indexer.collate(sentences)
    assert WORD_LAYERS in batch.features and "subwords" not in batch.features
    with torch.inference_mode():
        expected, found = (parser_encoder(parser)(each) for each in (parser.collate(sentences), batch))
    words = batch.word_mask()
    torch.testing.assert_close(found[words], expected[words], atol=1e-5, rtol=0)
    with pytest.raises(TreeparseError, match="The model reads UPOS, so it cannot learn to predict it"):
        Indexer(indexer.features, indexer.labels, {"upos": Vocabulary(["X"], [1])})


def test_all_that_decides_the_vectors_has_a_place_of_its_own(folder: Path, tmp_path: Path) -> None:
    def keys(parser: Parser, dtype: CacheDtype = "float16") -> set[str]:
        cached_indexer(config_of(parser, tmp_path, dtype), parser, SENTENCES[:2], QUIET)
        return {path.name for path in tmp_path.iterdir()}

    first = keys(frozen(folder))
    assert len(first) == 1
    copy = shutil.copytree(folder, tmp_path.parent / f"{tmp_path.name}-copy")
    for same in (frozen(copy), frozen(folder, dropout=0.3, layer_dropout=0.2, hidden_size=4)):
        assert keys(same) == first
    changed = frozen(folder)
    next(encoder_of(changed).transformer.parameters()).data[3, 3] += 1e-3
    others = [changed, *(frozen(folder, **each) for each in ({"pooling": "last"}, {"mixed_layers": 3}, {"window": 20}))]
    for number, other in enumerate(others, 2):
        assert len(keys(other)) == number
    assert len(keys(frozen(folder), "float32")) == len(others) + 2


def test_only_what_is_missing_is_computed_and_said_before(
    folder: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    parser, console = frozen(folder), Console()
    config = config_of(parser, tmp_path / "cache")
    for sentences, size in ((SENTENCES[:3], 3), (SENTENCES[:3], 0), (SENTENCES[1:6], 3)):
        words = sum(map(len, sentences[-size:]))
        cached_indexer(config, parser, [*sentences, *sentences], console)
        line = "the frozen layers of all sentences are in" if not size else "computing the frozen layers of "
        line += f"{size} sentences, {words} words, 2 layers of 16: {words * 64 / 1e9:.2g} GB in" if size else ""
        assert capsys.readouterr().out == f"{line} {tmp_path}/cache\n"
    assert parser.training and not encoder_of(parser).transformer.training

    full = namedtuple("usage", "total used free")(10, 10, 63)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: full)
    with pytest.raises(TreeparseError, match=r"The frozen layers of 7 sentences, .* do not fit into .* name another"):
        cached_indexer(config, parser, SENTENCES, console)


@pytest.mark.parametrize(
    ("encoder", "problem"),
    [
        (["=TransformerConfig", ".model=x"], "model.encoder.frozen is false"),
        (["=BiLSTMConfig"], "model.encoder is no tr"),
    ],
)
def test_a_cache_is_for_frozen_transformers(tiny_config: Path, encoder: list[str], problem: str) -> None:
    options = [f"--model.encoder{setting}" for setting in encoder]
    with pytest.raises(TreeparseError, match=rf"data\.cache needs a frozen transformer, but {problem}"):
        load_config(tiny_config, [*options, "--data.cache", "somewhere"])


# Whole runs.


@pytest.fixture
def run(tiny_config: Path, folder: Path, tmp_path: Path) -> Callable[..., Path]:
    """A tiny run of one epoch over the frozen BERT, into the folder of that name; its model's folder."""
    settings = {"model": folder, "frozen": True, "mixed_layers": 2, "hidden_size": 8}
    options = ["--model.encoder=TransformerConfig"]
    options += [f"--model.encoder.{name}={value}" for name, value in settings.items()]
    options += ["--data.batch_words=200", "--optimization.epochs=1", "--optimization.learning_rate=0.003"]

    def train_into(name: str, *more: str, resume: bool = False) -> Path:
        return train(
            load_config(tiny_config, [*options, "--output", str(tmp_path / name), *more]), quiet=True, resume=resume
        )

    return train_into


def losses(model: Path) -> list[float]:
    state = torch.load(model.parent / "checkpoints" / "last.ckpt", weights_only=True)
    return [value for record in state["run"]["history"] for value in (record["loss"], record["dev_loss"])]


def test_a_run_with_a_cache_is_the_run_without_one_but_for_rounding(
    run: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = run("plain")
    cache = [f"--data.cache={tmp_path / 'cache'}", "--data.cache_dtype=float32"]
    first = run("first", *cache)

    def none(self: TransformerEncoder, batch: Batch) -> Tensor:
        raise AssertionError("All is in the cache.")

    with monkeypatch.context() as patched:
        patched.setattr(TransformerEncoder, "_hidden", none)
        second = run("second", *cache, "--data.workers=1", "--data.start_method=fork")
    assert losses(first) == pytest.approx(losses(plain), rel=1e-4)
    assert equal(weights(first), weights(second))

    shutil.rmtree(tmp_path / "cache")
    settings = [json.loads((model / "config.json").read_bytes()) for model in (plain, second)]
    for each in settings:
        del each["digests"]
    assert settings[0] == settings[1]
    parsers = [Parser.from_pretrained(model) for model in (plain, second)]
    scores = [[parse.log_prob for parse in parser.parse(SENTENCES)] for parser in parsers]
    assert scores[1] == pytest.approx(scores[0], rel=1e-2)


def test_a_run_goes_on_with_its_cache_elsewhere_but_not_without(
    run: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, two = f"--data.cache={tmp_path / 'here'}", "--optimization.epochs=2"
    unbroken = run("unbroken", here, two)
    break_off(lambda: run("broken", here, two), 1, 1, monkeypatch)
    with pytest.raises(TreeparseError, match=r"data\.cache was true and is false"):
        run("broken", two, resume=True)
    (tmp_path / "here").rename(tmp_path / "there")
    resumed = run("broken", f"--data.cache={tmp_path / 'there'}", two, resume=True)
    assert equal(weights(resumed), weights(unbroken))
