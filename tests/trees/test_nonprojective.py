"""The distribution over non-projective trees as users meet it."""

import numpy as np
import pytest
import torch
from torch import Tensor

from treeparse import NonProjectiveCRF, NoTreeError, TreeparseError

ROOTS = pytest.mark.parametrize("single_root", [True, False], ids=["single-root", "multi-root"])
LENGTHS = torch.tensor([[4, 3, 2], [1, 4, 3]])


@pytest.fixture
def scores() -> Tensor:
    """A batch of shape (2, 3), NaN wherever nothing may be read, two arcs forbidden."""
    generator = torch.Generator().manual_seed(1)
    scores = 3 * torch.randn(2, 3, 5, 5, generator=generator, dtype=torch.float64)
    scores[0, 0, 1, 2] = scores[1, 1, 0, 3] = -torch.inf
    scores.diagonal(dim1=-2, dim2=-1).fill_(torch.nan)
    scores[..., 0] = torch.nan
    for item in np.ndindex(2, 3):
        n = int(LENGTHS[item])
        scores[item][n + 1 :] = torch.nan
        scores[item][:, n + 1 :] = torch.nan
    return scores


def test_what_is_no_tree_has_log_probability_minus_infinity() -> None:
    """Where arguments are validated, lists of some heads raise instead, and heads beyond all nodes."""
    lists = {
        "tree": [-1, 0, 1, -1],
        "cycle": [-1, 2, 1, -1],
        "two roots": [-1, 0, 0, -1],
        "no root": [-1, 1, 1, -1],
        "head beyond the sentence": [-1, 0, 3, -1],
        "no head": [-1, -1, -1, -1],
    }
    faulty = {"head out of range": [-1, 0, 7, -1], "unknown head": [-1, 0, -1, -1]}
    p, checked = (NonProjectiveCRF(torch.zeros(4, 4), torch.tensor(2), validate_args=v) for v in (False, True))
    everything = lists | faulty
    log_probs = p.log_prob(torch.tensor(list(everything.values())))
    possible = [name for name, log_prob in zip(everything, log_probs.tolist(), strict=True) if log_prob > -torch.inf]
    assert possible == ["tree"]
    assert log_probs[0].item() == pytest.approx(-np.log(2))
    assert torch.equal(checked.log_prob(torch.tensor(list(lists.values()))), log_probs[: len(lists)])
    for heads in faulty.values():
        with pytest.raises(TreeparseError, match=rf"The head of word 2 must be .*, got {heads[2]}"):
            checked.log_prob(torch.tensor(heads))


def test_impossible_trees_and_ignored_entries_leave_gradients_finite(scores: Tensor) -> None:
    p = NonProjectiveCRF(scores.requires_grad_(), LENGTHS)
    heads = p.mode.clone()
    heads[0, 0] = torch.tensor([-1, 0, 1, 1, 1])  # holds the forbidden arc 1 -> 2
    log_probs = p.log_prob(heads)
    assert log_probs[0, 0] == -torch.inf
    log_probs[log_probs > -torch.inf].sum().backward()
    assert scores.grad is not None
    assert scores.grad.isfinite().all()
    assert not scores.grad[0, 0].any()
    assert not scores.grad[..., 0].any()


def test_non_contiguous_scores() -> None:
    scores = torch.randn(5, 5, 3, dtype=torch.float64)
    moved = scores.permute(2, 1, 0)
    assert torch.equal(NonProjectiveCRF(moved).marginals, NonProjectiveCRF(moved.contiguous()).marginals)


def test_an_item_without_a_tree_is_named_with_the_words_not_reached() -> None:
    scores = torch.zeros(2, 3, 4, 4)
    scores[1, 2, :, 2] = scores[1, 2, :, 3] = -torch.inf
    scores[1, 2, 2, 3] = 0.0
    message = r"no single-root tree in batch item \(1, 2\): no arcs .* lead from the root to words 2, 3\."
    for quantity in ("log_partition", "marginals", "mode"):
        with pytest.raises(NoTreeError, match=message):
            getattr(NonProjectiveCRF(scores), quantity)
    with pytest.raises(NoTreeError, match=message):
        NonProjectiveCRF(scores).log_prob(torch.tensor([-1, 0, 1, 1]))


@pytest.mark.parametrize(
    ("scores", "lengths", "message"),
    [
        (torch.zeros(3, 4), None, "shape"),
        (torch.zeros(4), None, "shape"),
        (torch.zeros(2, 0, 0), None, "the root"),
        (torch.zeros(4, 4, dtype=torch.int64), None, "floating-point"),
        (torch.zeros(2, 4, 4), torch.tensor([3]), "batch shape"),
        (torch.zeros(2, 4, 4), torch.tensor([3.0, 2.0]), "integers"),
        (torch.zeros(2, 4, 4), torch.tensor([3, 4]), "between 0 and the 3 words"),
        (torch.zeros(2, 4, 4), torch.tensor([-1, 3]), "between 0 and the 3 words"),
        (
            torch.zeros(4, 4).index_put((torch.tensor(2), torch.tensor(1)), torch.tensor(torch.nan)),
            None,
            "arc 2 -> 1 is nan",
        ),
        (torch.zeros(2, 4, 4).index_fill(2, torch.tensor(3), torch.inf), None, r"arc 0 -> 3 in batch item 0 is inf"),
    ],
)
def test_wrong_arguments_are_named(scores: Tensor, lengths: Tensor | None, message: str) -> None:
    with pytest.raises(TreeparseError, match=message):
        NonProjectiveCRF(scores, lengths)


@pytest.mark.parametrize("heads", [torch.zeros(3, dtype=torch.int64), torch.zeros(2, 3, 4), torch.tensor(0)])
def test_wrong_heads_are_named(heads: Tensor) -> None:
    with pytest.raises(TreeparseError, match=r"Heads must"):
        NonProjectiveCRF(torch.zeros(2, 4, 4)).log_prob(heads)
