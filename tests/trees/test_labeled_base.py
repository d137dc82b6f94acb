"""Labels read only a few members of the distribution over trees that they are added to."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from helpers.tree_cases import generator
from torch.distributions import kl_divergence

from treeparse.trees import LabeledCRF, NonProjectiveCRF, ProjectiveCRF, TreeCRF

SCORES = {"scores", "lengths", "parts", "single_root", "kind_of_trees", "batch_shape", "event_shape"}
VALUES = {"batched", "log_partition", "log_prob", "enumerate_support", "expected_uas", "comparable"}
BASES = {"with_scores", "given", "within", "tempered", "expand", "of_items"}  # what gives a base again
MEMBERS = SCORES | VALUES | BASES | {"detach"}


@TreeCRF.register
class OtherTrees:
    """A distribution over trees of which nothing else can be seen."""

    def __init__(self, trees: Any) -> None:
        self._trees = trees

    def __getattr__(self, name: str) -> Any:
        assert name in MEMBERS, f"labels may not read {name}"
        found = getattr(self._trees, name)
        if name in BASES:
            return lambda *args, **options: OtherTrees(found(*args, **options))
        if name == "comparable":
            return lambda other: found(other._trees)
        return found


METHODS: dict[str, Callable[[LabeledCRF], Any]] = {
    "log_partition": lambda p: p.log_partition,
    "marginals": lambda p: p.marginals,
    "mode": lambda p: p.mode,
    "topk": lambda p: p.topk(5),
    "best_first": lambda p: next(p.best_first()),
    "minimum_risk": lambda p: p.minimum_risk(),
    "sample": lambda p: p.sample((3,), generator=generator(1)),
    "without_replacement": lambda p: p.sample_without_replacement(3, generator=generator(1)),
    "log_prob": lambda p: p.log_prob(p.mode),
    "score": lambda p: p.score(p.mode),
    "label_log_prob": lambda p: p.label_log_prob(*p.mode),
    "enumerate_support": lambda p: p.enumerate_support(),
    "expected_uas": lambda p: p.expected_uas(p.mode[0]),
    "expected_las": lambda p: p.expected_las(*p.mode),
    "entropy": lambda p: p.entropy(),
    "renyi_entropy": lambda p: p.renyi_entropy(2.0),
    "kl_divergence": lambda p: kl_divergence(p, p.tempered(2.0)),
    "covariance": lambda p: p.covariance(p.marginals, p.marginals),
    "given": lambda p: p.given(*p.mode).log_partition,
    "within": lambda p: p.within(p.marginals.sum(-1) > 0.1).log_partition,
    "relaxed_sample": lambda p: p.relaxed_sample(0.5, hard=True, generator=generator(1)),
    "tempered": lambda p: p.tempered(2.0).log_partition,
    "expand": lambda p: p.expand((2, 2)).log_partition,
}


@pytest.mark.parametrize("distribution", [NonProjectiveCRF, ProjectiveCRF])
@pytest.mark.parametrize("method", METHODS)
def test_labels_over_trees_of_another_kind(method: str, distribution: type[Any]) -> None:
    stream = generator(3)
    base = distribution(torch.randn(2, 5, 5, generator=stream), torch.tensor([4, 3]))
    label_scores = torch.randn(2, 5, 5, 3, generator=stream)
    found = METHODS[method](LabeledCRF(OtherTrees(base), label_scores))  # pyright: ignore[reportArgumentType]
    expected = METHODS[method](LabeledCRF(base, label_scores))
    torch.testing.assert_close(found, expected, rtol=0, atol=0, equal_nan=True)
