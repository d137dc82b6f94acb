"""A run that starts from another model: its vocabularies extended, its weights where they were."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from helpers.broken_runs import break_off
from helpers.commands import Capture
from helpers.parsers import label_vectors
from helpers.trained_runs import equal, weights

from treeparse import Parser
from treeparse.data.features.words import LexicalFeatures
from treeparse.errors import TreeparseError
from treeparse.model import ParserConfig
from treeparse.nn import BiLSTMConfig
from treeparse.sentence import Sentence
from treeparse.training import TrainConfig, load_config, train
from treeparse.training.initial_parser import initial_parser
from treeparse.training.train_config import DataConfig

ENCODER = BiLSTMConfig(
    min_count=1,
    word_size=6,
    char_size=4,
    char_filters=4,
    tags=("upos",),
    tag_size=3,
    char_widths=(3,),
    hidden_size=8,
    layers=1,
)
CONFIG = ParserConfig(encoder=ENCODER, arc_size=8, label_size=5)
OLD = [
    Sentence(("the", "dog", "barks"), upos=("DET", "NOUN", "VERB"), heads=(2, 3, 0), labels=("det", "nsubj", "root")),
    Sentence(("the", "cat", "sleeps"), upos=("DET", "NOUN", "VERB"), heads=(2, 3, 0), labels=("det", "nsubj", "root")),
]
NEW = [
    Sentence(
        ("The", "zebra", "saw", "it"),
        upos=("DET", "NOUN", "VERB", "PRON"),
        heads=(2, 3, 0, 3),
        labels=("det", "nsubj", "root", "obj"),
    ),
    Sentence(("zebra", "!"), upos=("NOUN", "PUNCT"), heads=(0, 1), labels=("root", "punct")),
]


@pytest.fixture
def source(tmp_path: Path) -> str:
    """A model whose weights are all different numbers."""
    parser = Parser.build(CONFIG, OLD)
    for number, weight in enumerate(parser.parameters()):
        weight.data = number + torch.arange(1.0, weight.numel() + 1).view_as(weight) / 1e4
    parser.save_pretrained(tmp_path / "source")
    return str(tmp_path / "source")


def config(source: str | None, model: ParserConfig = CONFIG) -> TrainConfig:
    return TrainConfig(data=DataConfig(train="-", dev="-"), output="-", init_from=source, model=model)


def started(source: str, sentences: Sequence[Sentence] = NEW, model: ParserConfig = CONFIG) -> tuple[Parser, str]:
    torch.manual_seed(1)
    parser, remark = initial_parser(config(source, model), sentences)
    assert remark is not None
    return parser, remark


def test_vocabularies_are_extended_and_old_ids_stay(source: str) -> None:
    parser, remark = started(source)
    assert parser.indexer.labels.items == ("det", "nsubj", "root", "obj", "punct")
    assert parser.indexer.root_label == 2
    features, before = parser.indexer.features, Parser.from_pretrained(source).indexer.features
    assert isinstance(features, LexicalFeatures) and isinstance(before, LexicalFeatures)
    assert features.words.items == (*before.words.items, "zebra", "saw", "it", "!")
    assert features.tags["upos"].items == ("DET", "NOUN", "VERB", "PRON", "PUNCT")
    assert set(features.characters.items) - set(before.characters.items) == set("Tzrwi!") - set(before.characters.items)
    batch = parser.collate(NEW)
    assert batch.labels is not None and (batch.labels[batch.word_mask()] >= 0).all()
    assert (batch.features["words"][batch.word_mask()] != features.words.unknown_id).all()
    assert remark == (
        f"starting from {source}: labels new to the model: obj, punct (33.3% of the words); "
        "4 new words, 5 new characters, 2 new UPOS tags"
    )


def test_every_old_weight_is_where_it_was(source: str) -> None:
    """Weights of old items by name, and the scores of sentences that have no others."""
    old, (new, _) = Parser.from_pretrained(source), started(source)
    for weight in old.parameters():  # scores of a size that can be compared
        weight.data = torch.sin(100 * weight.data)
    old.save_pretrained(source)
    new, _ = started(source)
    new.eval()
    with torch.no_grad():
        scores = [parser.scorer(parser.collate(OLD)) for parser in (old, new)]
        torch.testing.assert_close(scores[0].arcs, scores[1].arcs)
        labels = [label_vectors(parser, parser.collate(OLD)).scores_from(0, 4) for parser in (old, new)]
    torch.testing.assert_close(labels[1][..., :3], labels[0])
    name = "scorer.encoder.embedding.words.weight"
    assert isinstance(old.indexer.features, LexicalFeatures)
    assert torch.equal(new.state_dict()[name][: len(old.indexer.features.words)], old.state_dict()[name])


def test_new_rows_are_those_of_a_new_parser(source: str) -> None:
    """Apart from the rows of the old model the parser is the one that the seed gives."""
    parser, _ = started(source)
    torch.manual_seed(1)
    Parser.from_pretrained(source)  # it draws, too
    expected = Parser(CONFIG, parser.indexer).state_dict()
    for name, old in Parser.from_pretrained(source).state_dict().items():
        mask = torch.ones_like(expected[name], dtype=torch.bool)
        mask[tuple(map(slice, old.shape))] = False
        assert torch.equal(parser.state_dict()[name][mask], expected[name][mask])
    first, second = (started(source)[0].state_dict() for _ in range(2))
    assert equal(first, second)


def test_a_model_that_knows_everything(source: str) -> None:
    parser, remark = started(source, OLD)
    assert remark == f"starting from {source}: it knows all labels, words and characters of data.train"
    before = Parser.from_pretrained(source).state_dict()
    assert equal(parser.state_dict(), before)


def test_rare_words_stay_unknown(source: str) -> None:
    model = replace(CONFIG, encoder=replace(ENCODER, min_count=2))
    parser, remark = started(source, model=model)
    assert isinstance(parser.indexer.features, LexicalFeatures)
    assert parser.indexer.features.words.items[-2:] == ("sleeps", "zebra")
    assert "1 new word, 1 new character, 2 new UPOS tags" in remark  # zebra, its z; tags and labels are never rare
    assert parser.indexer.labels.items[-2:] == ("obj", "punct")


def test_all_sizes_that_differ_are_named(source: str) -> None:
    encoder = replace(ENCODER, hidden_size=16, layers=2, tags=("upos", "feats"), char_widths=(3, 4), dropout=0.5)
    with pytest.raises(TreeparseError) as caught:
        started(source, model=replace(CONFIG, encoder=encoder, arc_size=99, decoder="projective"))
    message = str(caught.value)
    for part in (
        "do not fit the model",
        "model.arc_size is 8 there and 99 here",
        "model.encoder.hidden_size is 8 there and 16 here",
        "model.encoder.layers is 1 there and 2 here",
        'model.encoder.tags is ["upos"] there and ["upos", "feats"] here',
        "model.encoder.char_widths is [3] there and [3, 4] here",
        "--model.arc_size=8 ",
        "'--model.encoder.tags=[\"upos\"]'",
    ):
        assert part in message
    assert "dropout" not in message and "decoder" not in message and "min_count" not in message


def test_columns_in_another_order_do_not_fit(tmp_path: Path) -> None:
    """The weights would have the same shapes."""
    tagged = [replace(sentence, xpos=sentence.upos) for sentence in OLD]
    model = replace(CONFIG, encoder=replace(ENCODER, tags=("upos", "xpos")))
    Parser.build(model, tagged).save_pretrained(tmp_path / "source")
    turned = replace(CONFIG, encoder=replace(ENCODER, tags=("xpos", "upos")))
    with pytest.raises(TreeparseError, match=re.escape('tags is ["upos", "xpos"] there and ["xpos", "upos"] here')):
        started(str(tmp_path / "source"), tagged, turned)


def test_settings_without_a_weight_may_differ(tmp_path: Path) -> None:
    plain = replace(ENCODER, char_filters=0, tags=())
    source = Parser.build(replace(CONFIG, encoder=plain), OLD)
    for parameter in source.parameters():
        torch.nn.init.normal_(parameter)
    source.save_pretrained(tmp_path / "source")
    other = replace(plain, char_size=99, tag_size=99, char_widths=(5,), word_dropout=0.9, min_count=7)
    parser, _ = started(str(tmp_path / "source"), model=replace(CONFIG, encoder=other, single_root=False))
    assert parser.config.encoder == other
    assert torch.equal(*(each.get_parameter("scorer.arcs.weight") for each in (parser, source)))


def test_faults(source: str) -> None:
    with pytest.raises(TreeparseError, match="The model reads UPOS"):
        started(source, [replace(NEW[0], upos=None)])
    with pytest.raises(TreeparseError, match="No training sentence has a label"):
        started(source, [replace(NEW[1], labels=("_", "_"))])
    with pytest.raises(TreeparseError, match="has no tree"):
        started(source, [replace(NEW[1], heads=None, labels=None)])


def test_a_resumed_run_ends_as_an_unbroken_one(
    tiny_config: Path, trained_config: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where labels and words were added to those of the model that it started from."""
    source = trained_config.parent / "run"
    treebank = tmp_path / "train.conllu"
    text = treebank.read_text(encoding="utf-8").replace("amod", "amod:new").replace("adj1", "Adj-ł")
    treebank.write_text(text, encoding="utf-8")
    options = ["--optimization.epochs=2", "--init_from", str(source), "--output"]
    unbroken = train(load_config(tiny_config, [*options, str(tmp_path / "unbroken")]))
    words = sum(line[:1].isdigit() for line in text.splitlines())
    share = f"{text.count('amod:new') / words:.1%}"
    assert f"labels new to the model: amod:new ({share} of the words); 1 new word, 3 new characters" in (
        capsys.readouterr().out
    )
    broken = load_config(tiny_config, [*options, str(tmp_path / "broken")])
    break_off(lambda: train(broken, quiet=True), 1, 0, monkeypatch)
    resumed = train(broken, resume=True, quiet=True)
    assert equal(weights(resumed), weights(unbroken))
    assert "amod:new" in Parser.from_pretrained(resumed).indexer.labels


def test_only_seen_words_have_vectors(tmp_path: Path) -> None:
    """As they stand or lower-cased, and those of unlabelled text too."""
    (tmp_path / "some.vec").write_text("the 1 2\nThe 3 4\ndog 5 6\nzebra 7 8\nother 9 x\n", encoding="utf-8")
    data = DataConfig("a.conllu", vectors=str(tmp_path / "some.vec"), only_seen_vectors=True)
    config = TrainConfig(data, str(tmp_path), model=replace(CONFIG, encoder=replace(ENCODER, tags=())))
    for unlabelled, expected in (([], ("the", "The", "zebra")), (OLD, ("the", "The", "dog", "zebra"))):
        features = initial_parser(config, NEW, unlabelled)[0].indexer.features
        assert isinstance(features, LexicalFeatures) and features.vectors is not None
        assert features.vectors.items == expected
