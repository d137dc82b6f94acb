"""Int8 matrix products: twice as fast as float32 on CPUs with instructions for them.

Each output of a layer has its own scale, from its weights. Each row of inputs has its own scale, from its values, so a
row's results do not depend on other rows. Sums of products are exact. Biases and everything else stay in float32.
"""

import copy
from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from treeparse.errors import TreeparseError
from treeparse.kernels.networks import round_rows, round_within_one

from .biaffine import LabelBiaffine
from .packed import lstm_weights
from .precision import cpu_has_any

WEIGHT_LEVELS = 127  # on each side of zero
VNNI = ("avx512_vnni", "avx_vnni", "avx10_1", "amx_int8")  # as torch names instructions
LEAST_WEIGHTS = 10_000  # of a linear layer, because int8 does not speed up smaller ones
LEAST_SCALE = 1e-30  # of outputs whose weights are all zero
FLOAT_OUTPUTS = (1.0, 0, torch.float32)


class Rows(NamedTuple):
    """Int8 inputs: (value - zero) * scale, times the row's scale if ``row_scales`` is set."""

    values: Tensor  # (N, inputs) uint8
    zero: int
    scale: float
    row_scales: Tensor | None = None  # (N, 1)

    @classmethod
    def scaled_each(cls, inputs: Tensor) -> "Rows":
        """Round rows (N, inputs), each with its own scale, set by its largest absolute value."""
        levels, inputs = input_levels(), inputs.contiguous()
        values, scales = torch.empty(inputs.shape, dtype=torch.uint8), inputs.new_empty(len(inputs), 1)
        round_rows(inputs.numpy(), levels, values.numpy(), scales.numpy())
        return cls(values, levels + 1, 1.0, scales)

    @classmethod
    def within_one(cls, inputs: Tensor) -> "Rows":
        """Round rows (N, inputs) of values from -1 to 1."""
        levels, inputs = input_levels(), inputs.contiguous()
        values = torch.empty(inputs.shape, dtype=torch.uint8)
        round_within_one(inputs.numpy(), levels, values.numpy())
        return cls(values, levels + 1, 1 / levels)


class Int8Weights:
    """The weights (outputs, inputs) of a linear map in int8."""

    def __init__(self, weights: Tensor) -> None:
        scales = weights.abs().amax(1).clamp_min(LEAST_SCALE) / WEIGHT_LEVELS
        packed = torch.ops.onednn.qlinear_prepack((weights / scales.unsqueeze(1)).round().to(torch.int8), None)
        self._parts = packed, scales, torch.zeros(len(scales), dtype=torch.long)

    def product(self, rows: Rows, bias: Tensor | None, out: Tensor | None = None) -> Tensor:
        """Multiply rows (N, inputs) to (N, outputs): a new tensor, or ``out`` if the rows have their own scales."""
        if rows.row_scales is None:
            return self._product(rows, bias)
        products = self._product(rows, None)
        out = products if out is None else out
        if bias is None:
            return torch.mul(products, rows.row_scales, out=out)
        return torch.addcmul(bias, products, rows.row_scales, out=out)

    def add_product(self, sums: Tensor, rows: Rows) -> None:
        """Add the product to contiguous ``sums`` (N, outputs) in place; all rows must have the same scale."""
        arguments = (rows.values, rows.scale, rows.zero, *self._parts, sums, None, *FLOAT_OUTPUTS)
        torch.ops.onednn.qlinear_pointwise.binary(*arguments, 1.0, 0, "sum", 1.0, "none", [], "")

    def _product(self, rows: Rows, bias: Tensor | None) -> Tensor:
        arguments = (rows.values, rows.scale, rows.zero, *self._parts, bias, *FLOAT_OUTPUTS)
        return torch.ops.onednn.qlinear_pointwise(*arguments, "none", [], "")


class Int8Linear(nn.Module):
    """Replacement, outside training, for a ``torch.nn.Linear`` with these weights (outputs, inputs)."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        super().__init__()
        self.weight, self.bias = weight.detach(), None if bias is None else bias.detach()
        self.out_features, self.in_features = weight.shape
        self.in_int8: Int8Weights = Int8Weights(self.weight)

    def forward(self, inputs: Tensor) -> Tensor:
        """Map inputs (..., inputs) to (..., outputs)."""
        outputs = self.in_int8.product(Rows.scaled_each(inputs.flatten(0, -2)), self.bias)
        return outputs.unflatten(0, inputs.shape[:-1])


class Int8LSTM(nn.Module):
    """Replacement for a ``torch.nn.LSTM`` of one layer: one direction of `Int8Products`."""

    def __init__(self, lstm: nn.LSTM) -> None:
        super().__init__()
        inputs, recurrent, bias = (weights.detach() for weights in lstm_weights(lstm))
        self.hidden_size: int = lstm.hidden_size
        self.inputs, self.recurrent, self.bias = Int8Weights(inputs), Int8Weights(recurrent), bias


class Int8Products:
    """The products of two directions of a packed layer (`treeparse.nn.packed.Products`)."""

    def __init__(self, *directions: Int8LSTM) -> None:
        self.hidden_size, self.directions = directions[0].hidden_size, directions

    def project(self, inputs: Tensor) -> Tensor:
        gates = inputs.new_empty(2, len(inputs), 4 * self.hidden_size)
        for direction, out in zip(self.directions, gates, strict=True):
            direction.inputs.product(Rows.scaled_each(inputs), direction.bias, out)
        return gates

    def add_recurrent(self, gates: Tensor, states: Tensor) -> None:
        for direction, sums, previous in zip(self.directions, gates, states, strict=True):
            direction.recurrent.add_product(sums, Rows.within_one(previous))


class Int8Copy:
    """An int8 copy of a model, made on first use and again after its weights change."""

    def __init__(self, model: nn.Module) -> None:
        self._model = model
        self._copy: tuple[object, nn.Module] | None = None

    def get(self) -> Any:
        """Return the copy, which shares all other tensors with the model.

        Raises ``TreeparseError`` for weights that are not float32 on a CPU, or a build of torch without int8 products.
        """
        weights = tuple(self._model.parameters())
        for weight in weights:
            if (weight.device.type, weight.dtype) != ("cpu", torch.float32):
                raise TreeparseError(
                    "The precision int8 needs weights in float32 on a CPU, got "
                    f"{str(weight.dtype).removeprefix('torch.')} on {weight.device}: choose another precision."
                )
        if not has_int8():
            raise TreeparseError("This build of torch has no int8 products: choose the precision 32 or auto.")
        versions = tuple((weight.data_ptr(), weight._version) for weight in weights)
        if self._copy is None or self._copy[0] != versions:
            self._copy = versions, _in_int8(self._model)
        return self._copy[1]

    def __reduce__(self) -> tuple[type["Int8Copy"], tuple[nn.Module]]:
        return Int8Copy, (self._model,)  # packed int8 weights can be neither copied nor pickled


def _in_int8(module: nn.Module) -> nn.Module:
    """Return a copy of a module whose large products, and those of its submodules, are in int8."""
    if isinstance(module, nn.Linear):
        return Int8Linear(module.weight, module.bias) if module.weight.numel() >= LEAST_WEIGHTS else module
    if isinstance(module, nn.LSTM):
        return Int8LSTM(module)
    copied = copy.copy(module)
    # The copy has dictionaries of its own: a hook that a library registers on the copy must not run in the model too.
    vars(copied).update({name: value.copy() for name, value in vars(module).items() if isinstance(value, dict)})
    parts = {name: part if part is None else _in_int8(part) for name, part in module._modules.items()}
    if isinstance(module, LabelBiaffine):
        parts["mixer"] = Int8Linear(module.weight.T, None)
    copied._modules = parts
    return copied


@cache
def input_levels() -> int:
    """Return the number of levels that an input may have on each side of zero.

    Only 63 without instructions for dot products of bytes, because the CPU then adds pairs of products in 16 bits,
    which 8-bit inputs would overflow.
    """
    return 127 if cpu_has_any(VNNI) else 63


@cache
def has_int8() -> bool:
    """Return whether this build of torch computes int8 products."""
    try:
        product = Int8Weights(torch.tensor([[1.0, -0.5]])).product(Rows.within_one(torch.tensor([[1.0, 0.5]])), None)
    except (AttributeError, RuntimeError):
        return False
    return abs(float(product) - 0.75) < 0.02
