"""Adapters against the same sums by hand, and against a model without them."""

import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from helpers.pretrained import bert_folder, encoder_and_batch
from torch import Tensor, nn
from transformers import GPT2Config

from treeparse.batch import Batch
from treeparse.errors import TreeparseError
from treeparse.nn import TransformerConfig, TransformerEncoder
from treeparse.nn.huggingface import architecture_of, base_weights
from treeparse.sentence import Sentence

SENTENCES = [Sentence(("the", "nouns", "verbs,")), Sentence(("a", "noun", "nounverb", "."))]
GPT = architecture_of(GPT2Config(n_layer=2, n_embd=8, n_head=2, n_positions=30, vocab_size=9).to_dict())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return bert_folder(tmp_path_factory.mktemp("bert"))


def made(folder: Path, **settings: Any) -> tuple[TransformerEncoder, Batch]:
    return encoder_and_batch(folder, SENTENCES, **settings)


def moved(encoder: TransformerEncoder) -> dict[str, tuple[Tensor, Tensor]]:
    """The two factors of each adapter, which are given values here: the second one starts at 0."""
    named, found = dict(encoder.transformer.named_parameters()), {}
    for name, parameter in named.items():
        if ".lora_B." in name:
            nn.init.normal_(parameter)
            layer, _, _ = name.partition(".lora_B.")
            found[layer] = named[name.replace("lora_B", "lora_A")].detach(), parameter.detach()
    return found


@torch.no_grad()
def test_adapters_by_hand(folder: Path) -> None:
    """W + alpha / rank B A at the queries and values of every layer; nothing before they have learnt."""
    plain, batch = made(folder)
    encoder, _ = made(folder, lora_rank=3, lora_alpha=6.0)
    assert torch.equal(encoder(batch)[:, 1:], plain(batch)[:, 1:])
    factors = moved(encoder)
    names = [f"encoder.layer.{layer}.attention.self.{name}" for layer in range(3) for name in ("query", "value")]
    assert [*factors] == names
    for name, (first, second) in factors.items():
        assert first.shape == (3, 16) and second.shape == (16, 3)
        plain.transformer.get_parameter(f"{name}.weight").add_(2 * second @ first)
    torch.testing.assert_close(encoder(batch)[:, 1:], plain(batch)[:, 1:])


@pytest.mark.parametrize("targets", [(), ("attention.output.dense", "word_embeddings")])
@torch.no_grad()
def test_merged_weights_are_those_of_a_model_without_adapters(folder: Path, targets: tuple[str, ...]) -> None:
    encoder, batch = made(folder, lora_rank=2, lora_targets=targets, mixed_layers=2, hidden_size=4)
    plain, _ = made(folder, mixed_layers=2, hidden_size=4)
    originals = plain.state_dict()
    assert encoder.base_weights().keys() == originals.keys()
    for name, weight in encoder.base_weights().items():
        assert not name.startswith("transformer") or torch.equal(weight, originals[name])
    for parameter in encoder.transformer.parameters():
        parameter.add_(0.3 * torch.randn_like(parameter))
    before = encoder(batch)
    plain.load_state_dict(encoder.merged_weights())
    torch.testing.assert_close(plain(batch), before, atol=1e-5, rtol=1e-4)
    assert torch.equal(encoder(batch), before)


def test_only_adapters_and_what_stands_on_top_learn(folder: Path) -> None:
    encoder, batch = made(folder, lora_rank=2, mixed_layers=2, gradient_checkpointing=True, learning_rate_factor=0.5)
    encoder.train()
    encoder(batch).square().sum().backward()
    learning = {name for name, parameter in encoder.named_parameters() if parameter.requires_grad}
    assert learning == {name for name, parameter in encoder.named_parameters() if parameter.grad is not None}
    inner = {name for name in learning if name.startswith("transformer")}
    assert learning - inner == {"root", "mix.weights", "mix.scale"}
    assert len(inner) == 2 * 3 * 2 and all(".lora_" in name for name in inner)
    encoder.advance(0.0)
    assert learning == {name for name, parameter in encoder.named_parameters() if parameter.requires_grad}
    rates = encoder.rates()
    assert {rates[parameter] for name, parameter in encoder.named_parameters() if name in inner} == {0.5}


@torch.no_grad()
def test_layers_that_lie_the_other_way_round() -> None:
    """Those of GPT-2, whose weights are transposed; of that nobody is warned."""
    encoder = TransformerEncoder(TransformerConfig(architecture=GPT, lora_rank=2, lora_alpha=2.0))
    [(first, second), _] = moved(encoder).values()
    name = "h.0.attn.c_attn.weight"
    added = encoder.merged_weights()[f"transformer.{name}"] - base_weights(encoder.transformer)[name]
    torch.testing.assert_close(added, (second @ first).T)


def test_adapters_that_cannot_be(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(**settings: Any) -> str:
        with pytest.raises(TreeparseError) as caught:
            TransformerEncoder(TransformerConfig(architecture=GPT, **settings))
        return str(caught.value)

    assert "encoder.lora_targets must name layers of the model, such as query and value, got query" in refused(
        lora_rank=2, lora_targets=("query",)
    )
    assert "encoder.frozen does not go with adapters (encoder.lora_rank is 2)" in refused(lora_rank=2, frozen=True)
    assert "leave out encoder.unfreeze_at" in refused(lora_rank=2, unfreeze_at=0.2)
    assert "encoder.lora_alpha must be more than 0 and at most 1,000,000,000, got 0.0" in refused(lora_alpha=0.0)
    assert "got an empty one" in refused(lora_targets=("c_attn", ""))
    monkeypatch.setitem(sys.modules, "peft", None)
    assert "pip install treeparse[lora]" in refused(lora_rank=2)
