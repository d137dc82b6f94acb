"""The precision in which a parser scores sentences: of its products alone, and in no training."""

import pytest
import torch
from helpers.parsers import TRAINING, random_parser

from treeparse.errors import TreeparseError
from treeparse.model import Ensemble, Parser


def arcs(parser: Parser) -> torch.Tensor:
    with torch.inference_mode():
        p = parser.distribution(parser.collate(TRAINING))
    return torch.where(p.base.batched.is_arc, p.scores, 0.0)


def test_scores_are_rounded_to_bfloat16_where_the_precision_says_so() -> None:
    parser = random_parser().float()
    single = arcs(parser)
    assert parser.use_precision("bf16") is parser
    rounded = arcs(parser)
    assert not torch.equal(rounded, single)
    torch.testing.assert_close(rounded, single, rtol=0.1, atol=0.05 * float(single.abs().max()))
    assert torch.equal(arcs(parser.use_precision("32")), single)


def test_all_that_is_found_in_bfloat16_is_near_what_single_precision_finds() -> None:
    parser = random_parser().float()
    single, rounded = parser.parse(TRAINING), parser.use_precision("bf16").parse(TRAINING)
    pairs = [
        (a, b) for one, other in zip(single, rounded, strict=True) for a, b in zip(one.heads, other.heads, strict=True)
    ]
    assert sum(a == b for a, b in pairs) > 0.9 * len(pairs)
    assert [p.log_prob for p in rounded] == pytest.approx([p.log_prob for p in single], abs=2.0)
    for lists in (parser.kbest(TRAINING[:3], 2), parser.sample(TRAINING[:3], 2)):
        assert all(len(found) == 2 for found in lists)
    with torch.autocast("cpu", torch.bfloat16):
        assert len(parser.parse(TRAINING[:3])) == 3


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
    with pytest.raises(TreeparseError, match="Unknown precision '16'"):
        ensemble.use_precision("16")


def test_scores_in_eight_bits_are_for_parsing_alone() -> None:
    parser = random_parser().float()
    single = arcs(parser)
    rounded = arcs(parser.use_precision("int8"))
    assert not torch.equal(rounded, single)
    torch.testing.assert_close(rounded, single, rtol=0, atol=0.05 * float(single.abs().max()))
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(arcs(parser), rounded)
    p = parser.distribution(parser.collate(TRAINING))
    assert p.scores.requires_grad
    torch.testing.assert_close(torch.where(p.base.batched.is_arc, p.scores, 0.0), single, rtol=1e-5, atol=1e-4)
    names = set(parser.state_dict())
    assert names == set(random_parser().state_dict())
    assert not [name for name, _ in parser.named_modules() if "int8" in name]
    alone = [parser.parse([sentence])[0] for sentence in TRAINING[:5]]
    together = parser.parse(TRAINING)
    assert [(parse.heads, parse.labels) for parse in alone] == [(p.heads, p.labels) for p in together[:5]]


def test_eight_bits_are_for_single_precision_on_a_cpu() -> None:
    with pytest.raises(TreeparseError, match="got float64 on cpu"):
        random_parser().use_precision("int8").parse([["a"]])
