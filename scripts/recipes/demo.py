"""What the recipes share: sentences of the demo treebank, and a parser small enough to train in seconds."""

from pathlib import Path

import torch

from treeparse import Parser, Sentence
from treeparse.data import load_treebank
from treeparse.model import ParserConfig
from treeparse.names import Tag
from treeparse.nn import BiLSTMConfig
from treeparse.objectives import TreeLikelihood

DATA = Path(__file__).parents[2] / "data"


def sentences(part: str = "train") -> list[Sentence]:
    """The sentences of a part of the demo treebank (train, dev or test), with tags and trees."""
    return [sentence.words for sentence in load_treebank([DATA / f"demo-{part}.conllu"])]


def small_parser(train: list[Sentence], size: int = 32, tags: tuple[Tag, ...] = ("upos",)) -> Parser:
    """An untrained parser of tags and frequent words, without dropout."""
    rates = dict.fromkeys(("word_dropout", "embedding_dropout", "dropout"), 0.0)
    encoder = BiLSTMConfig(tags=tags, word_size=size, char_filters=0, hidden_size=size, layers=1, **rates)
    return Parser.build(ParserConfig(encoder=encoder, arc_size=size, label_size=size, dropout=0.0), train)


def save_parser_of_text(folder: str) -> None:
    """Train a parser that needs no tags, for some seconds, and save it."""
    from minimum_risk import train

    torch.manual_seed(1)
    some = sentences()[:50]
    parser = small_parser(some, tags=())
    train(parser, some, TreeLikelihood(), 30)
    parser.save_pretrained(folder)
