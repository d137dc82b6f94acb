"""Siblings over all trees: best trees by enumeration, labels, bounds, mean field, and what is refused."""

import pytest
import torch
from helpers.oracles import all_trees
from helpers.second_order import siblings_of_trees
from torch import Tensor

from treeparse.batch import Batch
from treeparse.errors import NoTreeError, TreeparseError
from treeparse.objectives import MaxMargin, MeanField, TreeLikelihood
from treeparse.trees import LabeledCRF, NonProjectiveCRF, NonProjectiveSiblingCRF, SiblingCRF, climb
from treeparse.trees.approximate import changes

WORDS = 4
both_roots = pytest.mark.parametrize("single_root", [True, False])


def random_scores(*batch: int, seed: int, scale: float = 1.0, words: int = WORDS) -> tuple[Tensor, Tensor]:
    stream, nodes = torch.Generator().manual_seed(seed), words + 1
    arcs = torch.randn(*batch, nodes, nodes, generator=stream, dtype=torch.float64)
    return arcs, scale * torch.randn(*batch, nodes, nodes, nodes, generator=stream, dtype=torch.float64)


def enumerated(arcs: Tensor, siblings: Tensor, single_root: bool) -> tuple[Tensor, Tensor]:
    """All trees ``(T, n+1)`` of an item and their scores ``(T,)``."""
    trees = all_trees(len(arcs) - 1, single_root)
    flat = torch.cat([arcs.flatten(), siblings.flatten()])
    totals = flat[torch.from_numpy(siblings_of_trees(len(arcs) - 1, single_root))].sum(1)
    return torch.nn.functional.pad(torch.from_numpy(trees), (1, 0), value=-1), totals


@both_roots
def test_best_trees_and_their_scores_by_enumeration(single_root: bool) -> None:
    arcs, siblings = random_scores(2, 3, seed=1)
    p = NonProjectiveSiblingCRF(arcs, siblings, single_root=single_root)
    found = p.mode_with_bound()
    assert found.heads.shape == (2, 3, WORDS + 1) and found.certified.shape == (2, 3)
    assert torch.equal(p.mode, found.heads) and found.certified.all()
    torch.testing.assert_close(p.score(p.mode), found.scores)
    for item in torch.cartesian_prod(torch.arange(2), torch.arange(3)).tolist():
        trees, totals = enumerated(arcs[*item], siblings[*item], single_root)
        assert torch.equal(p.mode[*item], trees[totals.argmax()])
        known = torch.full((WORDS + 1,), -1)
        known[2] = trees[0, 2]
        given = p.given(known).mode[*item]
        assert torch.equal(given, trees[torch.where(trees[:, 2] == known[2], totals, -torch.inf).argmax()])


@both_roots
def test_labels(single_root: bool) -> None:
    """The best labels of the best tree, and the loss of a margin."""
    arcs, siblings = random_scores(3, seed=2)
    labels = torch.randn(3, *arcs.shape[1:], 2, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    p = LabeledCRF(NonProjectiveSiblingCRF(arcs, siblings, single_root=single_root), labels)
    trees, _ = enumerated(arcs[0], siblings[0], single_root)
    gold, lengths = trees[[5, 17, 3]], torch.full((3,), WORDS)
    loss = MaxMargin()(p, Batch(lengths, torch.arange(3), {}, gold, torch.where(gold >= 0, 0, -1)))
    for item in range(3):
        totals = enumerated(arcs[item] + labels[item].amax(-1), siblings[item], single_root)[1]
        heads, chosen = (part[item] for part in p.mode)
        assert torch.equal(heads, trees[totals.argmax()])
        words = torch.arange(1, WORDS + 1)
        assert torch.equal(chosen[1:], labels[item, heads[1:], words].argmax(-1))
        is_gold = torch.zeros(WORDS + 1, WORDS + 1, dtype=torch.bool)
        is_gold[gold[item, 1:], words] = True
        wrong = torch.stack([torch.where(is_gold, 0.0, 1.0), torch.ones(WORDS + 1, WORDS + 1)], -1)
        costs = enumerated(arcs[item] + (labels[item] + wrong).amax(-1), siblings[item], single_root)[1]
        own = enumerated(arcs[item] + labels[item, ..., 0], siblings[item], single_root)[1]
        expected = costs.max() - own[(trees == gold[item]).all(-1)].squeeze()
        torch.testing.assert_close(loss[item], expected)


def test_a_limit_stops_the_search() -> None:
    arcs, siblings = random_scores(20, seed=4, scale=3.0, words=12)
    p = NonProjectiveSiblingCRF(arcs, siblings)
    quick, whole = p.mode_with_bound(limit=1), p.mode_with_bound()
    assert whole.certified.all() and not quick.certified.all()
    assert (quick.scores <= whole.scores + 1e-9).all() and (quick.bounds >= whole.scores - 1e-9).all()
    torch.testing.assert_close(quick.scores[quick.certified], whole.scores[quick.certified])
    limited = NonProjectiveSiblingCRF(arcs, siblings, limit=1)
    assert torch.equal(limited.mode, quick.heads) and torch.equal(limited.given(quick.heads).mode, quick.heads)
    for wrong in (0, -1):
        with pytest.raises(TreeparseError, match=r"limit.* must be a number of"):
            p.mode_with_bound(limit=wrong)


def test_no_tree() -> None:
    arcs, siblings = random_scores(2, seed=4)
    siblings[1] = -torch.inf
    with pytest.raises(NoTreeError):
        NonProjectiveSiblingCRF(arcs, siblings).mode_with_bound()
    found = NonProjectiveSiblingCRF(arcs, siblings, validate_args=False).mode_with_bound()
    assert (found.heads[1] == -1).all() and found.scores[1] == found.bounds[1] == -torch.inf and found.heads[0, 1] >= 0


def test_what_needs_sums_is_refused() -> None:
    p = NonProjectiveSiblingCRF(*random_scores(2, seed=5))
    for call in (lambda: p.log_partition, lambda: p.marginals, p.entropy, lambda: p.log_prob(p.mode), p.minimum_risk):
        with pytest.raises(TreeparseError, match="Sums over nonprojective sibling trees are NP-hard"):
            call()
    for call in (lambda: p.topk(2), p.sample, lambda: p.sample_without_replacement(2)):
        with pytest.raises(TreeparseError, match="not implemented for nonprojective sibling trees"):
            call()


@both_roots
@pytest.mark.parametrize(("scale", "most"), [(0.1, 0.004), (0.3, 0.015), (1.0, 0.08)])
def test_mean_field_is_near_the_marginals(scale: float, most: float, single_root: bool) -> None:
    """In total variation of a word's head: a small part of the distance of the distribution of arcs alone."""
    arcs, siblings = random_scores(12, seed=6, scale=scale, words=5)
    p = NonProjectiveSiblingCRF(arcs, siblings, single_root=single_root)
    errors = {}
    for rounds in (0, 3):
        marginals = p.mean_field(rounds).marginals
        distances = []
        for item in range(12):
            trees, totals = enumerated(arcs[item], siblings[item], single_root)
            heads = torch.nn.functional.one_hot(trees[:, 1:], 6).to(totals)  # (T, n, n+1)
            exact = torch.einsum("t,twh->hw", totals.softmax(0), heads)
            distances.append((marginals[item, :, 1:] - exact).abs().sum(0).mean() / 2)
        errors[rounds] = float(torch.stack(distances).mean())
    assert errors[3] < most and errors[3] < errors[0] / 4


def test_mean_field_without_siblings_is_the_distribution_of_arcs() -> None:
    arcs, siblings = random_scores(2, 2, seed=7)
    p = NonProjectiveSiblingCRF(arcs, 0 * siblings, torch.tensor([[4, 3], [2, 1]]))
    torch.testing.assert_close(p.mean_field().marginals, NonProjectiveCRF(arcs, p.lengths).marginals)
    with pytest.raises(TreeparseError, match="number of rounds must be 0 or more, got -1"):
        p.mean_field(-1)
    with pytest.raises(TreeparseError, match="got sibling trees, which need no approximation"):
        LabeledCRF(SiblingCRF(arcs, siblings), torch.zeros(2, 2, 5, 5, 1)).mean_field()


@both_roots
def test_mean_field_is_differentiable(single_root: bool) -> None:
    lengths = torch.tensor([3, 2])

    def marginals(arcs: Tensor, siblings: Tensor) -> Tensor:
        return NonProjectiveSiblingCRF(arcs, siblings, lengths, single_root=single_root).mean_field().marginals

    inputs = [part.requires_grad_() for part in random_scores(2, seed=8, words=3)]
    assert torch.autograd.gradcheck(marginals, inputs, fast_mode=True)


def test_mean_field_forbids_what_scores_forbid() -> None:
    arcs, siblings = random_scores(1, seed=9)
    arcs[0, 2, 3] = -torch.inf
    siblings[0, 1, 4, 2] = -torch.inf
    marginals = NonProjectiveSiblingCRF(arcs, siblings).mean_field().marginals
    assert marginals.isfinite().all() and marginals[0, 2, 3] == 0


def test_an_objective_of_the_approximation() -> None:
    arcs, siblings = random_scores(2, seed=10)
    labels = torch.randn(2, 5, 5, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    labels[0, 1, 2] = -torch.inf  # an arc without a label
    p = LabeledCRF(NonProjectiveSiblingCRF(arcs, siblings), labels)
    heads = torch.tensor([[-1, 0, 3, 1, 1], [-1, 2, 0, 2, 2]])
    batch = Batch(torch.tensor([4, 4]), torch.arange(2), {}, heads, torch.where(heads >= 0, 1, -1))
    added = NonProjectiveSiblingCRF(arcs + labels.logsumexp(-1), siblings).mean_field().scores - labels.logsumexp(-1)
    base = NonProjectiveCRF(added.nan_to_num(nan=-torch.inf))
    expected = TreeLikelihood()(LabeledCRF(base, labels), batch)
    torch.testing.assert_close(MeanField()(p, batch), expected)
    assert MeanField().kinds() == {"TreeLikelihood": "labelled"}
    assert torch.equal(p.minimum_risk().heads, LabeledCRF(base, labels).minimum_risk().heads)
    with pytest.raises(TreeparseError, match="number of rounds must be 0 or more, got -2"):
        MeanField(rounds=-2)


@both_roots
def test_climbing_by_a_function_of_trees(single_root: bool) -> None:
    """A result is a tree that is better than all its changes; with many starts, it is the best tree of all."""
    arcs, siblings = random_scores(seed=11)
    p = NonProjectiveSiblingCRF(arcs, siblings, single_root=single_root)
    starts = NonProjectiveCRF(arcs, single_root=single_root).sample((30,), generator=torch.Generator().manual_seed(1))
    seen: list[Tensor] = []

    def score(trees: Tensor) -> Tensor:
        seen.append(trees)
        return p.score(trees)

    found = climb(score, starts, single_root=single_root)
    assert all((p.score(trees) > -torch.inf).all() for trees in seen)  # which are trees, all of them
    assert (found.scores >= p.score(starts)).all() and torch.equal(found.scores, p.score(found.heads))
    for heads, value in zip(found.heads, found.scores, strict=True):
        assert (p.score(changes(heads, single_root=single_root)) <= value).all()
    trees, totals = enumerated(arcs, siblings, single_root)
    assert torch.equal(found.best, trees[totals.argmax()])


def test_climbing_refuses_what_is_no_tree_and_scores_that_are_none() -> None:
    tree = torch.tensor([[-1, 0, 1, 2]])
    with pytest.raises(TreeparseError, match="Starts must be trees"):
        climb(lambda trees: trees.sum(-1), torch.tensor([[-1, 2, 1, 0]]))
    with pytest.raises(TreeparseError, match="Starts must be trees"):
        climb(lambda trees: trees.sum(-1), torch.tensor([[-1, 0, 0, 1]]))
    with pytest.raises(TreeparseError, match=r"Starts must be heads \(S, n\+1\)"):
        climb(lambda trees: trees.sum(-1), tree[0])
    with pytest.raises(TreeparseError, match="A score of 1 trees must be a tensor of 1 numbers"):
        climb(lambda trees: trees.float() * torch.nan, tree)
