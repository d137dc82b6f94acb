"""Int8 products, against integer arithmetic."""

import copy
import pickle
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from helpers.pretrained import bert_folder, encoder_and_batch
from torch import Tensor, nn

from treeparse.errors import TreeparseError
from treeparse.nn.int8 import Int8Copy, Int8Linear, Int8LSTM, Int8Products, Int8Weights, Rows, has_int8, input_levels
from treeparse.sentence import Sentence


@pytest.fixture(params=[127, 63])
def levels(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """With and without instructions for dot products of bytes."""
    instructions = {"avx2": True, "avx512_vnni": request.param == 127}
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: instructions, raising=False)
    input_levels.cache_clear()
    yield request.param
    input_levels.cache_clear()


def rounded_weights(weights: Tensor) -> Tensor:
    scales = weights.abs().amax(1, keepdim=True).clamp_min(1e-30) / 127
    return (weights / scales).round().double() * scales.double()


def rounded_rows(inputs: Tensor, levels: int) -> Tensor:
    scales = inputs.abs().amax(1, keepdim=True).clamp_min(1e-30) / levels
    return ((inputs / scales) + 0.5).floor().double() * scales.double()


def test_products_are_those_of_rounded_numbers(levels: int) -> None:
    torch.manual_seed(1)
    inputs, weights, bias = torch.randn(9, 40), torch.randn(70, 40), torch.randn(70)
    inputs[3], weights[5] = 0, 0
    in_int8 = Int8Weights(weights)
    exact = rounded_rows(inputs, levels) @ rounded_weights(weights).T
    for given, expected in ((bias, exact + bias), (None, exact)):
        found = in_int8.product(Rows.scaled_each(inputs), given)
        torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=1e-5)
    states = inputs.tanh()
    within = (states * levels + 0.5).floor().double() / levels @ rounded_weights(weights).T
    found = in_int8.product(Rows.within_one(states), bias)
    torch.testing.assert_close(found.double(), within + bias, rtol=1e-5, atol=1e-5)
    sums = torch.randn(9, 70)
    before = sums.clone()
    in_int8.add_product(sums[2:6], Rows.within_one(states[2:6]))
    before[2:6] += within[2:6]
    torch.testing.assert_close(sums, before, rtol=1e-5, atol=1e-5)


def test_a_row_comes_to_the_same_whatever_stands_beside_it() -> None:
    torch.manual_seed(1)
    layer = Int8Linear(torch.randn(33, 65), torch.randn(33))
    inputs = torch.randn(4, 7, 65) * torch.tensor([1e-3, 1.0, 10.0, 1e3])[:, None, None]
    together = layer(inputs)
    assert together.shape == (4, 7, 33)
    for item in range(4):
        for place in range(7):
            assert torch.equal(layer(inputs[item, place].unsqueeze(0))[0], together[item, place])


def test_what_is_no_number_stays_none() -> None:
    inputs = torch.zeros(2, 65)
    inputs[0, 3] = torch.nan
    found = Int8Linear(torch.randn(33, 65), None)(inputs)
    assert not found[0].isfinite().any() and found[1].isfinite().all()


def test_an_lstm_keeps_torchs_order_of_gates() -> None:
    torch.manual_seed(1)
    lstm = nn.LSTM(12, 8)
    products = Int8Products(Int8LSTM(lstm), Int8LSTM(lstm))
    inputs, states = torch.randn(5, 12), torch.randn(5, 8).tanh()
    both = products.project(inputs)
    products.add_recurrent(both, states.expand(2, 5, 8))
    gates = both[0]
    assert torch.equal(gates, both[1])
    enter, keep, new, leave = gates.split(8, 1)
    cells = torch.randn(5, 8)
    cell = keep.sigmoid() * cells + enter.sigmoid() * new.tanh()
    _, (state, expected) = lstm(inputs.unsqueeze(0), (states.unsqueeze(0), cells.unsqueeze(0)))
    torch.testing.assert_close(cell, expected[0], rtol=0, atol=0.05)
    torch.testing.assert_close(leave.sigmoid() * cell.tanh(), state[0], rtol=0, atol=0.05)


def model() -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(100, 120), nn.Tanh(), nn.Sequential(nn.Linear(120, 100)), nn.Linear(100, 3)).eval()


def test_a_copy_follows_its_model() -> None:
    original, inputs = model(), torch.randn(6, 100)
    copies = Int8Copy(original)
    found = copies.get()
    assert found is copies.get() and found is not original
    assert [type(layer) for layer in found.modules()].count(Int8Linear) == 2  # the last one is small
    assert all(type(layer) is not Int8Linear for layer in original.modules())
    with torch.no_grad():
        torch.testing.assert_close(found(inputs), original(inputs), rtol=0, atol=0.05)
        original.get_submodule("0").get_parameter("weight").mul_(-3)
        torch.testing.assert_close(copies.get()(inputs), original(inputs), rtol=0, atol=0.15)
        original.load_state_dict(model().state_dict())
        torch.testing.assert_close(copies.get()(inputs), found(inputs))
    others = copy.deepcopy(copies).get(), pickle.loads(pickle.dumps(copies)).get()
    with torch.no_grad():
        original.get_submodule("0").get_parameter("weight").zero_()
        for other in others:
            torch.testing.assert_close(other(inputs), found(inputs))


def test_what_has_no_copy() -> None:
    with pytest.raises(TreeparseError, match=r"int8 needs weights in float32 on a CPU, got float64 on cpu: cho"):
        Int8Copy(model().double()).get()
    with pytest.raises(TreeparseError, match="got float32 on meta"):
        Int8Copy(model().to("meta")).get()


def test_a_torch_without_such_products(monkeypatch: pytest.MonkeyPatch) -> None:
    assert has_int8()
    has_int8.cache_clear()
    monkeypatch.setattr("treeparse.nn.int8.Int8Weights.__init__", lambda self, weights: torch.ops.onednn.no_such_one())
    with pytest.raises(TreeparseError, match="no int8 products: choose the precision 32 or auto"):
        Int8Copy(model()).get()
    has_int8.cache_clear()


def test_a_transformer_in_eight_bits(tmp_path: Path) -> None:
    folder = bert_folder(tmp_path, hidden_size=128, intermediate_size=256, initializer_range=0.05)
    encoder, batch = encoder_and_batch(folder, [Sentence(("a", "noun", "hangs")), Sentence(("verb",))], hidden_size=64)
    with torch.inference_mode():
        found, expected = Int8Copy(encoder).get()(batch), encoder(batch)
    assert not torch.equal(found, expected)
    torch.testing.assert_close(found, expected, rtol=0, atol=0.05 * float(expected.abs().max()))
