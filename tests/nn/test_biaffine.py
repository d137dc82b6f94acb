import pytest
import torch
from torch import nn

from treeparse.nn import ArcBiaffine, LabelBiaffine
from treeparse.nn.biaffine import LabelVectors, Projection, Projections


def randomise(module: nn.Module) -> None:
    """Random weights: the scorers start at zero, where most mistakes do not show."""
    generator = torch.Generator().manual_seed(3)
    for parameter in module.parameters():
        parameter.data = torch.randn(parameter.shape, dtype=torch.float64, generator=generator)


def test_arc_scores_arc_by_arc() -> None:
    biaffine = ArcBiaffine(4)
    randomise(biaffine)
    heads, dependents = torch.randn(2, 2, 5, 4, dtype=torch.float64)
    scores = biaffine(heads, dependents)
    assert scores.shape == (2, 5, 5)
    for item in range(2):
        for head in range(5):
            for dependent in range(5):
                vector = heads[item, head]
                expected = vector @ biaffine.weight @ dependents[item, dependent] + vector @ biaffine.bias
                torch.testing.assert_close(scores[item, head, dependent], expected)


def test_label_scores_label_by_label() -> None:
    biaffine = LabelBiaffine(4, 6)
    randomise(biaffine)
    heads, dependents = torch.randn(2, 7, 4, dtype=torch.float64)
    scores = biaffine(heads, dependents)
    assert scores.shape == (7, 6)
    matrices = biaffine.weight.reshape(4, 6, 4).permute(1, 0, 2)
    for arc in range(7):
        for label in range(6):
            head, dependent = heads[arc], dependents[arc]
            expected = head @ matrices[label] @ dependent + biaffine.heads.weight[label] @ head
            expected += biaffine.dependents.weight[label] @ dependent + biaffine.heads.bias[label]
            torch.testing.assert_close(scores[arc, label], expected)


def test_gradients() -> None:
    arcs, labels = ArcBiaffine(3), LabelBiaffine(3, 2)
    randomise(arcs)
    randomise(labels)
    heads, dependents = (torch.randn(1, 4, 3, dtype=torch.float64, requires_grad=True) for _ in range(2))
    assert torch.autograd.gradcheck(arcs, (heads, dependents))
    assert torch.autograd.gradcheck(lambda h, d: labels(h[0], d[0]), (heads, dependents))


def label_vectors(*shape: int) -> LabelVectors:
    """Random vectors ``(B, n, size)`` of heads and dependents, with a random scorer of five labels."""
    biaffine = LabelBiaffine(shape[-1], 5)
    randomise(biaffine)
    heads, dependents = torch.randn(2, *shape, dtype=torch.float64)
    return LabelVectors(heads, dependents, biaffine)


def test_labels_are_scored_for_the_chosen_arcs_in_order() -> None:
    vectors = label_vectors(2, 4, 3)
    arcs = [(0, 2, 1), (0, 0, 2), (0, 1, 3), (1, 0, 1), (1, 1, 2)]
    pairs = [(vectors.heads[b, None, h], vectors.dependents[b, None, d]) for b, h, d in arcs]
    expected = torch.cat([vectors.biaffine(*pair) for pair in pairs])
    torch.testing.assert_close(vectors.scores_at(*torch.tensor(arcs).T), expected)


def test_scores_of_pairs_are_those_of_arcs() -> None:
    vectors = label_vectors(2, 4, 3)
    item, head, dependent = torch.tensor([(0, 2, 1), (0, 1, 2), (0, 2, 3), (1, 1, 1), (1, 2, 0), (0, 2, 1)]).T
    found = vectors.terms(1, 3).at(item, head - 1, dependent)
    torch.testing.assert_close(found, vectors.scores_at(item, head, dependent))
    torch.testing.assert_close(found, vectors.scores_from(1, 3)[item, head - 1, dependent])


@pytest.mark.parametrize("count", [0, 1, 9])
def test_scores_without_gradients_are_those_with(count: int) -> None:
    vectors = label_vectors(3, 4, 5)
    item, head, dependent = (torch.randint(end, (count,)) for end in (3, 2, 4))  # heads with several dependents
    expected = vectors.scores_at(item, head, dependent).detach()
    assert expected.shape == (count, 5)
    with torch.no_grad():
        torch.testing.assert_close(vectors.scores_at(item, head, dependent), expected)


def test_projection_starts_orthogonal_and_drops_dimensions_of_a_whole_sentence() -> None:
    torch.manual_seed(1)
    projection = Projection(20, 8, dropout=0.5)
    weight = projection.linear.weight.detach()
    torch.testing.assert_close(weight @ weight.T, torch.eye(8))
    nodes = torch.randn(3, 6, 20)
    plain = projection.eval()(nodes)
    torch.testing.assert_close(plain, nn.functional.leaky_relu(nodes @ weight.T, 0.1))
    ratio = projection.train()(nodes) / plain
    torch.testing.assert_close(ratio, ratio[:, :1].expand_as(ratio))
    assert {round(value) for value in ratio.flatten().tolist()} == {0, 2}


@pytest.mark.parametrize("size", [1, 16])
def test_scores_start_at_zero(size: int) -> None:
    vectors = torch.randn(2, 3, size)
    assert (ArcBiaffine(size)(vectors, vectors) == 0).all()


def test_projections_without_gradients_are_those_with() -> None:
    torch.manual_seed(1)
    roles = Projections(5, (3, 2, 4), 0.5).double().eval()
    nodes = torch.randn(2, 6, 5, dtype=torch.float64)
    expected = [role(nodes).detach() for role in roles]
    assert [part.shape[-1] for part in expected] == [3, 2, 4] and (expected[0] < 0).any()
    with torch.no_grad():
        for part, other in zip(roles(nodes), expected, strict=True):
            torch.testing.assert_close(part, other)
            assert part.is_contiguous()
        assert sum(int((part == 0).any()) for part in roles.train()(nodes)) == 3  # some dimensions are dropped
