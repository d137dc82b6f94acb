"""Small parsers for tests."""

from dataclasses import replace

import pytest
import torch
from helpers.sentences import learnable_sentences

from treeparse.batch import Batch
from treeparse.model import Parse, Parser, ParserConfig
from treeparse.model.biaffine_scorer import BiaffineLabels
from treeparse.model.scorer import encoder_of
from treeparse.nn import BiLSTMConfig, Encoder
from treeparse.nn.biaffine import LabelVectors

TRAINING = learnable_sentences(40, seed=1)
ENCODER = BiLSTMConfig(
    min_count=1,
    word_size=16,
    char_size=8,
    char_filters=8,
    char_widths=(3,),
    hidden_size=16,
    layers=2,
    word_dropout=0.1,
    embedding_dropout=0.1,
    dropout=0.1,
)
CONFIG = ParserConfig(encoder=ENCODER, arc_size=24, label_size=12, dropout=0.1)


def parser_encoder(parser: Parser) -> Encoder:
    """The encoder of a parser's scorer."""
    return encoder_of(parser.scorer)


def label_vectors(parser: Parser, batch: Batch) -> LabelVectors:
    """The vectors between which a parser's biaffine scorer scores labels."""
    labels = parser.scorer(batch).labels
    assert isinstance(labels, BiaffineLabels)
    return labels.vectors


def random_parser(config: ParserConfig = CONFIG) -> Parser:
    """A parser in double precision whose weights are far from the zeros at which scores start."""
    torch.manual_seed(3)
    parser = Parser.build(config, TRAINING).double().eval()
    for name, parameter in parser.named_parameters():
        if "embedding" not in name:
            torch.nn.init.normal_(parameter, std=0.4)
    return parser


def same(first: Parse, second: Parse) -> bool:
    """Whether two parses are the same but for the last digits of their figures."""
    near = (first.log_prob, first.score) == pytest.approx((second.log_prob, second.score), rel=0, abs=1e-9)
    return near and replace(first, log_prob=second.log_prob, score=second.score) == second


def same_lists(first: list[list[Parse]], second: list[list[Parse]]) -> bool:
    """Whether two lists of parses for each sentence are the same but for last digits."""
    return all(len(a) == len(b) and all(map(same, a, b)) for a, b in zip(first, second, strict=True))
