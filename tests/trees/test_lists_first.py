"""Lists of trees come before the batch, so that methods that take trees take a list as it is."""

import pytest
import torch
from helpers.tree_cases import Case, every_case_and_order, every_labeled_case, generator

from treeparse.trees import Mixture

# A list as long as the batch could be taken for the batch.
every_batch = pytest.mark.parametrize(
    ("batch", "k"), [((), 3), ((0,), 3), ((1,), 1), ((3,), 3), ((3,), 1), ((3, 3), 3), ((2, 0), 1)], ids=str
)


def lengths_of(batch: tuple[int, ...]) -> torch.Tensor:
    return torch.randint(1, 4, batch, generator=generator(2))


@every_case_and_order
@every_batch
def test_a_list_has_the_log_probabilities_of_its_trees(case: Case, batch: tuple[int, ...], k: int) -> None:
    p = case.make(case.parameters(3, seed=4, batch=batch), lengths_of(batch))
    best, drawn = p.topk(k), p.sample_without_replacement(k, generator=generator(3))
    columns = 1 + bool(case.labels)
    for trees, log_probs in ((best[:columns], best.log_probs), (drawn[:columns], drawn.log_probs)):
        assert trees[0].shape == (k, *batch, 4) and log_probs.shape == (k, *batch)
        torch.testing.assert_close(p.log_prob(*trees), log_probs, rtol=0, atol=1e-12)
    torch.testing.assert_close(p.score(*best[:columns]), best.scores, rtol=0, atol=1e-12)


@every_case_and_order
def test_columns_of_lists_are_constants_and_the_named_line_has_the_gradient(case: Case) -> None:
    parameters = [part.requires_grad_() for part in case.parameters(3, seed=4, batch=(2,))]
    p = case.make(parameters, torch.tensor([3, 2]))
    best, drawn, first = p.topk(2), p.sample_without_replacement(2, generator=generator(3)), next(p.best_first())
    assert not any(column.requires_grad for column in (*best, *drawn, *first, p.log_marginals))
    columns = 1 + bool(case.labels)
    for values in (p.score(*best[:columns]), p.log_prob(*drawn[:columns]), p.score(*first[:columns]), p.marginals):
        gradients = torch.autograd.grad(values[values > -torch.inf].square().sum(), parameters, retain_graph=True)
        assert all(gradient.isfinite().all() for gradient in gradients) and gradients[0].any()


@every_labeled_case
@every_batch
def test_a_list_of_a_mixture_has_the_log_probabilities_of_its_trees(case: Case, batch: tuple[int, ...], k: int) -> None:
    lengths = lengths_of(batch)
    p = Mixture([case.make(case.parameters(3, seed=seed, batch=batch), lengths) for seed in (4, 5)])
    heads, labels, log_probs, keys = p.sample_without_replacement(k, generator=generator(3))
    assert heads.shape == labels.shape == (k, *batch, 4) and log_probs.shape == keys.shape == (k, *batch)
    torch.testing.assert_close(p.log_prob(heads, labels), log_probs, rtol=0, atol=1e-12)
