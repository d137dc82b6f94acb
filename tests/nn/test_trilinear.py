import torch

from treeparse.model.biaffine_scorer import PartTrilinear


def test_part_scores_part_by_part() -> None:
    trilinear = PartTrilinear(3)
    generator = torch.Generator().manual_seed(3)
    trilinear.weight.data = torch.randn(3, 3, dtype=torch.float64, generator=generator)
    heads, dependents, others = torch.randn(3, 2, 5, 3, dtype=torch.float64, generator=generator)
    scores = trilinear(heads, dependents, others)
    assert scores.shape == (2, 5, 5, 5)
    for item, head, dependent, other in torch.cartesian_prod(torch.arange(2), *[torch.arange(5)] * 3).tolist():
        mixed = trilinear.weight @ others[item, other]
        expected = (heads[item, head] * dependents[item, dependent] * mixed).sum()
        torch.testing.assert_close(scores[item, head, dependent, other], expected)


def test_a_new_one_scores_all_parts_alike_but_learns() -> None:
    trilinear, nodes = PartTrilinear(4), torch.randn(1, 3, 4)
    scores = trilinear(nodes, nodes, nodes)
    assert not scores.any()
    scores.sum().backward()
    assert trilinear.weight.grad is not None and trilinear.weight.grad.any()


def test_scores_have_the_digits_of_the_weights_under_autocast() -> None:
    trilinear, nodes = PartTrilinear(8), torch.randn(1, 4, 8)
    torch.nn.init.normal_(trilinear.weight)
    with torch.autocast("cpu", torch.bfloat16):
        scores = trilinear(nodes, nodes, nodes)
    assert scores.dtype == torch.float32
    torch.testing.assert_close(scores, trilinear(nodes, nodes, nodes))


def test_scores_of_some_arcs_and_their_gradients() -> None:
    """They equal those of all parts, whose other arcs are masked; items may have no arc."""
    trilinear, generator = PartTrilinear(3), torch.Generator().manual_seed(4)
    trilinear.weight.data = torch.randn(3, 3, dtype=torch.float64, generator=generator)
    roles = torch.randn(3, 4, 5, 3, dtype=torch.float64, generator=generator).requires_grad_()
    arcs = torch.rand(4, 5, 5, generator=generator) < 0.3
    arcs[..., 0], arcs[1] = False, False
    weights = torch.randn(4, 5, 5, 5, dtype=torch.float64, generator=generator) * arcs.unsqueeze(-1)
    found, expected = trilinear(*roles, arcs), trilinear(*roles)
    torch.testing.assert_close(found[arcs], expected[arcs], rtol=0, atol=1e-12)
    assert found.isfinite().all()
    inputs = roles, trilinear.weight
    for own, other in zip(
        torch.autograd.grad((found * weights).sum(), inputs),
        torch.autograd.grad((expected * weights).sum(), inputs),
        strict=True,
    ):
        torch.testing.assert_close(own, other, rtol=0, atol=1e-12)
    assert not trilinear(*roles, torch.zeros_like(arcs)).any()
