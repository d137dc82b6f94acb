"""The samplers that treeparse is compared with do as the literature has it: one is biased, the other is exact."""

from collections.abc import Iterator

import numpy as np
import pytest
from helpers.chi_square import LIMIT, chi_square_z, tree_counts
from helpers.drawn_orders import assert_sequence_law, places_in, repeated, support
from helpers.oracles import Array, all_trees, tree_scores
from helpers.ranking import random_graph
from helpers.tree_samples import deviation
from support.sampling import published

from treeparse.kernels import sampling

COUNT = 20_000
SAMPLERS = ("AUTO", "EXPANSION", "WILSON_MARGINAL", "WILSON_REJECT", "COLBOURN")


def graph_of_three_trees() -> Array:
    """Scores of three words, all arcs of weight 1; two trees hang from word 2, one from word 1.

    It and the next one stand for the graph of [Unb] Fig. 1, whose weights were not at hand. They show what the paper
    says of it: WilsonRC draws by the root arcs' weights alone, and so trees of equal weight with unequal probabilities,
    here, and trees of unequal weight with equal ones, there.
    """
    scores = np.full((4, 4), -np.inf)
    for head, word in [(0, 1), (0, 2), (1, 2), (2, 1), (3, 1), (2, 3)]:
        scores[head, word] = 0.0
    return scores


def graph_of_two_trees() -> Array:
    """Scores of two words, root arcs of weight 1: one tree weighs 1, the other one 3."""
    scores = np.full((3, 3), -np.inf)
    scores[[0, 0, 1, 2], [1, 2, 2, 1]] = [0.0, 0.0, 0.0, np.log(3.0)]
    return scores


GRAPHS = pytest.mark.parametrize("scores", [graph_of_three_trees(), graph_of_two_trees()], ids=["three", "two"])


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


@GRAPHS
def test_wilson_rc_is_biased(scores: Array) -> None:
    trees, law = law_of_wilson_rc(scores)
    assert sorted(law[law > 0]) in ([0.25, 0.25, 0.5], [0.5, 0.5])
    weights = np.exp(tree_scores(scores, trees))
    counts = tree_counts(drawn_by_wilson_rc(scores)[:, 1:], trees)
    assert chi_square_z(counts, weights / weights.sum()) > 3 * LIMIT
    assert chi_square_z(counts, law) < LIMIT


@GRAPHS
@pytest.mark.parametrize("name", SAMPLERS)
def test_other_samplers_are_not(name: str, scores: Array) -> None:
    assert deviation(scores, True, getattr(sampling, name), COUNT, seed=7) < LIMIT


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_the_law_of_wilson_rc(n: int) -> None:
    stream = np.random.default_rng(n)
    for kind in ("equal", "tied", "random", "rootward"):
        scores = random_graph(stream, n, kind, 0.0)
        trees, law = law_of_wilson_rc(scores)
        assert chi_square_z(tree_counts(drawn_by_wilson_rc(scores)[:, 1:], trees), law) < LIMIT


def test_wilson_rc_gives_up_where_walks_do_not_end() -> None:
    scores = graph_of_three_trees()
    scores[1, 2] = -np.inf  # no tree below word 1
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
