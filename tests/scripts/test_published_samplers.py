"""The samplers that treeparse is compared with do as the literature has it: one is biased, the other is exact."""

import itertools
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from helpers.chi_square import LIMIT, chi_square_z, tree_counts
from helpers.drawn_orders import assert_sequence_law, places_in, repeated, support
from helpers.oracles import Array, all_trees, enumerated_sums, tree_scores
from helpers.ranking import random_graph, ranked_trees
from helpers.tree_samples import deviation
from support.sampling import methods, published
from support.sampling.small_graphs import WEIGHT, A, C, graphs_of_three_trees

from treeparse import NonProjectiveCRF

COUNT = 20_000
METHODS = ("AUTO", "EXPANSION", "WILSON_MARGINAL", "WILSON_REJECT", "COLBOURN")


def graph_of_two_trees() -> Array:
    """Scores of two words, root arcs of weight 1: one tree weighs 1, the other one 3."""
    scores = np.full((3, 3), -np.inf)
    scores[[0, 0, 1, 2], [1, 2, 2, 1]] = [0.0, 0.0, 0.0, np.log(3.0)]
    return scores


THREE_TREES = graphs_of_three_trees()  # of [Unb] Fig. 1
GRAPHS = pytest.mark.parametrize("scores", [*THREE_TREES, graph_of_two_trees()], ids=["three", "three too", "two"])


def law_of_wilson_rc(scores: Array) -> tuple[np.ndarray, Array]:
    """All trees (trees, n) and how often they should come: by their root arc, then by weight among those with it."""
    trees = all_trees(len(scores) - 1, True)
    weights, roots = np.exp(tree_scores(scores, trees)), (trees == 0).argmax(1)
    root_weights = np.exp(scores[0, 1:])
    below = np.bincount(roots, weights, len(root_weights))
    return trees, root_weights[roots] / root_weights.sum() * weights / np.where(below > 0, below, 1.0)[roots]


def drawn_by_wilson_rc(scores: Array, count: int = COUNT) -> np.ndarray:
    """Head lists (count, n+1)."""
    heads, steps = published.wilson_rc(scores[None], np.array([len(scores) - 1]), np.array([7], np.uint64), count)
    assert (heads[..., 0] == -1).all()
    assert (steps >= len(scores) - 2).all()
    return heads[0]


@pytest.mark.parametrize("scores", THREE_TREES)
def test_the_example_is_as_the_paper_describes_it(scores: Array) -> None:
    """Six arcs and three trees of equal weight; two thirds below A, though the root arcs to A and C weigh the same."""
    assert (np.isfinite(scores[:, 1:]).sum(), np.isfinite(scores[0]).nonzero()[0].tolist()) == (6, [A, C])
    np.testing.assert_array_equal(np.exp(scores[np.isfinite(scores)]), WEIGHT)
    trees, log_probs = support(scores, True)
    assert len(trees) == 3
    np.testing.assert_allclose(np.exp(log_probs), 1 / 3)
    _, marginals = enumerated_sums(scores, True)
    np.testing.assert_allclose(marginals[0], [0, 2 / 3, 0, 1 / 3])
    found = NonProjectiveCRF(torch.from_numpy(scores)).marginals[0]
    np.testing.assert_allclose(found, [0, 2 / 3, 0, 1 / 3])


@pytest.mark.parametrize("scores", THREE_TREES)
def test_wilson_rc_has_every_other_draw_of_the_example_below_c(scores: Array) -> None:
    shares = (drawn_by_wilson_rc(scores) == 0).mean(0)
    assert np.abs(shares - [0, 1 / 2, 0, 1 / 2]).max() < LIMIT / 2 / np.sqrt(COUNT)


def test_all_graphs_that_fit_the_example_are_taken() -> None:
    arcs = [(head, word) for head in (1, 2, 3) for word in (1, 2, 3) if head != word]
    fitting = 0
    for chosen in itertools.combinations(arcs, 4):
        scores = np.full((4, 4), -np.inf)
        for head, word in [(0, A), (0, C), *chosen]:
            scores[head, word] = 0.0
        trees = ranked_trees(scores, all_trees(3, True))[0]
        fitting += (np.sort((trees == 0).argmax(1) + 1) == [A, A, C]).all() if len(trees) == 3 else False
    assert fitting == len(THREE_TREES) == 2


@GRAPHS
def test_wilson_rc_is_biased(scores: Array) -> None:
    trees, law = law_of_wilson_rc(scores)
    np.testing.assert_allclose(np.sort(law[law > 0]), [0.25, 0.25, 0.5] if len(scores) == 4 else [0.5, 0.5])
    weights = np.exp(tree_scores(scores, trees))
    counts = tree_counts(drawn_by_wilson_rc(scores)[:, 1:], trees)
    assert chi_square_z(counts, weights / weights.sum()) > 3 * LIMIT
    assert chi_square_z(counts, law) < LIMIT


@GRAPHS
@pytest.mark.parametrize("name", METHODS)
def test_other_samplers_are_not(name: str, scores: Array) -> None:
    assert deviation(scores, True, getattr(methods, name), COUNT, methods.sample_trees, seed=7) < LIMIT


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_the_law_of_wilson_rc(n: int) -> None:
    stream = np.random.default_rng(n)
    for kind in ("equal", "tied", "random", "rootward"):
        scores = random_graph(stream, n, kind, 0.0)
        trees, law = law_of_wilson_rc(scores)
        assert chi_square_z(tree_counts(drawn_by_wilson_rc(scores)[:, 1:], trees), law) < LIMIT


def test_wilson_rc_gives_up_where_walks_do_not_end() -> None:
    scores = np.full((4, 4), -np.inf)
    for head, word in [(0, 1), (0, 2), (2, 1), (3, 1), (2, 3)]:  # no tree below word 1
        scores[head, word] = 0.0
    heads, steps = published.wilson_rc(scores[None], np.array([3]), np.array([7], np.uint64), 100, limit=50)
    lost = heads[0, :, 1] < 0
    assert 30 < lost.sum() < 70
    np.testing.assert_array_equal(steps[0][lost], 50)
    assert (heads[0][~lost, 2] == 0).all()


def mild_graphs() -> Iterator[Array]:
    for n, forbidden in [(1, 0.0), (2, 0.0), (3, 0.0), (4, 0.0), (4, 0.4)]:
        for kind in ("equal", "random"):
            yield random_graph(np.random.default_rng(n), n, kind, forbidden)


def test_the_list_draws_in_the_order_of_the_law() -> None:
    for scores in mild_graphs():
        trees, log_probs = support(scores, True)
        if len(trees):
            heads = published.draw_list(*repeated(scores, 2000, 3), min(len(trees), 2 if len(trees) > 9 else 3))
            assert_sequence_law(places_in(trees, heads[:, :, 1:]), log_probs)


def test_the_list_has_every_tree_once() -> None:
    for scores in mild_graphs():
        trees, _ = support(scores, True)
        if len(trees):
            (heads,) = published.draw_list(*repeated(scores, 1, 4), len(trees) + 5)
            assert (heads[len(trees) :] == -1).all()
            np.testing.assert_array_equal(np.sort(places_in(trees, heads[: len(trees), 1:])), np.arange(len(trees)))


def test_padding_does_not_count() -> None:
    lengths = np.array([4, 7, 2])
    scores = np.random.default_rng(2).normal(size=(3, 8, 8))
    seeds = np.arange(3).astype(np.uint64)
    heads, _ = published.wilson_rc(scores, lengths, seeds, 5)
    lists = published.draw_list(scores, lengths, seeds, 5)
    for item, n in enumerate(lengths):
        own = scores[item : item + 1, : n + 1, : n + 1].copy(), lengths[item : item + 1], seeds[item : item + 1], 5
        np.testing.assert_array_equal(published.wilson_rc(*own)[0][0], heads[item, :, : n + 1])
        np.testing.assert_array_equal(published.draw_list(*own)[0], lists[item, :, : n + 1])
        assert (heads[item, :, n + 1 :] == -1).all() and (lists[item, :, n + 1 :] == -1).all()
