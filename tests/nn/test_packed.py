"""Encoders without gradients run packed: the same vectors as torch's LSTM on packed sequences, each form once."""

import pytest
import torch
from helpers.sentences import learnable_sentences
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence

from treeparse.data.features.indexer import Indexer
from treeparse.data.features.words import LexicalFeatures, vector_vocabulary
from treeparse.nn import BiLSTMConfig, BiLSTMEncoder
from treeparse.nn.bilstm import BiLSTMLayer
from treeparse.nn.packed import Packing, can_pack
from treeparse.sentence import Sentence

SENTENCES = [
    *learnable_sentences(9, seed=3, longest=9),
    Sentence(("one",), upos=("NUM",), xpos=("CD",), feats=("_",), heads=(0,), labels=("root",)),
]
WORDS = sorted({form.lower() for sentence in SENTENCES for form in sentence.forms})
CONFIGS = {
    "plain": BiLSTMConfig(word_size=6, char_size=3, char_filters=4, hidden_size=5, layers=2, min_count=1),
    "no characters": BiLSTMConfig(word_size=6, char_filters=0, hidden_size=5, layers=1, min_count=1),
    "tags": BiLSTMConfig(word_size=6, char_size=3, char_filters=4, tags=("upos",), tag_size=3, hidden_size=4, layers=2),
    "vectors": BiLSTMConfig(word_size=6, vector_size=4, char_size=3, char_filters=4, hidden_size=4, layers=2),
}


@pytest.mark.parametrize("lengths", [[3], [1, 1], [2, 5, 1, 5, 4]])
def test_packing_is_that_of_torch(lengths: list[int]) -> None:
    nodes = torch.randn(len(lengths), 6, 3)
    theirs = pack_padded_sequence(nodes, torch.tensor(lengths), batch_first=True, enforce_sorted=False)
    packing = Packing.of(torch.tensor(lengths), 6)
    assert packing.counts == theirs.batch_sizes.tolist()
    assert packing.packed(nodes).sum() == pytest.approx(float(theirs.data.sum()), abs=1e-5)
    real = (torch.arange(6) < torch.tensor(lengths).unsqueeze(-1)).unsqueeze(-1)
    assert torch.equal(packing.padded(packing.packed(nodes)), nodes * real)


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_an_encoder_gives_the_same_with_and_without_gradients(config: BiLSTMConfig) -> None:
    torch.manual_seed(5)
    vectors = vector_vocabulary(WORDS[::2]) if config.vector_size else None
    features = LexicalFeatures.build(SENTENCES, min_count=config.min_count, tags=config.tags, vectors=vectors)
    encoder = BiLSTMEncoder(config, features.sizes(), unknown=1, specials=3).double().eval()
    for name, parameter in encoder.named_parameters():
        if "bias" in name or "vectors" in name:
            nn.init.normal_(parameter)
    batch = Indexer.build(SENTENCES, features).collate(SENTENCES)
    real = (torch.arange(int(batch.lengths.max()) + 1) <= batch.lengths.unsqueeze(-1)).unsqueeze(-1)
    padded = encoder(batch)
    assert padded.requires_grad
    with torch.inference_mode():
        assert can_pack(encoder, torch.device("cpu"))
        packed = encoder(batch)
    torch.testing.assert_close(packed * real, padded.detach() * real)
    assert packed.isfinite().all()


def test_each_form_is_embedded_once() -> None:
    config = CONFIGS["plain"]
    features = LexicalFeatures.build(SENTENCES, min_count=1)
    encoder = BiLSTMEncoder(config, features.sizes(), unknown=1, specials=3).eval()
    batch = Indexer.build(SENTENCES, features).collate(SENTENCES)
    indices = Packing.of(batch.lengths + 1, batch.features["forms"].shape[1]).indices
    with torch.no_grad():
        vectors, which = encoder.embedding.distinct(batch.features, indices)
        everywhere = encoder.embedding(batch.features).flatten(0, 1)[indices]
    assert len(vectors) == 1 + len({form for sentence in SENTENCES for form in sentence.forms}) < len(indices)
    torch.testing.assert_close(vectors[which], everywhere)


def test_where_layers_do_not_run_packed() -> None:
    layer, cpu = BiLSTMLayer(3, 4).eval(), torch.device("cpu")
    assert not can_pack(layer, cpu)
    with torch.no_grad():
        assert can_pack(layer, cpu)
        assert not can_pack(layer.train(), cpu)
        assert not can_pack(layer.eval(), torch.device("meta"))
        with torch.autocast("cpu", torch.bfloat16):
            assert not can_pack(layer, cpu)
