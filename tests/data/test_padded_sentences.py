"""`pad` against the sentences, read back from the tensors by hand."""

from pathlib import Path

import pytest
import torch
from torch import nn

from treeparse import NonProjectiveCRF
from treeparse.data import Batch, Vocabularies, load_treebank, pad
from treeparse.errors import TreeparseError
from treeparse.model import Parser, ParserConfig
from treeparse.sentence import Sentence

DEMO = Path(__file__).parents[2] / "data" / "demo-dev.conllu"
FIRST = Sentence(("The", "cat", "sat"), ("DET", "NOUN", "VERB"), None, None, (2, 3, 0), ("det", "nsubj", "root"))
SECOND = Sentence(("Sat",), None, None, None, (0,), ("root",))


def test_words_tags_heads_and_labels_of_a_treebank_come_back() -> None:
    sentences = load_treebank(DEMO)
    padded = pad(sentences)
    words, tags, labels = padded.vocabularies
    for item, sentence in enumerate(sentences):
        known, end = sentence.words, len(sentence.words) + 1
        assert padded.lengths[item] == len(known)
        assert [words.item(index) for index in padded.words[item, 1:end].tolist()] == [
            form.lower() for form in known.forms
        ]
        assert tuple(tags.item(index) for index in padded.tags[item, 1:end].tolist()) == known.upos
        assert tuple(padded.heads[item, 1:end].tolist()) == known.heads
        assert tuple(labels.item(index) for index in padded.labels[item, 1:end].tolist()) == known.labels
        assert not padded.words[item, end:].any() and not padded.tags[item, end:].any()
        assert (padded.heads[item, end:] == -1).all() and (padded.labels[item, end:] == -1).all()


def test_the_root_and_what_is_unknown_have_ids_of_their_own() -> None:
    vocabularies = Vocabularies.of([FIRST, SECOND], min_count=2)
    padded = pad([FIRST, ["cat", "naps"]], vocabularies)
    assert padded.words.tolist() == [[2, 1, 1, 3], [2, 1, 1, 0]]  # "sat" alone occurs twice
    assert padded.tags.tolist() == [[2, 3, 4, 5], [2, 1, 1, 0]]
    assert padded.heads.tolist() == [[-1, 2, 3, 0], [-1, -1, -1, -1]]
    assert padded.labels.tolist() == [[-1, 1, 2, 0], [-1, -1, -1, -1]]
    assert padded.lengths.tolist() == [3, 2]


def test_nothing_cannot_be_padded() -> None:
    with pytest.raises(TreeparseError, match="There is no sentence to pad"):
        pad([])


def test_a_network_without_a_parser_learns_from_padded_sentences() -> None:
    torch.manual_seed(1)
    padded = pad(load_treebank(DEMO)[:20])
    size = 16
    embedding = nn.Embedding(len(padded.vocabularies.words), size, padding_idx=0)
    heads, dependents = nn.Linear(size, size), nn.Linear(size, size)
    parameters = [*embedding.parameters(), *heads.parameters(), *dependents.parameters()]
    optimizer = torch.optim.Adam(parameters, lr=0.03)
    losses = []
    for _ in range(30):
        vectors = embedding(padded.words)
        trees = NonProjectiveCRF(heads(vectors) @ dependents(vectors).mT, padded.lengths)
        loss = -trees.log_prob(padded.heads).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.7 * losses[0]


def test_batches_of_parsers_are_public() -> None:
    assert isinstance(Parser.build(ParserConfig(), [FIRST]).collate([FIRST]), Batch)
