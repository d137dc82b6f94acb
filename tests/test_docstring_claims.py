"""Claims of docstrings that no other test shows."""

import itertools
from pathlib import Path

import numpy as np
import torch
from helpers.parsers import random_parser

from treeparse import LabeledCRF, NonProjectiveCRF, Parser, Sentence, SiblingCRF
from treeparse.data.validation import undecodable_lines
from treeparse.metrics.tags import tag_counts
from treeparse.trees.labels.combination import Mixture


def test_the_tree_of_minimum_risk_of_a_mixture_may_be_in_no_components_support() -> None:
    """``Mixture.minimum_risk``: where components forbid different arcs."""
    stream = torch.Generator().manual_seed(1)
    for _ in range(200):
        components = []
        for _ in range(3):
            scores = torch.randn(5, 5, generator=stream)
            scores[torch.rand(5, 5, generator=stream) < 0.4] = -torch.inf
            components.append(LabeledCRF(NonProjectiveCRF(scores, validate_args=False), torch.zeros(5, 5, 1)))
        if all(p.log_partition > -torch.inf for p in components):
            tree = Mixture(components).minimum_risk()
            if not any(p.support.check(tree) for p in components):
                arcs = [p.arc_marginals() > 0 for p in components]
                allowed = torch.stack(arcs).any(0)
                assert all(allowed[int(head), word] for word, head in enumerate(tree.heads) if word)
                return
    raise AssertionError("no such mixture")


def test_a_mixture_may_be_of_one_sentence() -> None:
    """What it gives is what it gives of a batch of one."""
    stream = torch.Generator().manual_seed(2)
    pairs = [(torch.randn(4, 4, generator=stream), torch.randn(4, 4, 2, generator=stream)) for _ in range(2)]
    one, batch = (
        Mixture([LabeledCRF(NonProjectiveCRF(a[None] if add else a), b[None] if add else b) for a, b in pairs])
        for add in (False, True)
    )
    for values in (
        lambda p: p.minimum_risk(),
        lambda p: (p.marginals, p.log_prob(p.minimum_risk())),
        lambda p: p.sample((3,), generator=torch.Generator().manual_seed(3)),
        lambda p: p.sample_without_replacement(3, generator=torch.Generator().manual_seed(3)),
        lambda p: p.tree_marginals(*p.minimum_risk()),
    ):
        for found, expected in zip(values(one), values(batch), strict=True):
            torch.testing.assert_close(found, expected.reshape(found.shape), rtol=0, atol=0)


def test_the_faults_of_lines_are_their_first_bad_bytes() -> None:
    block = "é\nab".encode() + b"\xff\xfe\ngood\n\xc3"
    faults = undecodable_lines(block, 7)
    assert [number for number, _ in faults] == [8, 10]
    assert "byte 3 of the line (0xff)" in faults[0][1]
    assert "byte 1 of the line (0xc3)" in faults[1][1]


def test_marginals_as_given_have_the_dtype_of_the_scores() -> None:
    """``BatchedTrees.part_marginals_as_given``; arcs are float64 always."""
    batched = SiblingCRF(torch.zeros(4, 4), torch.zeros(4, 4, 4)).batched
    assert [part.dtype for part in batched.part_marginals_as_given] == [torch.float64, torch.float32]
    assert {part.dtype for part in batched.part_marginals} == {torch.float64}
    for short, full in zip(batched.part_marginals_as_given, batched.part_marginals, strict=True):
        torch.testing.assert_close(short.double(), full, rtol=0, atol=1e-7)


def test_counts_of_tags_are_those_of_words_one_by_one() -> None:
    words = ("a", "b", "c")
    tags = itertools.product(("X", "Y", "_"), repeat=3)
    for upos, xpos in itertools.islice(itertools.product([*tags], repeat=2), 0, None, 7):
        gold_upos, gold_xpos = ("X", "X", "_"), ("Y", "_", "Y")
        gold = Sentence(words, upos=gold_upos, xpos=gold_xpos)
        system = Sentence(words, upos=upos, xpos=xpos)
        counts = tag_counts([gold], [system])
        right = [[a == b for a, b in zip(*pair, strict=True)] for pair in ((gold_upos, upos), (gold_xpos, xpos))]
        assert counts[0].tolist() == [sum(right[0]), 2, sum(tag != "_" for tag in upos), 3]
        assert counts[1].tolist() == [sum(right[1]), 2, sum(tag != "_" for tag in xpos), 3]
        assert counts[-1].tolist() == [sum(a and b for a, b in zip(*right, strict=True)), 0, 0, 3]
        assert (tag_counts([gold, gold], [system, system]) == 2 * np.asarray(counts)).all()


def test_to_replace_the_file_of_mapped_weights_does_no_harm(tmp_path: Path) -> None:
    """``Parser.from_pretrained``."""
    parser, other = random_parser(), random_parser()
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.zero_()
    parser.save_pretrained(tmp_path / "model")
    other.save_pretrained(tmp_path / "other")
    mapped = Parser.from_pretrained(tmp_path / "model", mapped=True)
    before = {name: weight.clone() for name, weight in mapped.state_dict().items()}
    (tmp_path / "other" / "model.safetensors").replace(tmp_path / "model" / "model.safetensors")
    assert all(torch.equal(weight, before[name]) for name, weight in mapped.state_dict().items())
    assert any(weight.any() for weight in before.values())
