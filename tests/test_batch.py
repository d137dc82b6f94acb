from dataclasses import replace

import pytest
import torch

from treeparse.batch import Batch, pick_device
from treeparse.errors import TreeparseError


def test_numbers_of_a_moved_batch_are_read_where_it_was():
    batch = Batch(torch.tensor([2, 3]), torch.arange(2), {})
    there = batch.to("meta")
    assert there.on_cpu is there.to("meta").on_cpu is batch and there.num_words == 5 and there.longest == 3
    other = replace(there, lengths=torch.tensor([1, 1]))
    assert other.on_cpu is other and other.num_words == 2


@pytest.mark.parametrize("padding", [-100, 0, 7])
def test_heads_and_labels_come_out_padded_by_minus_one(padding):
    ids = torch.tensor([[padding, 2, 0, padding], [padding, 0, -100, 1]], dtype=torch.int32)
    batch = Batch(torch.tensor([2, 3]), torch.arange(2), {}, heads=ids, labels=ids)
    for found in (batch.heads, batch.labels, batch.to("meta").on_cpu.heads, replace(batch, labels=None).heads):
        assert found is not None and found.tolist() == [[-1, 2, 0, -1], [-1, 0, -100, 1]]
    nothing = Batch(
        torch.tensor([2, 3]),
        torch.arange(2),
        {},
        heads=torch.full_like(ids, -1).index_fill(1, torch.tensor(0), padding),
    )
    assert not nothing.is_labelled().any()


def test_devices_that_compute():
    assert pick_device("cpu").type == "cpu"
    assert pick_device(None) == pick_device("auto")


@pytest.mark.parametrize(
    "name", ["meta", "abacus", "cuda:99", "mkldnn", "lazy", "vulkan", "xla", "hpu", "privateuseone"]
)
def test_devices_that_do_not_compute(name):
    with pytest.raises(TreeparseError, match=f"There is no device '{name}' on this machine that computes"):
        pick_device(name)


def test_a_device_without_float64(monkeypatch):
    def ones(*size, dtype=torch.float32, **_):
        if dtype == torch.float64:
            raise TypeError(
                "Cannot convert a MPS Tensor to float64 dtype as the MPS framework doesn't support float64."
            )
        return torch.zeros(*size)

    monkeypatch.setattr(torch, "ones", ones)
    with pytest.raises(
        TreeparseError, match="'mps' does not compute in float64, which sums over trees need: choose cpu"
    ):
        pick_device("mps")
