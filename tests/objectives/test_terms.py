"""Terms of a loss: each over its own sentences, with its weight of the moment."""

from dataclasses import replace

import pytest
import torch
from helpers.gold_batches import BATCH, HEADS, LENGTHS
from helpers.parsers import TRAINING, random_parser

from treeparse import NonProjectiveCRF
from treeparse.batch import Batch
from treeparse.errors import TreeparseError
from treeparse.nn import LabelBiaffine
from treeparse.objectives import (
    Entropy,
    HeadSelection,
    KBestRisk,
    MaxMargin,
    MinimumRisk,
    Objective,
    Ramp,
    SampledRisk,
    TreeLikelihood,
    Weighted,
    WeightedSum,
    total_loss,
)
from treeparse.trees import LabeledCRF

UNLABELLED = replace(BATCH, heads=None, labels=None)
MIXED = replace(BATCH, heads=HEADS.clone().index_fill_(0, torch.tensor(1), -1))


def distribution() -> LabeledCRF:
    torch.manual_seed(3)
    arcs = torch.randn(3, 5, 5, dtype=torch.float64, requires_grad=True)
    labels = torch.randn(3, 5, 5, 2, dtype=torch.float64, requires_grad=True)
    return LabeledCRF(NonProjectiveCRF(arcs, LENGTHS), labels)


def means(objective: Objective, batch: Batch) -> dict[str, float | None]:
    found = objective.terms(distribution(), batch)
    return {term.name: None if term.mean is None else float(term.mean.detach()) for term in found}


def test_each_term_is_the_mean_over_the_words_of_its_own_sentences() -> None:
    p, both = distribution(), WeightedSum([Weighted(TreeLikelihood()), Weighted(Entropy(), 0.5, "unlabelled")])
    likelihood, entropy = TreeLikelihood()(p, MIXED).detach(), p.entropy().detach()
    expected = {"TreeLikelihood": float(likelihood[[0, 2]].sum()) / 7, "Entropy": float(entropy[1]) / 2}
    assert means(both, MIXED) == pytest.approx(expected)
    loss = total_loss(both.terms(p, MIXED), p).detach()
    assert float(loss) == pytest.approx(expected["TreeLikelihood"] + 0.5 * expected["Entropy"])
    # By itself the sum is one number a sentence.
    by_sentence = torch.stack([likelihood[0], 0.5 * entropy[1], likelihood[2]])
    torch.testing.assert_close(both(p, MIXED).detach(), by_sentence)


class Summed(TreeLikelihood):
    """Returns one number for a batch."""

    def forward(self, distribution: LabeledCRF, batch: Batch) -> torch.Tensor:
        return super().forward(distribution, batch).sum()


class Misspelt(TreeLikelihood):
    """Names sentences of no kind."""

    data = "labeled"  # pyright: ignore[reportAssignmentType]


@pytest.mark.parametrize(
    ("objective", "problem"),
    [
        (Summed(), r"Summed must return a number for each of the 3 sentences of a batch, got the shape \(\)\."),
        (Misspelt(), "data of an objective must be 'labelled' or 'unlabelled' or 'all', got 'labeled'"),
    ],
)
def test_an_objective_that_would_train_on_something_else_is_refused(objective: Objective, problem: str) -> None:
    with pytest.raises(TreeparseError, match=problem):
        objective.terms(distribution(), BATCH)


@pytest.mark.parametrize("turned", [False, True])
def test_terms_share_the_scores_of_labels(monkeypatch: pytest.MonkeyPatch, turned: bool) -> None:
    """The sum's gradient is that of its terms apart, though all labels are scored once, and no arc's by itself."""
    parser, parts = random_parser(), [Weighted(TreeLikelihood()), Weighted(Entropy(), 0.5, "all")]
    batch, parameters = parser.collate(TRAINING[:7]), list(parser.scorer.parameters())
    apart = [part.weight * parser.loss(batch, part.objective) for part in parts]  # pyright: ignore[reportOperatorIssue]
    expected = torch.autograd.grad(torch.stack(apart).sum(), parameters)
    calls, original = list[str](), LabelBiaffine.pair_terms
    monkeypatch.setattr(LabelBiaffine, "pair_terms", lambda *args: calls.append("all") or original(*args))
    monkeypatch.setattr(LabelBiaffine, "forward", lambda *args: calls.append("arc by arc"))
    found = torch.autograd.grad(parser.loss(batch, WeightedSum(parts[::-1] if turned else parts)), parameters)
    torch.testing.assert_close(found, expected)
    assert calls == ["all"]
    terms = WeightedSum(parts).terms(parser.distribution(batch), batch)
    assert [term.name for term in terms] == ["TreeLikelihood", "Entropy"]


def test_terms_have_names_of_their_own() -> None:
    with pytest.raises(TreeparseError, match="Names of terms must be unique, got TreeLikelihood twice"):
        WeightedSum([Weighted(TreeLikelihood()), Weighted(TreeLikelihood(), 0.5)])
    with pytest.raises(TreeparseError, match="must have at least one term, got none"):
        WeightedSum([])


def test_a_term_without_its_sentences_is_left_out() -> None:
    both = WeightedSum([Weighted(TreeLikelihood()), Weighted(Entropy(), 0.5, "labelled", "sureness")])
    assert means(both, UNLABELLED) == {"TreeLikelihood": None, "sureness": None}
    p = distribution()
    loss = total_loss(both.terms(p, UNLABELLED), p)
    loss.backward()
    assert float(loss.detach()) == 0.0
    assert p.scores.grad is not None
    assert not p.scores.grad.any()


def test_a_ramp_by_hand() -> None:
    ramp = Ramp(2.0, 10.0, begin=0.25, until=0.75)
    assert [ramp.at(progress) for progress in (0.0, 0.25, 0.375, 0.5, 0.75, 1.0)] == [2.0, 2.0, 4.0, 6.0, 10.0, 10.0]
    for begin, until in ((0.5, 0.5), (-0.1, 1.0), (0.0, 1.1)):
        with pytest.raises(
            TreeparseError, match="A ramp must begin at a share of training from 0 and end at a greater"
        ):
            Ramp(0.0, 1.0, begin, until)


def test_progress_reaches_weights_and_scales_within_a_sum() -> None:
    within = WeightedSum([Weighted(KBestRisk(3, Ramp(0.5, 4.0))), Weighted(Entropy(), Ramp(1.0, 0.0), "all")])
    both = WeightedSum([Weighted(within, 1.0, "all")])
    p = distribution()
    for progress, scale, weight in ((0.0, 0.5, 1.0), (1.0, 4.0, 0.0)):
        both.advance(progress)
        expected = KBestRisk(3, scale)(p, BATCH) + weight * p.entropy()
        torch.testing.assert_close(both(p, BATCH), expected)
    with pytest.raises(TreeparseError, match="scale"):
        KBestRisk(3, Ramp(0.0, 1.0))


PADDED = (
    TreeLikelihood(),
    HeadSelection(),
    MaxMargin(),
    MinimumRisk("las"),
    MinimumRisk("uas"),
    SampledRisk(),
    KBestRisk(),
)


@pytest.mark.parametrize("padding", [-100, 0])
@pytest.mark.parametrize("objective", PADDED, ids=lambda objective: type(objective).__name__)
def test_losses_do_not_depend_on_the_padding_of_heads(objective: Objective, padding: int) -> None:
    node = torch.arange(5)
    words = (node > 0) & (node <= LENGTHS.unsqueeze(-1))
    heads, labels = (torch.where(words, part, padding) for part in (BATCH.heads, BATCH.labels) if part is not None)
    assert not torch.equal(heads, HEADS)
    p, values = distribution(), []
    for batch in (BATCH, Batch(LENGTHS, torch.arange(3), {}, heads, labels)):
        torch.manual_seed(1)
        values.append(objective(p, batch).detach())
        assert len(objective.terms(p, batch)) == 1
    assert torch.equal(*values) and bool(values[0].isfinite().all())
