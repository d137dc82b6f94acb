"""Items of a batch as distributions of their own, and distributions on another device."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from treeparse import LabeledCRF, NonProjectiveCRF, ProjectiveCRF, SecondOrderCRF, SiblingCRF, TreeparseError
from treeparse.trees.distribution import TreeDistribution
from treeparse.trees.labels.sources import LabelTensor

LENGTHS = torch.tensor([[4, 2, 3], [1, 4, 4]])


def scores(*axes: int) -> Tensor:
    generator = torch.Generator().manual_seed(len(axes))
    return torch.randn(2, 3, *axes, dtype=torch.float64, generator=generator).requires_grad_()


ARCS, CUBE, LABELS = scores(5, 5), scores(5, 5, 5), scores(5, 5, 2)
CASES: dict[str, Callable[[], TreeDistribution]] = {
    "nonprojective": lambda: NonProjectiveCRF(ARCS, LENGTHS, single_root=False),
    "projective": lambda: ProjectiveCRF(ARCS, LENGTHS),
    "siblings": lambda: SiblingCRF(ARCS, CUBE, LENGTHS),
    "second order": lambda: SecondOrderCRF(ARCS, CUBE, -CUBE, LENGTHS),
    "labeled": lambda: LabeledCRF(NonProjectiveCRF(ARCS, LENGTHS), LABELS),
}
INDICES: dict[str, Any] = {
    "a row": 1,
    "an item": (0, 2),
    "from the end": (-1, -1),
    "a slice": slice(1, None),
    "a column": (slice(None), 1),
    "the last dimension": (..., 0),
    "a new dimension": (None, 1),
    "a list": ([0, 1], [2, 0]),
    "a mask": LENGTHS > 2,
    "a tensor": torch.tensor([1, 1, 0]),
}


@pytest.mark.parametrize("index", INDICES.values(), ids=INDICES)
@pytest.mark.parametrize("make", CASES.values(), ids=CASES)
def test_an_index_selects_what_it_does_of_any_tensor_of_the_batch(
    make: Callable[[], TreeDistribution], index: Any
) -> None:
    p = make()
    selected = p[index]
    assert selected.batch_shape == LENGTHS[index].shape and selected.kind_of_trees == p.kind_of_trees
    torch.testing.assert_close(selected.log_partition, p.log_partition[index], rtol=0, atol=1e-12)
    places = torch.arange(6).reshape(2, 3)[index]
    torch.testing.assert_close(selected.marginals, p.marginals.flatten(0, 1)[places], rtol=0, atol=1e-12)
    found, expected = (torch.autograd.grad(each.sum(), ARCS)[0] for each in (selected.entropy(), p.entropy()[index]))
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)


def test_items_one_by_one() -> None:
    p = ProjectiveCRF(ARCS, LENGTHS)
    assert [row.batch_shape for row in p] == [(3,), (3,)]
    for index in (2, (0, 0, 0)):
        with pytest.raises(IndexError, match=r"batch of the shape \(2, 3\): ") as caught:
            p[index]
        assert isinstance(caught.value, TreeparseError)


def test_tensors_on_two_devices_are_refused() -> None:
    with pytest.raises(TreeparseError, match=r"Label scores must be on .* cpu, got meta"):
        LabeledCRF(NonProjectiveCRF(ARCS, LENGTHS), LABELS.to("meta"))
    with pytest.raises(TreeparseError, match=r"Values must be on .* cpu, got meta"):
        NonProjectiveCRF(ARCS, LENGTHS).expectation(ARCS.detach().to("meta"))


def test_label_scores_that_are_read_on_request() -> None:
    base = NonProjectiveCRF(ARCS[0], LENGTHS[0])
    p, whole = LabeledCRF(base, LabelTensor(LABELS[0])), LabeledCRF(base, LABELS[0])
    torch.testing.assert_close(p[1:].entropy(), whole.entropy()[1:])
    with pytest.raises(TreeparseError, match=r"one dimension of items, got the index 1: select several"):
        p[1]
    with pytest.raises(TreeparseError, match="stays on its device, cpu, got meta"):
        p.to("meta")


@pytest.mark.parametrize("make", CASES.values(), ids=CASES)
def test_another_device(make: Callable[[], TreeDistribution]) -> None:
    p = make()
    assert torch.equal(p.to("cpu").entropy(), p.entropy())
    assert p.to("meta").device.type == "meta"


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("make", CASES.values(), ids=CASES)
def test_a_gpu(make: Callable[[], TreeDistribution]) -> None:
    p = make()
    torch.testing.assert_close(p.to("cuda").log_partition.cpu(), p.log_partition)
