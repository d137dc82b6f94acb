"""The precision in which a parser scores sentences: of its products alone, and in no training."""

import pytest
import torch
from helpers.parsers import TRAINING, random_parser

from treeparse.core import TreeparseError
from treeparse.model import Ensemble, Parser


def arcs(parser: Parser) -> torch.Tensor:
    with torch.inference_mode():
        p = parser.distribution(parser.collate(TRAINING))
    return torch.where(p.base.flat.is_arc, p.scores, 0.0)


def test_scores_are_rounded_to_bfloat16_where_the_precision_says_so() -> None:
    parser = random_parser().float()
    single = arcs(parser)
    assert parser.use_precision("bf16") is parser
    rounded = arcs(parser)
    assert not torch.equal(rounded, single)
    torch.testing.assert_close(rounded, single, rtol=0.1, atol=0.05 * float(single.abs().max()))
    assert torch.equal(arcs(parser.use_precision("32")), single)


def test_training_has_its_own_precision() -> None:
    parser = random_parser().float().use_precision("bf16").train()
    for module in parser.modules():
        if "rate" in vars(module):
            vars(module)["rate"] = 0.0
    with torch.no_grad():
        trained = parser.scorer(parser.collate(TRAINING)).arcs
        p = parser.distribution(parser.collate(TRAINING))
    torch.testing.assert_close(p.scores, trained.double())


def test_all_parsers_of_an_ensemble_take_it_and_names_are_checked() -> None:
    ensemble = Ensemble([random_parser(), random_parser()]).use_precision("bf16")
    assert [parser.precision for parser in ensemble.parsers] == ["bf16", "bf16"]
    with pytest.raises(TreeparseError, match="no precision '16'"):
        ensemble.use_precision("16")
