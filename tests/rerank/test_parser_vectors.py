"""A neural reranker that reads the word vectors of a trained parser."""

import json
import math
import random
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from helpers.nbest_lists import nbest_list, random_list

from treeparse.data.parses import NBestList
from treeparse.errors import TreeparseError
from treeparse.model import Parser, ParserConfig
from treeparse.nn import BiLSTMConfig
from treeparse.rerank import LearningConfig, LogLinearConfig, Reranker, TreeNetworkConfig, reranked
from treeparse.rerank.loglinear import LogLinear
from treeparse.rerank.tree_network import TreeNetwork
from treeparse.sentence import Sentence

READING = BiLSTMConfig(min_count=1, word_size=8, char_filters=0, hidden_size=8, layers=1, dropout=0.5)
BLIND = replace(READING, min_count=10**6)  # every word is unknown to it
WORDS = tuple(f"w{number}" for number in range(12))


def saved_parser(folder: Path, seed: int) -> Path:
    """The folder of an untrained parser, whose vectors tell all words apart."""
    torch.manual_seed(seed)
    words = Sentence(WORDS, heads=(0, *[1] * 11), labels=("root", *["obj"] * 11))
    parser = Parser.build(ParserConfig(encoder=READING, arc_size=4, label_size=4), [words])
    for name, weights in parser.named_parameters():
        if "embedding" in name:
            torch.nn.init.normal_(weights)
    parser.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def parser(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved_parser(tmp_path_factory.mktemp("parsers") / "one", seed=1)


def config(parser: Path, vectors: Any = "parser") -> TreeNetworkConfig:
    return TreeNetworkConfig(BLIND, size=12, label_size=6, dropout=0.1, vectors=vectors, parser=str(parser))


def labelled_by_word(count: int, seed: int) -> tuple[list[Sentence], list[NBestList]]:
    """A verb and a word, whose label is that of its number, even or odd; of both labels the parser knows nothing."""
    stream, gold, lists = random.Random(seed), [], []
    for _ in range(count):
        number = stream.randrange(1, 7)
        forms, heads = ("w0", WORDS[number]), (0, 1)
        labels = [("root", "obj"), ("root", "nsubj")]
        gold.append(Sentence(forms, heads=heads, labels=labels[number % 2]))
        stream.shuffle(labels)
        lists.append(nbest_list(forms, [(heads, each, -math.log(2)) for each in labels]))
    return gold, lists


def learned(model: TreeNetworkConfig) -> tuple[Reranker, float]:
    """A reranker of labels by words, and its accuracy."""
    learning = LearningConfig(epochs=10, batch_lists=8, learning_rate=0.02)
    held_out = labelled_by_word(40, seed=3)
    reranker = Reranker.train(model, *labelled_by_word(120, seed=1), learning, held_out=held_out)
    gold, lists = labelled_by_word(60, seed=2)
    chosen = [reranked(nbest, reranker).parses[0].labels for nbest in lists]
    return reranker, sum(own == each.labels for own, each in zip(chosen, gold, strict=True)) / len(gold)


@pytest.mark.parametrize("vectors", ["parser", "both"])
def test_what_needs_the_vectors_is_learned_and_the_parser_stays_as_it_is(parser: Path, vectors: str) -> None:
    before = Parser.from_pretrained(parser).state_dict()
    reranker, accuracy = learned(config(parser, vectors))
    assert accuracy == 1
    network = reranker.model
    assert isinstance(network, TreeNetwork) and network.parser is not None
    held = network.parser._parser
    assert all(torch.equal(weights, before[name]) for name, weights in held.state_dict().items())
    assert all(weights.grad is None for weights in held.parameters())
    own = {id(weights) for weights in network.parameters()}
    assert not own & {id(weights) for weights in held.parameters()}
    assert any(name.startswith("encoder.") for name in network.state_dict()) == (vectors == "both")


def test_without_the_vectors_it_is_not() -> None:
    _, accuracy = learned(TreeNetworkConfig(BLIND, size=12, label_size=6, dropout=0.1))
    assert accuracy < 0.8


def test_vectors_are_the_encoders_without_dropout(parser: Path) -> None:
    network = TreeNetwork.build(config(parser), [Sentence(("w1",), heads=(0,), labels=("root",))]).train()
    assert network.parser is not None
    sentences, other = [Sentence(WORDS[:5]), Sentence(WORDS[:2])], Parser.from_pretrained(parser)
    with torch.inference_mode():
        expected = other.scorer.encoder(other.collate(sentences))
    found = network.parser(sentences)
    assert torch.equal(found, expected) and not found.requires_grad
    assert found.shape == (2, 6, 16)


@pytest.mark.parametrize("vectors", ["parser", "both"])
def test_lists_are_scored_alike_together_and_alone(parser: Path, vectors: str) -> None:
    reranker = random_reranker(parser, vectors)
    sizes = ((3, 4), (1, 1), (7, 5))
    lists = [random_list(*each, random.Random(each[0]), forms=WORDS[: each[0]]) for each in sizes]
    items = [reranker.model.prepare(nbest) for nbest in lists]
    with torch.inference_mode():
        together, alone = reranker.model(items), [reranker.model([item]) for item in items]
    assert together.tolist() == pytest.approx(torch.cat(alone).tolist(), abs=1e-4)
    assert together[:4].std() > 0.1


def random_reranker(parser: Path, vectors: str = "parser") -> Reranker:
    """An untrained one, with weights that say something."""
    torch.manual_seed(4)
    words = Sentence(WORDS, heads=(0, *[1] * 11), labels=("root", *["obj"] * 11))
    model = TreeNetwork.build(config(parser, vectors), [words]).eval()
    for weights in model.parameters():
        torch.nn.init.normal_(weights, std=0.5)
    return Reranker(model, 0.6)


@pytest.mark.parametrize("vectors", ["parser", "both"])
def test_scores_are_the_same_once_loaded(
    parser: Path, vectors: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the parser where it was, or elsewhere in the folder of its run; what is saved then finds it there, too."""
    own = random_reranker(parser, vectors)
    own.save_pretrained(tmp_path / "reranker")
    assert sorted(path.name for path in (tmp_path / "reranker").iterdir()) == [
        *("config.json", "model.safetensors", "vocabulary.json")
    ]
    shutil.copytree(parser, tmp_path / "run" / "model")
    monkeypatch.chdir(tmp_path)
    loaded = [Reranker.from_pretrained(tmp_path / "reranker", parser=each) for each in (None, "run")]
    loaded[1].save_pretrained(tmp_path / "again")
    monkeypatch.chdir("/")
    loaded.append(Reranker.from_pretrained(tmp_path / "again"))
    for seed in range(3):
        nbest = random_list(5, 4, random.Random(seed), forms=WORDS[seed : seed + 5])
        assert [each(nbest) for each in loaded] == [own(nbest)] * 3


def test_the_folder_says_which_parser_and_no_other_will_do(parser: Path, tmp_path: Path) -> None:
    shutil.copytree(parser, tmp_path / "moving")
    random_reranker(tmp_path / "moving").save_pretrained(tmp_path / "reranker")
    model = json.loads((tmp_path / "reranker" / "config.json").read_bytes())["model"]
    digest = json.loads((parser / "config.json").read_bytes())["digests"]["model.safetensors"]
    assert (model["vectors"], model["parser"], model["parser_digest"]) == ("parser", str(tmp_path / "moving"), digest)
    (tmp_path / "moving").rename(tmp_path / "moved")
    missing = f"the parser whose weights have the digest {digest}. There is no folder {tmp_path}/moving"
    with pytest.raises(TreeparseError, match=re.escape(missing)):
        Reranker.from_pretrained(tmp_path / "reranker")
    assert Reranker.from_pretrained(tmp_path / "reranker", parser=tmp_path / "moved")
    saved_parser(tmp_path / "moving", seed=2)
    with pytest.raises(TreeparseError, match=rf"{digest}\. The parser in .*moving is another one: .* Name its folder"):
        Reranker.from_pretrained(tmp_path / "reranker")


def test_a_parser_that_nothing_reads_is_refused(parser: Path, tmp_path: Path) -> None:
    Reranker(LogLinear.build(LogLinearConfig(bits=4), [])).save_pretrained(tmp_path / "global")
    with pytest.raises(TreeparseError, match=r"reads no parser's word vectors: leave out .*one"):
        Reranker.from_pretrained(tmp_path / "global", parser=parser)


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"vectors": "both"}, "name a parser's folder exactly where its vectors are read"),
        ({"parser": "runs/mine"}, "name a parser's folder exactly where its vectors are read"),
        ({"vectors": "theirs", "parser": "runs/mine"}, "There are no vectors 'theirs'"),
    ],
)
def test_settings_that_do_not_fit(settings: dict[str, Any], problem: str) -> None:
    with pytest.raises(TreeparseError, match=problem):
        TreeNetworkConfig(**settings)


def test_training_with_a_parser_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(TreeparseError, match="There is no folder"):
        Reranker.train(config(tmp_path / "none"), *labelled_by_word(4, seed=1))


def test_a_parser_that_reads_tags_wants_them(tmp_path: Path) -> None:
    torch.manual_seed(5)
    words = Sentence(WORDS[:2], upos=("VERB", "NOUN"), heads=(0, 1), labels=("root", "obj"))
    encoder = replace(READING, tags=("upos",))
    Parser.build(ParserConfig(encoder=encoder, arc_size=4, label_size=4), [words]).save_pretrained(tmp_path / "tags")
    network = TreeNetwork.build(config(tmp_path / "tags"), [words])
    with pytest.raises(TreeparseError, match="The model reads UPOS"):
        network.prepare(nbest_list(WORDS[:2], [((0, 1), ("root", "obj"), -1.0)]))
