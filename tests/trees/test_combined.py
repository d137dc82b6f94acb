"""Several distributions as one, against enumeration: products, mixtures, and the trees found and drawn under them."""

from typing import Any

import numpy as np
import pytest
import torch
from helpers.chi_square import LIMIT, chi_square_z
from helpers.drawn_orders import assert_keys_law, assert_sequence_law, places_in
from helpers.tree_cases import NUMBA, PROJECTIVE, Case, generator
from helpers.tree_cases import Enumerated as OneEnumerated
from torch import Tensor

from treeparse import LabeledCRF, TreeparseError
from treeparse.names import COMBINATIONS, DECODERS, combination_named
from treeparse.trees import LabeledDistribution, LabelSource, Mixture, combined
from treeparse.trees.labels.combination import label_log_probs, label_mean, mixture_labels, product

LABELS, WORDS = 2, 3
CASES = [Case(single_root, kind, LABELS) for kind in (NUMBA, PROJECTIVE) for single_root in (True, False)]
every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
LENGTHS = torch.tensor([WORDS, 2, WORDS])  # of a batch
ITEMS = range(len(LENGTHS))


def components(case: Case, count: int = 3, *, forbidden: float = 0.1) -> tuple[list[LabeledCRF], list[Any]]:
    """Several distributions, and their parameters."""
    parameters = [case.parameters(WORDS, seed=8 + m, batch=(3,), scale=2.0, forbidden=forbidden) for m in range(count)]
    return [case.make(each, LENGTHS) for each in parameters], parameters


class Enumerated:
    """All labelled trees of an item under each of several distributions."""

    def __init__(self, case: Case, parameters: list[Any], item: int, words: int) -> None:
        each = [OneEnumerated(case, case.of_item(own, item, words)) for own in parameters]
        self.pair, self.parts, self.shape = each[0].values, each[0].parts.numpy(), each[0].part_scores.shape
        self.totals = torch.stack([own.totals for own in each]).numpy()
        self.log_probs = torch.stack([own.log_probs for own in each]).numpy()

    def of_trees(self, values: np.ndarray) -> np.ndarray:
        """Summed values of labelled arcs of every tree."""
        return values.reshape(-1)[self.parts].sum(-1)

    def marginals(self, probs: np.ndarray) -> np.ndarray:
        """Of labelled arcs, under probabilities of trees."""
        found = np.zeros(int(np.prod(self.shape)))
        np.add.at(found, self.parts, probs[:, None])
        return found.reshape(self.shape)

    def scores(self, how: str) -> np.ndarray:
        """Scores of all trees under the combination, by which they are best."""
        if how == "scores":
            return self.totals.mean(0)
        marginals = np.array([self.marginals(np.exp(logs)) for logs in self.log_probs])
        with np.errstate(divide="ignore"):
            return self.of_trees(marginals.mean(0) if how == "marginals" else np.log(marginals).mean(0))

    def combined(self, how: str) -> np.ndarray:
        """Log probabilities of all trees under the combination."""
        logs = np.logaddexp.reduce(self.log_probs) if how == "marginals" else self.scores(how)
        return logs - np.logaddexp.reduce(logs)

    def padded(self) -> tuple[Tensor, Tensor]:
        """Heads and labels of all trees, as those of the batch."""
        pad = (0, WORDS + 1 - self.pair[0].shape[1])
        heads, labels = (torch.nn.functional.pad(part, pad, value=-1) for part in self.pair)
        return heads, labels

    def places(self, heads: Tensor, labels: Tensor) -> np.ndarray:
        """Which trees ``(..., n+1)`` are, -1 for none."""
        words = slice(1, self.pair[0].shape[1])
        trees, rows = (torch.cat([part[..., words] for part in pair], -1) for pair in (self.pair, (heads, labels)))
        return places_in(trees.numpy(), rows.numpy())


def log_probs_of(p: LabeledDistribution, trees: Enumerated, item: int) -> np.ndarray:
    own = (torch.arange(len(LENGTHS)) == item).unsqueeze(-1)  # other items have other lengths
    heads, labels = (torch.where(own, part.unsqueeze(1), -1) for part in trees.padded())
    return p.log_prob(heads, labels)[:, item].numpy()


@every_case
@pytest.mark.parametrize("how", COMBINATIONS)
def test_log_probabilities_and_trees_by_enumeration(case: Case, how: Any) -> None:
    distributions, parameters = components(case)
    p = combined(distributions, how)
    for item in ITEMS:
        trees = Enumerated(case, parameters, item, int(LENGTHS[item]))
        expected = trees.combined(how)
        np.testing.assert_allclose(log_probs_of(p, trees, item), expected, atol=1e-9)
        marginals = trees.marginals(np.exp(expected))
        words = len(marginals)
        np.testing.assert_allclose(p.marginals[item, :words, :words].numpy(), marginals, atol=1e-9)
        scores, accuracy = trees.scores(how), trees.of_trees(marginals)
        best, likely = (trees.places(*(part[item] for part in p.decode(name))) for name in ("best", "minimum_risk"))
        assert scores[best] == pytest.approx(scores.max())
        assert expected[best] > -np.inf or how == "marginals"  # of arcs that different components allow
        assert accuracy[likely] == pytest.approx(accuracy.max())
        found = p.score(*p.decode("best"))[item]
        assert found.item() == pytest.approx(scores.max(), abs=1e-9)
        if isinstance(p, LabeledCRF):
            assert p.log_partition[item].item() == pytest.approx(np.logaddexp.reduce(scores))
            heads, labels, values, _ = (part[:, item] for part in p.topk(20))
            ranked = np.sort(scores[scores > -np.inf])[::-1][:20]
            np.testing.assert_allclose(values[: len(ranked)], ranked, atol=1e-9)
            assert (values[len(ranked) :] == -torch.inf).all()
            places = trees.places(heads[: len(ranked)], labels[: len(ranked)])
            np.testing.assert_allclose(scores[places], ranked, atol=1e-9)
            assert len(set(places)) == len(ranked)


@every_case
@pytest.mark.parametrize("how", COMBINATIONS)
def test_samples_follow_the_law(case: Case, how: Any) -> None:
    distributions, parameters = components(case)
    p = combined(distributions, how)
    heads, labels = p.sample((2000,), generator=generator(1))
    for item in ITEMS:
        trees = Enumerated(case, parameters, item, int(LENGTHS[item]))
        counts = np.bincount(trees.places(heads[:, item], labels[:, item]), minlength=len(trees.parts))
        assert abs(chi_square_z(counts, np.exp(trees.combined(how)))) < LIMIT


@pytest.mark.parametrize("case", CASES[::3], ids=lambda case: case.name)
def test_a_mixture_is_drawn_from_without_replacement(case: Case) -> None:
    """Many times all trees, of which each component lacks some: in the order of keys, which have their law."""
    parameters = [case.parameters(2, seed=5 + m, batch=(1,), scale=1.5) for m in range(2)]
    parameters[0][1][0, 1, 2, 0] = parameters[1][0][0, 2, 1] = -torch.inf
    many = [[part.expand(600, *part.shape[1:]) for part in each] for each in parameters]
    p = Mixture([case.make(each) for each in many], torch.tensor([0.3, 0.7]).log().unsqueeze(-1).expand(-1, 600))
    trees = Enumerated(case, parameters, 0, 2)
    logs = np.logaddexp.reduce(trees.log_probs + np.log([[0.3], [0.7]]))
    possible = np.flatnonzero(logs > -np.inf)
    count = len(possible)
    assert count < (trees.log_probs > -np.inf).sum()
    heads, labels, log_probs, keys = p.sample_without_replacement(count + 2, generator=generator(2))
    assert (heads[count:] == -1).all() and (labels[count:] == -1).all()
    assert (log_probs[count:] == -torch.inf).all() and (keys[count:] == -torch.inf).all()
    found = trees.places(heads[:count], labels[:count])
    np.testing.assert_allclose(log_probs[:count], logs[found], atol=1e-9)
    drawn = np.searchsorted(possible, found).T
    assert_keys_law(drawn, keys.T.numpy(), logs[possible])
    assert_sequence_law(drawn[:, :2], logs[possible])
    few = p.sample_without_replacement(3, generator=generator(2))
    assert torch.equal(few.heads, heads[:3]) and torch.equal(few.labels, labels[:3])


@pytest.mark.parametrize("single_root", [True, False])
def test_trees_without_crossing_arcs_keep_their_ratios_in_a_mixture(single_root: bool) -> None:
    distributions, parameters = components(Case(single_root, NUMBA, LABELS))
    p = Mixture(distributions).for_decoder("projective")
    assert p.for_decoder("projective") is p
    back = p.for_decoder("nonprojective")
    for item in ITEMS:
        every = Enumerated(Case(single_root, NUMBA, LABELS), parameters, item, int(LENGTHS[item]))
        some = Enumerated(Case(single_root, PROJECTIVE, LABELS), parameters, item, int(LENGTHS[item]))
        logs = np.logaddexp.reduce(every.log_probs)[every.places(*some.padded())]
        np.testing.assert_allclose(log_probs_of(p, some, item), logs - np.logaddexp.reduce(logs), atol=1e-9)
        np.testing.assert_allclose(log_probs_of(back, every, item), every.combined("marginals"), atol=1e-9)


@every_case
def test_one_alone_and_one_twice(case: Case) -> None:
    [p], _ = components(case, 1)
    assert product([p]) is p
    trees = p.sample((5,), generator=generator(3))
    for how in ("scores", "marginals"):
        torch.testing.assert_close(combined([p, p], how).log_prob(*trees), p.log_prob(*trees))
    for found in (Mixture([p]).minimum_risk(), Mixture([p, p]).minimum_risk()):
        assert all(torch.equal(*pair) for pair in zip(found, p.minimum_risk(), strict=True))
    for name in DECODERS:
        assert all(torch.equal(*pair) for pair in zip(product([p, p]).decode(name), p.decode(name), strict=True))


def test_sources_say_the_same_in_every_way() -> None:
    """By slices, at arcs, at labels, of some items; those among others up to a constant an arc."""
    distributions, _ = components(CASES[0], forbidden=0.0)
    sources = [p.labels.source for p in distributions]
    marginals = [p.arcs.batched.marginals / len(distributions) for p in distributions]
    item, head, dependent, label = torch.tensor([[0, 2, 0], [0, 1, 3], [2, 3, 1], [1, 0, 1]])
    means: list[LabelSource] = [label_mean(sources), label_log_probs(sources[0]), mixture_labels(sources, marginals)]
    for source in means:
        whole = source.from_heads(0, WORDS + 1)
        torch.testing.assert_close(source.from_heads(1, 3), whole[:, 1:3], equal_nan=True)
        arcs = source.at(item, head, dependent)
        torch.testing.assert_close(arcs, whole[item, head, dependent])
        torch.testing.assert_close(source.at_labels(item, head, dependent, label), arcs.gather(1, label[:, None])[:, 0])
        among = source.among(0, WORDS + 1, item, head, dependent)
        torch.testing.assert_close(among.log_softmax(-1), arcs.log_softmax(-1))
        torch.testing.assert_close(source.of_items(torch.tensor([2])).from_heads(0, 4), whole[2:], equal_nan=True)
        if source.bound is not None:
            assert (arcs <= source.bound).all()
    assert label_mean(sources).bound is None
    assert label_mean([label_log_probs(source) for source in sources]).bound == 0


def test_gradients_flow_into_a_product() -> None:
    case = CASES[0]
    parameters = [case.parameters(2, seed=m) for m in range(2)]
    leaves = [part.nan_to_num(0.0).requires_grad_() for each in parameters for part in each]

    def entropy(*parts: Tensor) -> Tensor:
        return product([case.make(parts[:2]), case.make(parts[2:])]).entropy()

    assert torch.autograd.gradcheck(entropy, leaves)


def test_what_cannot_be_combined() -> None:
    [p], _ = components(CASES[0], 1)
    [many], _ = components(CASES[1], 1)
    with pytest.raises(TreeparseError, match="one or more are needed, got none"):
        Mixture([])
    with pytest.raises(TreeparseError, match="NonProjectiveCRF with one root and NonProjectiveCRF with many roots"):
        product([p, many])
    with pytest.raises(TreeparseError, match="different numbers of labels, 2 and 3"):
        Mixture([p, p.relabelled([0, 1, -1])])
    with pytest.raises(TreeparseError, match=r"Unknown way to combine models 'mark': choose one of scores, log_probs"):
        combination_named("mark")
    assert combination_named("log-probs") == "log_probs"
