"""Whether samplers draw trees, and each as often as it should be drawn."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scripts.support.graphs.random_scores import random_scores
from scripts.support.peers.samplers import Array, Heads, Sampler

from treeparse.trees.crf import TreeCRF

MakeDistribution = Callable[[torch.Tensor], TreeCRF]
DRAWS, LEAST_EXPECTED = 2000, 5.0  # in a test of a law, and in a cell of it
TREE_WORDS, PAIR_WORDS = 4, 3  # of its sentence
DRAWS_A_SENTENCE = 100  # draws with replacement from the same sentence of a batch, which share what is made ready


class Law(NamedTuple):
    """How a sampler did: the p-value of the chi-square test of the trees that it drew, and how many were none."""

    p: float
    wrong: int


def law_of(sampler: Sampler, family: MakeDistribution, distinct: bool) -> Law:
    """Test the draws against the probabilities of all trees or, if trees are distinct, of all ordered pairs of them."""
    scores = random_scores(np.random.default_rng(1), PAIR_WORDS if distinct else TREE_WORDS, 1)
    sentences, trees = (DRAWS, 2) if distinct else (DRAWS // DRAWS_A_SENTENCE, DRAWS_A_SENTENCE)
    heads = np.asarray(sampler.prepare(np.repeat(scores, sentences, 0), trees)())
    p = family(torch.from_numpy(scores))
    support = p.enumerate_support()[:, 0]
    probs = p.log_prob(support[:, None]).exp()[:, 0].numpy()
    codes, order = _codes(heads), _codes(support.numpy())  # the support is in the order of the codes
    places = np.searchsorted(order, codes).clip(0, len(order) - 1)
    is_tree = order[places] == codes
    if not distinct:
        return Law(chi_square(np.bincount(places[is_tree], minlength=len(probs)), probs), int((~is_tree).sum()))
    pairs = np.outer(probs / (1 - probs), probs) * (1 - np.eye(len(probs)))
    drawn = (places @ [len(probs), 1])[is_tree.all(1)]
    return Law(chi_square(np.bincount(drawn, minlength=pairs.size), pairs.ravel()), int((~is_tree).sum()))


def _codes(heads: Heads) -> Heads:
    """A number for every head list, in their lexicographic order."""
    size = heads.shape[-1]
    return heads[..., 1:] @ size ** np.arange(size - 1)[::-1]


def chi_square(counts: NDArray[np.int64], probs: Array) -> float:
    """The p-value of Pearson's test, 0 if the impossible was drawn; cells of few expected draws are pooled."""
    if counts[probs == 0].any():
        return 0.0
    order = np.argsort(probs)
    expected = probs[order] * counts.sum()
    pooled = max((expected < LEAST_EXPECTED).sum(), (expected.cumsum() < LEAST_EXPECTED).sum() + 1)
    cells, observed = (np.append(part[pooled:], part[:pooled].sum()) for part in (expected, counts[order]))
    statistic = ((observed - cells) ** 2 / cells).sum()
    halves = torch.tensor([len(cells) - 1, statistic], dtype=torch.float64) / 2
    return torch.special.gammaincc(*halves).item()


class Quality(NamedTuple):
    """What draws from a batch are like."""

    wrong: int  # that are no tree
    repeated: int  # in the lists of their sentences
    mass: float  # of a sentence's different trees, on average
    errors: float  # by which the mean log probability is off, in standard errors of independent draws


def quality(p: TreeCRF, heads: Heads) -> Quality:
    """The quality of draws (B, trees, n+1), whose entry of the root is anything."""
    lists = torch.tensor(heads, dtype=torch.int64)
    lists[..., 0] = -1
    logs = p.log_prob(lists.transpose(0, 1)).T.numpy()
    different = [np.unique(own, axis=0, return_index=True)[1] for own in lists.numpy()]
    probs = np.array([np.exp(own[index]).sum() for own, index in zip(logs, different, strict=True)])
    trees = sum((own[index] > -np.inf).sum() for own, index in zip(logs, different, strict=True))
    wrong = int((logs == -np.inf).sum())
    variance = p.covariance(p.scores, p.scores).sum().item() / logs.shape[1]
    errors = np.nan if wrong else (logs.mean(1).sum() + p.entropy().sum().item()) / np.sqrt(variance)
    return Quality(wrong, logs.size - wrong - int(trees), probs.mean(), errors)
