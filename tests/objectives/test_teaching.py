"""Learning from other distributions, against enumeration."""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from helpers.gold_batches import BATCH, LENGTHS
from helpers.tree_cases import CASES, Case
from torch import Tensor

from treeparse.batch import Batch
from treeparse.errors import TreeparseError
from treeparse.objectives import ArcScores, Divergence, Itself, Reference, ShortArcs, SilverTrees, write_arc_scores
from treeparse.sentence import Sentence
from treeparse.trees import LabeledCRF, TreeDistribution

LABELED = [case for case in CASES if case.labels]
every_case = pytest.mark.parametrize("case", LABELED, ids=lambda case: case.name)
SENTENCES = tuple(Sentence(tuple(f"w{place}" for place in range(length))) for length in LENGTHS.tolist())
UNLABELLED = replace(BATCH, heads=None, labels=None, sentences=SENTENCES)


class Fixed(Reference):
    """Given distributions."""

    def __init__(self, *given: TreeDistribution) -> None:
        self.given = given

    def distributions(self, own: LabeledCRF, batch: Batch) -> Sequence[TreeDistribution]:
        return self.given


def make(case: Case, seed: int, *, forbidden: float = 0.0) -> tuple[LabeledCRF, list[Tensor]]:
    scores = case.parameters(4, seed=seed, batch=(3,), forbidden=forbidden)
    scores = [part.requires_grad_() for part in scores]
    return case.make(scores, LENGTHS), scores


def expected(p: LabeledCRF, q: Any, measure: str) -> Tensor:
    """A divergence by enumeration."""
    labelled = isinstance(q, LabeledCRF)
    own: Any = p if labelled else p.arcs
    support = own.enumerate_support()
    mine, its = own.log_prob(support), q.log_prob(support)
    weights = mine if measure == "reverse_kl" else its
    values = {"cross_entropy": -mine, "kl": its - mine, "reverse_kl": mine - its}[measure]
    return torch.where(weights > -torch.inf, weights.exp() * torch.where(weights > -torch.inf, values, 0.0), 0.0).sum(0)


@every_case
@pytest.mark.parametrize("measure", ["cross_entropy", "kl", "reverse_kl"])
@pytest.mark.parametrize("of_arcs", [False, True], ids=["labelled", "arcs"])
def test_divergences_and_their_gradients(case: Case, measure: str, of_arcs: bool) -> None:
    p, scores = make(case, 1)
    q = make(case, 2)[0].detach()
    others = [q.arcs if of_arcs else q, make(case, 3)[0].detach()]
    objective = Divergence(Fixed(*others), measure)  # pyright: ignore[reportArgumentType]
    value = objective(p, UNLABELLED)
    twin, twins = make(case, 1)
    wanted = (expected(twin, others[0], measure) + expected(twin, others[1], measure)) / 2
    torch.testing.assert_close(value, wanted)
    found, truth = torch.autograd.grad(value.sum(), scores), torch.autograd.grad(wanted.sum(), twins)
    for gradient, true in zip(found, truth, strict=True):
        torch.testing.assert_close(gradient.nan_to_num(0.0), true.nan_to_num(0.0))


def test_what_only_one_allows_is_infinitely_far() -> None:
    case = LABELED[0]
    p, (arcs, labels) = make(case, 1)
    fewer = arcs.detach().clone()
    fewer[:, 2, 1] = -torch.inf
    q = case.make([fewer, labels.detach()], LENGTHS)
    assert torch.isfinite(Divergence(Fixed(q))(p, UNLABELLED)).all()
    assert (Divergence(Fixed(q), "reverse_kl")(p, UNLABELLED) == torch.inf).all()
    assert (Divergence(Fixed(p.detach()))(q, UNLABELLED) == torch.inf).all()


def test_only_sentences_that_the_reference_is_sure_of() -> None:
    p, q = make(LABELED[0], 1)[0], make(LABELED[0], 2)[0].detach()
    best = (q.log_prob(q.mode) / LENGTHS).tolist()
    least = sorted(best)[1]
    values, all_of_them = (Divergence(Fixed(q), least_log_prob=bound)(p, UNLABELLED) for bound in (least, None))
    expected = torch.where(torch.tensor(best) >= least, all_of_them, 0.0)
    torch.testing.assert_close(values, expected)
    assert (values == 0).sum() == 1


@every_case
def test_silver_trees_by_enumeration(case: Case) -> None:
    p, scores = make(case, 1)
    q = make(case, 2)[0].detach()
    support = q.enumerate_support()
    its, order = q.log_prob(support).sort(0, descending=True)
    mine = p.log_prob(support).gather(0, order)
    torch.testing.assert_close(SilverTrees(reference=Fixed(q))(p, UNLABELLED), -mine[0])
    count = 4  # of every sentence's trees, or all where there are fewer
    weights = torch.where(its[:count] > -torch.inf, its[:count], -torch.inf).softmax(0)
    listed = torch.where(weights > 0, weights * mine[:count], 0.0)
    kbest = SilverTrees("kbest", count, Fixed(q))
    torch.testing.assert_close(kbest(p, UNLABELLED), -listed.sum(0))
    least = float((its[1] / LENGTHS).max())
    sure = its[:count] >= least * LENGTHS
    kbest = SilverTrees("kbest", count, Fixed(q), least_log_prob=least)
    value = kbest(p, UNLABELLED)
    torch.testing.assert_close(value, -(listed * sure).sum(0))
    assert 0 < sure.sum() < sure.numel()
    assert all(torch.isfinite(g[~g.isnan()]).all() for g in torch.autograd.grad(value.sum(), scores))


def test_drawn_silver_trees_cost_the_cross_entropy_on_average() -> None:
    p, q = make(LABELED[0], 1)[0], make(LABELED[0], 2)[0].detach()
    torch.manual_seed(4)
    trees = q.sample((20000,))
    spread = p.log_prob(*trees).std(0) / math.sqrt(20000)
    value = SilverTrees("sampled", 20000, Fixed(q))(p, UNLABELLED)
    assert ((value - q.cross_entropy(p)).abs() < 4.5 * spread).all()


def test_the_parser_itself_is_a_constant() -> None:
    (p, scores), (twin, twins) = make(LABELED[0], 1), make(LABELED[0], 1)
    found = torch.autograd.grad(SilverTrees()(p, UNLABELLED).sum(), scores)
    wanted = torch.autograd.grad(-twin.log_prob(twin.mode).sum(), twins)
    for gradient, true in zip(found, wanted, strict=True):
        torch.testing.assert_close(gradient, true)
    p, scores = make(LABELED[0], 1)
    [itself] = Itself().distributions(p, UNLABELLED)
    assert not itself.entropy().requires_grad
    torch.testing.assert_close(itself.entropy(), p.entropy())
    [surer] = Itself(0.25).distributions(p, UNLABELLED)
    assert (surer.entropy() < itself.entropy()).all()
    # Of its own distribution, cross entropy is at its least.
    for gradient in torch.autograd.grad(Divergence(Itself())(p, UNLABELLED).sum(), scores):
        torch.testing.assert_close(gradient.nan_to_num(0.0), torch.zeros_like(gradient), atol=1e-12, rtol=0.0)


@every_case
def test_a_prior_for_short_arcs(case: Case) -> None:
    p, _ = make(case, 5, forbidden=0.1)
    [prior] = ShortArcs(0.7).distributions(p, UNLABELLED)
    heads = prior.enumerate_support()
    node = torch.arange(heads.shape[-1])
    arcs = torch.where(heads > 0, (node - heads).abs(), 0)
    scores = torch.where((heads >= 0).any(-1), -0.7 * arcs.sum(-1).double(), -torch.inf)
    torch.testing.assert_close(prior.log_prob(heads), scores.log_softmax(0))
    assert torch.isfinite(Divergence(ShortArcs(0.7), "reverse_kl")(p, UNLABELLED)).all()


def test_arc_scores_of_a_file(tmp_path: Path) -> None:
    p, _ = make(LABELED[0], 1)
    q = make(LABELED[0], 2)[0].arcs.detach()
    scores = [q.scores[place, : length + 1, : length + 1] for place, length in enumerate(LENGTHS.tolist())]
    path = tmp_path / "scores.safetensors"
    write_arc_scores(path, SENTENCES[::-1], scores[::-1])
    value = Divergence(ArcScores(str(path)))(p, UNLABELLED)
    torch.testing.assert_close(value, expected(p, q, "cross_entropy"))
    other = replace(UNLABELLED, sentences=(Sentence(("no", "such", "words", "here")), *SENTENCES[1:]))
    with pytest.raises(TreeparseError, match="no arc scores of the sentence 'no such words here'"):
        Divergence(ArcScores(str(path)))(p, other)
    write_arc_scores(path, SENTENCES, [part[1:] for part in scores])
    with pytest.raises(TreeparseError, match=r"must have the shape \(5, 5\), .*, got \(4, 5\)"):
        Divergence(ArcScores(str(path)))(p, UNLABELLED)
    path.write_text("nonsense")
    for name in (path, tmp_path / "nothing"):
        with pytest.raises(TreeparseError, match="must be a safetensors file of arc scores"):
            ArcScores(str(name))


def test_mistakes() -> None:
    p, q = make(LABELED[0], 1)[0], make(LABELED[-1], 2)[0].detach()
    with pytest.raises(TreeparseError, match=r"give both the same model.trees and model.single_root"):
        Divergence(Fixed(q))(p, UNLABELLED)
    with pytest.raises(TreeparseError, match="must have labels: use a teacher"):
        SilverTrees(reference=ShortArcs())(p, UNLABELLED)
    for arguments in (("worst",), ("best", 3), ("kbest", 0)):
        with pytest.raises(TreeparseError):
            SilverTrees(*arguments)  # pyright: ignore[reportArgumentType]
    with pytest.raises(TreeparseError, match="measure must be 'cross_entropy' or 'kl' or 'reverse_kl', got"):
        Divergence(ShortArcs(), "distance")  # pyright: ignore[reportArgumentType]
    with pytest.raises(TreeparseError, match="decay"):
        ShortArcs(-1.0)
    with pytest.raises(TreeparseError, match="temperature"):
        Itself(0.0)
