"""A parser with pretrained vectors: where they go, that they stay, and that the model's folder holds them."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from helpers.parsers import parser_encoder
from helpers.sentences import learnable_sentences
from torch import nn

from treeparse.data.features.vector_files import WordVectors, read_vectors
from treeparse.data.features.words import LexicalFeatures
from treeparse.errors import TreeparseError
from treeparse.model import Parser, ParserConfig
from treeparse.nn import BiLSTMConfig, BiLSTMEncoder
from treeparse.objectives import TreeLikelihood
from treeparse.sentence import Sentence

ENCODER = BiLSTMConfig(min_count=1, word_size=8, char_size=4, char_filters=0, hidden_size=8, layers=1)
CONFIG = ParserConfig(encoder=ENCODER, arc_size=8, label_size=8)
TRAIN = learnable_sentences(20, seed=1)
VECTORS = WordVectors(("unseen", "verb1", "Noun1"), torch.tensor([[2.0, 0.0], [0.0, -2.0], [1.0, 1.0]]))
SCALE = float(VECTORS.table.std(correction=0))


@pytest.fixture
def parser() -> Parser:
    torch.manual_seed(0)
    return Parser.build(CONFIG, TRAIN, VECTORS).eval()


def vectors_of(parser: Parser, *forms: str) -> torch.Tensor:
    encoder = parser_encoder(parser)
    assert isinstance(encoder, BiLSTMEncoder)
    table = encoder.embedding.vectors
    assert isinstance(table, nn.Embedding)
    batch = parser.collate([Sentence(forms)])
    return table(batch.features["vectors"])[0]


def test_every_word_of_the_file_gets_its_vector_and_others_the_mean(parser: Parser) -> None:
    assert parser.config == replace(CONFIG, encoder=replace(ENCODER, vector_size=2))
    assert isinstance(parser.indexer.features, LexicalFeatures)
    assert "unseen" not in parser.indexer.features.words
    found = vectors_of(parser, "unseen", "UNSEEN", "Verb1", "Noun1", "noun1", "other")
    mean = [1.0, -1 / 3]
    expected = torch.tensor([[0, 0], [2, 0], [2, 0], [0, -2], [1, 1], mean, mean]) / SCALE
    torch.testing.assert_close(found, expected)


def test_unseen_words_differ_by_their_vectors_alone(parser: Parser) -> None:
    with torch.inference_mode():
        known, other, another = (
            parser_encoder(parser)(parser.collate([Sentence((form,))])) for form in ("unseen", "other", "another")
        )
    assert torch.equal(other, another) and not torch.allclose(known, other)


def test_training_leaves_the_vectors_as_they_are(parser: Parser) -> None:
    before = vectors_of(parser, "unseen", "other").clone()
    optimizer = torch.optim.AdamW((p for p in parser.parameters() if p.requires_grad), lr=0.1)
    parser.train().loss(parser.collate(TRAIN), TreeLikelihood()).backward()
    optimizer.step()
    assert torch.equal(vectors_of(parser, "unseen", "other"), before)


def test_model_folder_holds_the_vectors(parser: Parser, tmp_path: Path) -> None:
    path = tmp_path / "some.vec"
    path.write_text("3 2\nunseen 2 0\nverb1 0 -2\nNoun1 1 1\n")
    torch.manual_seed(0)
    Parser.build(CONFIG, TRAIN, read_vectors(path)).save_pretrained(tmp_path / "model")
    path.unlink()
    loaded = Parser.from_pretrained(tmp_path / "model")
    sentences = [*learnable_sentences(10, seed=2), Sentence(("unseen", "Other", "Verb1"))]
    assert loaded.parse(sentences) == parser.parse(sentences)
    assert torch.equal(vectors_of(loaded, "unseen", "other"), vectors_of(parser, "unseen", "other"))
    assert not any(p.requires_grad for name, p in loaded.named_parameters() if name.endswith("vectors.weight"))


def test_vectors_leave_the_other_first_weights_alone() -> None:
    tables = []
    for words in (("a",), ("a", "b", "c")):
        torch.manual_seed(0)
        parser = Parser.build(
            CONFIG, TRAIN, WordVectors(words, torch.randn(len(words), 2, generator=torch.Generator()))
        )
        tables.append({name: weight for name, weight in parser.state_dict().items() if "vectors" not in name})
    assert all(torch.equal(tables[0][name], tables[1][name]) for name in tables[0])


@pytest.mark.parametrize(
    ("vectors", "words"),
    [
        (None, "must be 0, because there are no pretrained vectors"),
        (VECTORS, "must be 0 or 2, because the pretrained vectors have size 2"),
    ],
)
def test_vector_size_must_be_that_of_the_file(vectors: WordVectors | None, words: str) -> None:
    config = replace(CONFIG, encoder=replace(ENCODER, vector_size=3))
    with pytest.raises(TreeparseError, match=f"encoder.vector_size .*{words}, got 3"):
        Parser.build(config, TRAIN, vectors)
