import copy
from typing import Any

import pytest
import torch
from helpers.sentences import learnable_sentences
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from treeparse.batch import Batch
from treeparse.data.features.indexer import Indexer
from treeparse.data.features.words import LexicalFeatures
from treeparse.nn import BiLSTMConfig, BiLSTMEncoder
from treeparse.nn.bilstm import BiLSTMLayer
from treeparse.sentence import Sentence

SENTENCES = learnable_sentences(12, seed=1, longest=9)


def small(**settings: Any) -> BiLSTMConfig:
    sizes: dict[str, Any] = {"word_size": 6, "char_size": 3, "char_filters": 4, "hidden_size": 5, "layers": 2}
    return BiLSTMConfig(**(sizes | settings))


CONFIGS = {
    "plain": small(layers=3, min_count=1),
    "one layer": small(layers=1),
    "no characters": small(char_filters=0),
    "tags": small(tags=("upos", "xpos", "feats"), tag_size=3, hidden_size=4),
    "recurrent dropout": small(recurrent_dropout=0.3),
    "widths": small(char_filters=2, char_widths=(2, 3, 4)),
}
every_config = pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)


def make(config: BiLSTMConfig) -> tuple[BiLSTMEncoder, Indexer]:
    torch.manual_seed(5)
    features = LexicalFeatures.build(SENTENCES, min_count=config.min_count, tags=config.tags)
    encoder = BiLSTMEncoder(config, features.sizes(), unknown=1, specials=3).double()
    for name, parameter in encoder.named_parameters():
        if "bias" in name:
            nn.init.normal_(parameter)
    return encoder, Indexer.build(SENTENCES, features)


def torch_lstm(layers: list[BiLSTMLayer]) -> nn.LSTM:
    """torch's own bidirectional LSTM of the same weights."""
    first = layers[0].forwards
    lstm = nn.LSTM(first.input_size, first.hidden_size, len(layers), bidirectional=True, batch_first=True).double()
    for place, layer in enumerate(layers):
        for suffix, direction in (("", layer.forwards), ("_reverse", layer.backwards)):
            for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
                source = getattr(direction, f"{name}_l0")
                getattr(lstm, f"{name}_l{place}{suffix}").data.copy_(source.data)
    return lstm


def run_packed(lstm: nn.LSTM, nodes: Tensor, lengths: Tensor) -> Tensor:
    packed = pack_padded_sequence(nodes, lengths, batch_first=True, enforce_sorted=False)
    return pad_packed_sequence(lstm(packed)[0], batch_first=True)[0]


def real_nodes(batch: Batch) -> Tensor:
    return torch.arange(int(batch.lengths.max()) + 1) <= batch.lengths.unsqueeze(-1)


@every_config
def test_equals_torch_s_lstm_on_packed_sequences(config: BiLSTMConfig) -> None:
    encoder, indexer = make(config)
    encoder.eval()
    batch = indexer.collate(SENTENCES)
    layers = [layer for layer in encoder.layers if isinstance(layer, BiLSTMLayer)]
    assert len(layers) == config.layers
    lstm = torch_lstm(layers)
    embedded = encoder.embedding(batch.features)
    real = real_nodes(batch).unsqueeze(-1)
    ours = encoder(batch)
    theirs = run_packed(lstm, embedded, batch.lengths + 1)
    assert ours.shape == (*real.shape[:2], encoder.output_size)
    torch.testing.assert_close(ours * real, theirs)
    assert ours.isfinite().all()

    cotangent = torch.randn_like(ours) * real
    names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    own = [getattr(d, f"{name}_l0") for layer in layers for d in (layer.forwards, layer.backwards) for name in names]
    peer = [getattr(lstm, f"{n}_l{i}{d}") for i in range(len(layers)) for d in ("", "_reverse") for n in names]
    shared = [p for p in encoder.embedding.parameters() if p.requires_grad]
    found = torch.autograd.grad((ours * cotangent).sum(), own + shared)
    wanted = torch.autograd.grad((theirs * cotangent).sum(), peer + shared)
    for mine, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(mine, other)


@every_config
def test_a_sentence_does_not_depend_on_its_batch(config: BiLSTMConfig) -> None:
    encoder, indexer = make(config)
    encoder.eval()
    forms = ("Noun1",) * 30 + ("a-word-of-many-characters-" * 4,)
    long = Sentence(forms, upos=("NOUN",) * 31, xpos=("N",) * 31, feats=("_",) * 31)
    together = encoder(indexer.collate([*SENTENCES, long]))
    for place, sentence in enumerate(SENTENCES):
        alone = encoder(indexer.collate([sentence]))
        torch.testing.assert_close(together[place, : len(sentence) + 1], alone[0])


@every_config
def test_every_weight_learns(config: BiLSTMConfig) -> None:
    encoder, indexer = make(config)
    encoder.train()
    torch.manual_seed(7)
    encoder(indexer.collate(SENTENCES)).square().sum().backward()
    for name, parameter in encoder.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        assert parameter.grad.any(), name


def test_dropout_is_shared_by_the_nodes_of_a_sentence() -> None:
    encoder, indexer = make(CONFIGS["plain"])
    encoder.train()
    torch.manual_seed(8)
    batch = indexer.collate(SENTENCES)
    dropped = (encoder(batch) == 0) & real_nodes(batch).unsqueeze(-1)
    whole = (dropped.sum(1) == (batch.lengths + 1).unsqueeze(-1)).sum(-1)
    assert torch.equal(dropped.any(1).sum(-1), whole)
    assert 0.1 < float(whole.sum()) / (len(SENTENCES) * encoder.output_size) < 0.6


def test_recurrent_weights_start_orthogonal_in_each_gate() -> None:
    torch.manual_seed(9)
    layer = BiLSTMLayer(3, 8)
    for direction in (layer.forwards, layer.backwards):
        for gate in direction.get_parameter("weight_hh_l0").detach().chunk(4):
            torch.testing.assert_close(gate @ gate.T, torch.eye(8))
        assert not direction.get_parameter("bias_ih_l0").any()


@pytest.mark.parametrize("training", [True, False])
def test_recurrent_dropout_masks_the_recurrent_weights_in_training(training: bool) -> None:
    """Against the same layer without dropout whose recurrent weights were masked by hand, forwards first."""
    torch.manual_seed(10)
    layer, plain = BiLSTMLayer(3, 4, recurrent_dropout=0.5).train(training), BiLSTMLayer(3, 4)
    plain.load_state_dict(layer.state_dict())
    nodes, reverse = torch.randn(6, 2, 3), torch.arange(5, -1, -1).unsqueeze(-1).expand(6, 2)
    torch.manual_seed(11)
    found = layer(nodes, reverse)
    found.square().sum().backward()
    torch.manual_seed(11)
    for direction in (plain.forwards, plain.backwards):
        weight = direction.get_parameter("weight_hh_l0")
        weight.data = torch.nn.functional.dropout(weight.data, 0.5, training)
    torch.testing.assert_close(found, plain(nodes, reverse))
    gradient = layer.forwards.get_parameter("weight_hh_l0").grad
    assert gradient is not None
    assert bool((gradient == 0).any()) is training


def test_a_copy_computes_the_same() -> None:
    encoder, indexer = make(CONFIGS["plain"])
    batch = indexer.collate(SENTENCES)
    assert torch.equal(copy.deepcopy(encoder).eval()(batch), encoder.eval()(batch))
