"""Parsers that prune unlikely arcs: which arcs stay possible, and what no pruning may change."""

import itertools
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from helpers.oracles import all_trees
from helpers.parsers import CONFIG, TRAINING, random_parser
from helpers.tree_cases import generator

from treeparse import NonProjectiveCRF, ProjectiveCRF
from treeparse.errors import TreeparseError
from treeparse.model import Ensemble, Parser, ParserConfig
from treeparse.model.parser import known_arcs, likely_arcs
from treeparse.model.parser_config import LinearConfig
from treeparse.objectives import TreeLikelihood
from treeparse.sentence import Sentence
from treeparse.training import load_config, train
from treeparse.trees.parts import arcs_of

LEAST = 0.05
KINDS: list[str] = ["siblings", "second_order"]
every_kind = pytest.mark.parametrize("trees", KINDS)


def pruning_parser(trees: str = "second_order", least: float = LEAST) -> Parser:
    return random_parser(replace(CONFIG, trees=trees, part_size=8, prune_below=least))


@pytest.mark.parametrize("crossing", [True, False])
@pytest.mark.parametrize("words", [1, 3, 5])
def test_likely_arcs_equal_enumeration(words: int, crossing: bool) -> None:
    scores = 3 * torch.randn(words + 1, words + 1, dtype=torch.float64, generator=generator(words))
    trees = torch.from_numpy(all_trees(words, True, projective=not crossing))
    heads = torch.cat([torch.full((len(trees), 1), -1), trees], 1)
    weights = scores[trees, torch.arange(1, words + 1)].sum(-1).softmax(0)
    marginals = (arcs_of(heads) * weights[:, None, None]).sum(0)
    p = (NonProjectiveCRF if crossing else ProjectiveCRF)(scores[None])
    for least in (0.001, 0.1, 0.9):
        expected = (marginals >= least) | arcs_of(heads[weights.argmax()])
        assert torch.equal(likely_arcs(p, least)[0], expected)
        # The trees in which the last word depends on the root, and one that is no tree at all.
        within = torch.ones(1, words + 1, words + 1, dtype=torch.bool)
        within[0, 1:, words] = False
        has = heads[:, words] == 0
        if has.any():
            conditional = (arcs_of(heads) * (weights * has / weights[has].sum())[:, None, None]).sum(0)
            best = heads[torch.where(has, weights, 0.0).argmax()]
            expected = expected | (conditional >= least) | arcs_of(best)
        assert torch.equal(likely_arcs(p, least, within)[0], expected)
        nothing = torch.zeros_like(within)
        assert torch.equal(likely_arcs(p, least, nothing), likely_arcs(p, least))


def test_known_arcs_of_whole_partial_and_crossing_trees() -> None:
    parser = pruning_parser()
    forms = ("a", "b", "c", "d")
    labels = ("root", "x", "x", "x")
    whole, partial = (
        Sentence(forms, heads=(0, 1, 1, 2), labels=labels),
        Sentence(forms, heads=(0, 1, -1, -1), labels=labels),
    )
    mask = known_arcs(parser.collate([whole, partial]), crossing=True)
    assert mask is not None and mask[0, :, 1:].sum(0).tolist() == [1] * 4
    assert mask[1, :, 3:].all() and not mask[1, 2:, 1].any()
    opened = known_arcs(parser.collate([whole]), crossing=False)  # the arc from word 2 to word 4 crosses another
    assert opened is not None and not torch.equal(opened, mask[:1]) and (opened | ~mask[:1]).all()
    assert known_arcs(parser.collate([Sentence(forms)]), crossing=True) is None


@every_kind
@torch.no_grad()
def test_a_pruned_distribution_is_the_whole_one_within_likely_arcs(trees: str) -> None:
    parser = pruning_parser(trees)
    batch = parser.collate(replace(each, heads=None, labels=None) for each in TRAINING[:6])
    whole, pruned = parser.distribution(batch, prune=False), parser.distribution(batch)
    likely = likely_arcs(ProjectiveCRF(parser.scorer(batch).arcs, batch.lengths), LEAST)
    assert 0.1 < float(likely.float().mean()) < 0.9 * float((whole.base.scores > -torch.inf).float().mean())
    expected = whole.within(likely)
    torch.testing.assert_close(pruned.log_partition, expected.log_partition, rtol=0, atol=1e-12)
    torch.testing.assert_close(pruned.marginals, expected.marginals, rtol=0, atol=1e-12)
    for found, own in zip(pruned.mode, expected.mode, strict=True):
        assert torch.equal(found, own)


@every_kind
def test_training_keeps_known_arcs_and_learns_as_within(trees: str) -> None:
    """The loss and its gradients are those of the distribution that is pruned after all parts are scored."""
    parser = pruning_parser(trees)
    batch = parser.collate(TRAINING[:6])
    loss = parser.loss(batch, TreeLikelihood())
    assert loss.isfinite()
    loss.backward()
    found = {name: weights.grad.clone() for name, weights in parser.named_parameters() if weights.grad is not None}
    parser.zero_grad()
    likely = likely_arcs(
        ProjectiveCRF(parser.scorer(batch).arcs.detach(), batch.lengths), LEAST, known_arcs(batch, crossing=False)
    )
    p = parser.distribution(batch, prune=False).within(likely)
    expected = TreeLikelihood()(p, batch).sum() / batch.num_words
    torch.testing.assert_close(loss, expected, rtol=0, atol=1e-12)
    expected.backward()
    for name, weights in parser.named_parameters():
        if weights.grad is not None and weights.grad.any():
            torch.testing.assert_close(found[name], weights.grad, rtol=1e-9, atol=1e-12)


@every_kind
def test_measuring_and_parsing_do_not_know_the_gold_arcs(trees: str) -> None:
    parser = pruning_parser(trees, 0.4)
    bare = parser.parse([each.forms for each in TRAINING[:8]])
    batch = parser.collate(TRAINING[:8])
    parses, loss = parser.measure(batch, TRAINING[:8], TreeLikelihood())
    assert [each.heads for each in parses] == [each.heads for each in bare]
    assert [each.heads for each in parser.parse(TRAINING[:8])] == [each.heads for each in bare]
    assert any(parse.heads != each.heads for parse, each in zip(bare, TRAINING, strict=False))
    assert 0 < loss < 100  # although some gold arcs are unlikely
    assert all(-1000 < parse.log_prob < 0 for parse in parser.score_trees(TRAINING[:8]))


def test_known_heads_and_possible_heads_are_kept() -> None:
    parser = pruning_parser(least=0.4)
    forms = TRAINING[0].forms
    count = len(forms)
    for head, word in itertools.permutations(range(count + 1), 2):
        if not word:
            continue
        heads = tuple(head if own == word else -1 for own in range(1, count + 1))
        [parse] = parser.parse([Sentence(forms, heads=heads, labels=("_",) * count)], keep_heads=True)
        assert parse.heads[word - 1] == head
    every = tuple(range(count + 1))
    allowed = tuple((0,) if word == count else every[:word] + every[word + 1 :] for word in range(1, count + 1))
    [parse] = parser.parse([Sentence(forms, allowed=allowed)], within=True)
    assert parse.heads[-1] == 0


def test_ensembles_do_not_prune() -> None:
    parser = pruning_parser(least=0.4)
    alone = Parser(replace(parser.config, prune_below=0.0), parser.indexer).double().eval()
    alone.load_state_dict(parser.state_dict())
    ensemble, [parse] = Ensemble([parser, parser]), alone.score_trees(TRAINING[:1])
    [own] = ensemble.score_trees(TRAINING[:1])
    assert own.log_prob == pytest.approx(parse.log_prob, abs=1e-9)


def test_a_pruned_run_parses(tiny_config: Path, tmp_path: Path) -> None:
    options = [
        "--model.trees=second_order",
        "--model.part_size=4",
        "--model.prune_below=0.05",
        "--optimization.epochs=2",
    ]
    parser = Parser.from_pretrained(train(load_config(tiny_config, options), quiet=True))
    assert parser.config.prune_below == 0.05
    assert all(parse.heads.count(0) == 1 for parse in parser.parse(TRAINING[:4]))
    lists = parser.kbest(TRAINING[:4], 5)
    samples = parser.sample(TRAINING[:4], 5)
    assert all(each[0].log_prob >= max(draw.log_prob for draw in own) for each, own in zip(lists, samples, strict=True))


@pytest.mark.parametrize(
    "settings, problem",
    [
        ({"trees": "siblings", "prune_below": 1.0}, "from 0 up to, but not including, 1, got 1.0"),
        ({"trees": "siblings", "prune_below": -0.1}, "got -0.1"),
        ({"trees": "siblings", "prune_below": float("nan")}, "got nan"),
        ({"trees": "projective", "prune_below": 0.1}, "not projective. Set it to 0"),
        ({"trees": "siblings", "prune_below": 0.1, "scorer": LinearConfig()}, "set it to 0"),
    ],
)
def test_settings_that_cannot_be(settings: dict, problem: str) -> None:
    with pytest.raises(TreeparseError, match=problem):
        ParserConfig(**settings)
