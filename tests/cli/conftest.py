"""A small parser, its folder and a file of sentences, for the tests of all commands that parse."""

from pathlib import Path

import pytest
import torch
from helpers.parsed_files import SENTENCES, conllu, written
from helpers.sentences import learnable_sentences

from treeparse.model import Parser, ParserConfig
from treeparse.nn import BiLSTMConfig


@pytest.fixture(scope="session")
def parser() -> Parser:
    """Weights drawn at random, so that sentences get all kinds of trees."""
    torch.manual_seed(0)
    encoder = BiLSTMConfig(
        min_count=1, word_size=8, char_size=4, char_filters=4, char_widths=(3,), hidden_size=8, layers=1
    )
    parser = Parser.build(ParserConfig(encoder=encoder, arc_size=8, label_size=8), learnable_sentences(30, seed=1))
    for weights in parser.parameters():
        torch.nn.init.normal_(weights)
    return parser.eval()


@pytest.fixture(scope="session")
def model(parser: Parser, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The folder of the parser."""
    folder = tmp_path_factory.mktemp("parser") / "model"
    parser.save_pretrained(folder)
    return str(folder)


@pytest.fixture
def source(tmp_path: Path) -> str:
    """A file of four sentences of 3, 1, 12 and 2 words."""
    return written(tmp_path / "in.conllu", conllu(*SENTENCES))
