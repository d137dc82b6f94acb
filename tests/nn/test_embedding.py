import torch
from torch import Tensor

from treeparse.nn import BiLSTMConfig
from treeparse.nn.embedding import LexicalEmbedding

SIZES = {"words": 9, "characters": 8, "upos": 6, "feats": 7, "vectors": 5}
FEATURES = {
    "words": torch.tensor([[2, 5, 8], [2, 1, 0]]),
    "forms": torch.tensor([[0, 1, 2], [0, 1, 0]]),
    "characters": torch.tensor([[3, 2, 4, 0], [3, 5, 6, 4], [3, 7, 4, 0]]),
    "upos": torch.tensor([[2, 3, 5], [2, 4, 0]]),
    "feats": torch.tensor([[2, 6, 3], [2, 1, 0]]),
    "vectors": torch.tensor([[2, 4, 3], [2, 1, 0]]),
}


def make(**settings: object) -> LexicalEmbedding:
    torch.manual_seed(4)
    plain = {"word_size": 6, "tag_size": 3, "char_size": 2, "char_filters": 4, "char_widths": (3, 2)}
    config = BiLSTMConfig(**(plain | settings))  # type: ignore[arg-type]
    embedding = LexicalEmbedding(
        config,
        SIZES,
        word_size=config.word_size,
        vector_size=config.vector_size,
        word_dropout=config.word_dropout,
        unknown=1,
        specials=3,
    ).eval()
    if embedding.vectors is not None:
        torch.nn.init.normal_(embedding.vectors.weight)
    return embedding


def looked_up(table: Tensor, name: str) -> Tensor:
    return torch.stack([torch.stack([table[place] for place in row]) for row in FEATURES[name]])


def test_parts_stand_side_by_side() -> None:
    embedding = make(tags=("upos", "feats"), vector_size=5)
    assert embedding.vectors is not None and embedding.characters is not None
    result = embedding(FEATURES)
    assert result.shape == (2, 3, embedding.output_size)
    words, characters, upos, feats = result.split([6, 8, 3, 3], -1)
    vectors = looked_up(embedding.vectors.weight, "vectors") @ embedding.project.weight.T
    torch.testing.assert_close(words, looked_up(embedding.words.weight, "words") + vectors)
    torch.testing.assert_close(characters, embedding.characters(FEATURES["characters"], FEATURES["forms"]))
    tables = {name: table.get_parameter("weight") for name, table in embedding.tags.items()}
    torch.testing.assert_close(upos, looked_up(tables["upos"], "upos"))
    torch.testing.assert_close(feats, looked_up(tables["feats"], "feats"))


def test_words_alone_read_no_other_feature() -> None:
    embedding = make(char_filters=0)
    result = embedding({"words": FEATURES["words"]})
    torch.testing.assert_close(result, looked_up(embedding.words.weight, "words"))
    assert result.shape[-1] == embedding.output_size == 6


def test_padding_is_zero_and_pretrained_vectors_are_fixed() -> None:
    embedding = make(tags=("upos",), vector_size=5).train()
    assert embedding.vectors is not None
    before = embedding.vectors.weight.clone()
    optimizer = torch.optim.SGD([p for p in embedding.parameters() if p.requires_grad], lr=1)
    embedding(FEATURES).square().sum().backward()
    optimizer.step()
    assert torch.equal(embedding.vectors.weight, before)
    for table in (embedding.words, embedding.tags["upos"]):
        assert (table.get_parameter("weight")[0] == 0).all()


def test_word_dropout_trains_the_unknown_word() -> None:
    embedding = make(char_filters=0, word_dropout=0.9).train()
    words = torch.tensor([[2] + [5] * 50])
    embedding({"words": words}).sum().backward()
    gradient = embedding.words.weight.grad
    assert gradient is not None
    assert (gradient[1] > 30).all()
    torch.testing.assert_close(gradient[2], torch.ones(6))
    torch.testing.assert_close(gradient[1] + gradient[5], torch.full((6,), 50.0))
