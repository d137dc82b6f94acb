"""The transformer encoder against computations by hand over what the library transformers gives."""

from pathlib import Path
from typing import Any

import pytest
import torch
from helpers.pretrained import bert_folder, encoder_and_batch, roberta_folder
from torch import Tensor, nn
from transformers import AutoModel, BertConfig, GPT2Config

from treeparse.batch import Batch
from treeparse.data.features.subwords import SubwordFeatures
from treeparse.errors import TreeparseError
from treeparse.nn import TransformerConfig, TransformerEncoder
from treeparse.nn.huggingface import architecture_of, build_transformer, layer_depths, most_subwords
from treeparse.nn.pretrained import Pretrained
from treeparse.nn.transformer import LayerMix
from treeparse.sentence import Sentence

SENTENCES = [Sentence(("the", "nouns", "verbs,")), Sentence(("adj5",)), Sentence(("a", "noun", "nounverb", ".", "x"))]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return bert_folder(tmp_path_factory.mktemp("bert"))


def made(folder: Path, **settings: Any) -> tuple[TransformerEncoder, Batch]:
    return encoder_and_batch(folder, SENTENCES, **settings)


def layers_of(folder: Path, batch: Batch) -> Tensor:
    """(L, W, S, D): what the library gives, the embeddings first."""
    model = AutoModel.from_pretrained(folder).eval()
    lengths = batch.features["subword_lengths"]
    mask = torch.arange(int(lengths.max())) < lengths.unsqueeze(-1)
    return torch.stack(model(batch.features["subwords"], mask.long(), output_hidden_states=True).hidden_states)


@pytest.mark.parametrize("pooling", ["first", "mean", "last"])
@torch.no_grad()
def test_pooling_by_hand(folder: Path, pooling: str) -> None:
    encoder, batch = made(folder, pooling=pooling)
    last, words = layers_of(folder, batch)[-1], batch.features["words"]
    found = encoder(batch)
    assert found.shape == (3, 6, encoder.output_size)
    for place, sentence in enumerate(SENTENCES):
        torch.testing.assert_close(found[place, 0], encoder.root)
        for word in range(1, len(sentence) + 1):
            own = last[place, words[place] == word]
            expected = {"first": own[0], "mean": own.mean(0), "last": own[-1]}[pooling]
            torch.testing.assert_close(found[place, word], expected)


@pytest.mark.parametrize(("mixed", "used"), [(2, 2), (0, 4)])
@torch.no_grad()
def test_mix_of_layers_by_hand(folder: Path, mixed: int, used: int) -> None:
    encoder, batch = made(folder, mixed_layers=mixed, pooling="first")
    assert encoder.mix is not None and encoder.mix.weights.shape == (used,)
    encoder.mix.weights.copy_(torch.arange(used) * 0.7)
    encoder.mix.scale.fill_(1.5)
    shares = (torch.arange(used) * 0.7).exp()
    layers = layers_of(folder, batch)[-used:]
    expected = 1.5 * sum(share * layer for share, layer in zip(shares / shares.sum(), layers, strict=True))
    assert isinstance(expected, Tensor)
    first = [batch.features["words"][2].tolist().index(word) for word in range(1, 6)]
    torch.testing.assert_close(encoder(batch)[2, 1:], expected[2, first])


@torch.no_grad()
def test_layer_dropout_leaves_out_layers_but_never_all() -> None:
    torch.manual_seed(0)
    mix, layers = LayerMix(2, 0.5), torch.tensor([[1.0], [3.0]])
    seen = [float(mix(layers).detach()) for _ in range(400)]
    assert {*seen} == {1.0, 2.0, 3.0}
    assert seen.count(2.0) == pytest.approx(200, abs=40)  # both stay, or neither would
    assert float(mix.eval()(layers).detach()) == 2.0


def test_windows_change_nothing_where_no_subword_sees_another(folder: Path) -> None:
    """Without attention and places a window's vectors are those of the whole: each must be put where it belongs."""
    whole, _ = made(folder)
    for name, parameter in whole.transformer.named_parameters():
        if "attention.output.dense" in name or "position" in name:
            nn.init.zeros_(parameter)
    _, features, _ = TransformerConfig(model=str(folder)).start([])
    assert isinstance(features, SubwordFeatures)
    sentences = [Sentence(("the", "nounverb", "a", "b,", "c.", "noun", "verbs", "x")), SENTENCES[0]]
    lengths = torch.tensor([8, 3])
    expected, batch = (Batch(lengths, torch.arange(2), each(sentences)) for each in (features, features.windowed(8, 3)))
    assert len(batch.features["subwords"]) > 3 > len(expected.features["subwords"])
    torch.testing.assert_close(whole(batch)[0], whole(expected)[0])
    torch.testing.assert_close(whole(batch)[1, :4], whole(expected)[1, :4])


def test_a_frozen_model_learns_nothing_and_drops_nothing(folder: Path) -> None:
    encoder, batch = made(folder, frozen=True, dropout=0.0, hidden_size=4)
    encoder.train()
    first, second = encoder(batch), encoder(batch)
    assert torch.equal(first, second)
    first.sum().backward()
    learning = {name for name, parameter in encoder.named_parameters() if parameter.grad is not None}
    assert "root" in learning and not any(name.startswith("transformer") for name in learning)
    assert {name.split(".")[0] for name in learning} == {"root", "layers"}


def test_checkpointing_changes_no_gradient(folder: Path) -> None:
    gradients = []
    for checkpointing in (False, True):
        encoder, batch = made(folder, gradient_checkpointing=checkpointing)
        encoder.train()
        torch.manual_seed(5)
        encoder(batch).square().sum().backward()
        gradients.append([p.grad for p in encoder.transformer.parameters()])
    for found, expected in zip(*gradients, strict=True):
        torch.testing.assert_close(found, expected)


def test_depths_rates_and_turns_of_layers(folder: Path) -> None:
    encoder, _ = made(folder, learning_rate_factor=0.5, layer_decay=0.1, unfreeze_at=0.4)
    rates = {name: encoder.rates().get(parameter) for name, parameter in encoder.named_parameters()}
    expected = {"encoder.layer.2": 0.5, "encoder.layer.1": 0.05, "encoder.layer.0": 0.005, "embeddings": 0.0005}
    for name, rate in rates.items():
        own = [each for prefix, each in expected.items() if name.startswith(f"transformer.{prefix}")]
        assert rate == (pytest.approx(own[0]) if own else None), name
    turns = {0.0: 0, 0.09: 0, 0.1: 1, 0.25: 2, 0.31: 3, 0.39: 3, 0.4: 4, 1.0: 4}
    for progress, count in turns.items():
        encoder.advance(progress)
        learning = {name for name, parameter in encoder.named_parameters() if parameter.requires_grad}
        prefixes = [f"transformer.{prefix}" for prefix in expected][:count]
        assert learning == {"root", *(name for name in rates if any(name.startswith(each) for each in prefixes))}


def test_limits_and_depths_of_other_models(tmp_path: Path) -> None:
    roberta = build_transformer(Pretrained.find(str(roberta_folder(tmp_path, limit=40)), "").architecture())
    assert most_subwords(roberta) == 40  # of 42 places
    config = GPT2Config(n_layer=2, n_embd=8, n_head=2, n_positions=30, vocab_size=9)
    gpt = build_transformer(architecture_of(config.to_dict()))
    assert most_subwords(gpt) == 30
    depths = layer_depths(gpt)
    names = ("wte.weight", "h.0.ln_1.weight", "h.1.ln_1.weight", "ln_f.bias")
    assert [depths[name] for name in names] == [2, 1, 0, 0]


PLAIN = architecture_of(BertConfig(vocab_size=9, hidden_size=8, num_attention_heads=2, num_hidden_layers=1).to_dict())


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"auto_map": {"AutoModel": "evil.Model"}}, "'auto_map'"),
        ({"_attn_implementation": "evil/kernel"}, "'_attn_implementation'"),
        ({"inner": [{"quantization_config": {}}]}, "'quantization_config'"),
        ({"num_hidden_layers": 10**6}, "num_hidden_layers must be at most 1,000"),
    ],
)
def test_architectures_that_are_refused_before_anything_is_built(change: dict[str, Any], told: str) -> None:
    with pytest.raises(TreeparseError, match=told):
        TransformerConfig(architecture={**PLAIN, **change})


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"model_type": "berd"}, "got 'berd'; did you mean"),
        ({"model_type": "vit"}, "vit do not encode text alone"),
        ({"num_attention_heads": 3}, "does not build a model"),
        ({"chunk_size_feed_forward": "many"}, "chunk_size_feed_forward .* int, got 'many'"),
    ],
)
def test_architectures_that_make_no_model(change: dict[str, Any], told: str) -> None:
    with pytest.raises(TreeparseError, match=told):
        TransformerEncoder(TransformerConfig(architecture={**PLAIN, **change}))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"window": 7}, "encoder.window must be at least 8, got 7"),
        ({"learning_rate_factor": 0.0}, "encoder.learning_rate_factor must be more than 0 and at most 1, got 0.0"),
    ],
)
def test_settings_out_of_range(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(TreeparseError, match=words):
        TransformerConfig(**settings)


def test_more_layers_than_there_are() -> None:
    with pytest.raises(TreeparseError, match="mixed_layers must be at most 1, the model's layers, got 2"):
        TransformerEncoder(TransformerConfig(architecture=PLAIN, mixed_layers=2))
