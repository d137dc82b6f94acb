"""Products with weights in eight bits: on CPUs with instructions for them twice as fast as in single precision.

Each output of a layer has a scale of its own, set by its weights, and each row of inputs one set by its values: what a
row comes to depends on no other row. Sums of products are exact; biases and all else stay in single precision.
"""

import copy
from functools import cache
from typing import Generic, NamedTuple, TypeVar, cast

import torch
from torch import Tensor, nn

from treeparse.errors import TreeparseError
from treeparse.kernels.networks import round_rows, round_within_one

from .biaffine import LabelBiaffine
from .packed import lstm_weights
from .precision import cpu_has_any

WEIGHT_LEVELS = 127  # on each side of zero
VNNI = ("avx512_vnni", "avx_vnni", "avx10_1", "amx_int8")  # as torch names instructions
LEAST_WEIGHTS = 10_000  # of a linear layer: smaller ones gain nothing
LEAST_SCALE = 1e-30  # of outputs whose weights are zeros
FLOAT_OUTPUTS = (1.0, 0, torch.float32)
Model = TypeVar("Model", bound=nn.Module)


class Rows(NamedTuple):
    """Inputs in eight bits: (value - zero) * scale, times its row's scale where rows have their own."""

    values: Tensor  # (N, inputs) uint8
    zero: int
    scale: float
    row_scales: Tensor | None = None  # (N, 1)

    @classmethod
    def scaled_each(cls, inputs: Tensor) -> "Rows":
        """Rows (N, inputs), each with all levels between its greatest value's size and minus that."""
        levels, given = input_levels(), inputs.contiguous()
        values, scales = torch.empty(given.shape, dtype=torch.uint8), given.new_empty(len(given), 1)
        round_rows(given.numpy(), levels, values.numpy(), scales.numpy())
        return cls(values, levels + 1, 1.0, scales)

    @classmethod
    def within_one(cls, inputs: Tensor) -> "Rows":
        """Rows (N, inputs) of values from -1 to 1."""
        levels, given = input_levels(), inputs.contiguous()
        values = torch.empty(given.shape, dtype=torch.uint8)
        round_within_one(given.numpy(), levels, values.numpy())
        return cls(values, levels + 1, 1 / levels)


class Int8Weights:
    """The weights (outputs, inputs) of a linear map in eight bits."""

    def __init__(self, weights: Tensor) -> None:
        scales = weights.abs().amax(1).clamp_min(LEAST_SCALE) / WEIGHT_LEVELS
        packed = torch.ops.onednn.qlinear_prepack((weights / scales.unsqueeze(1)).round().to(torch.int8), None)
        self._parts = packed, scales, torch.zeros(len(scales), dtype=torch.long)

    def product(self, rows: Rows, bias: Tensor | None, out: Tensor | None = None) -> Tensor:
        """Rows (N, inputs) -> (N, outputs), a new tensor or, of rows with their own scales, ``out``."""
        if rows.row_scales is None:
            return self._product(rows, bias)
        found = self._product(rows, None)
        out = found if out is None else out
        if bias is None:
            return torch.mul(found, rows.row_scales, out=out)
        return torch.addcmul(bias, found, rows.row_scales, out=out)

    def add_product(self, sums: Tensor, rows: Rows) -> None:
        """Adds the product to ``sums`` (N, outputs), contiguous, in place; the rows have one scale."""
        given = (rows.values, rows.scale, rows.zero, *self._parts, sums, None, *FLOAT_OUTPUTS)
        torch.ops.onednn.qlinear_pointwise.binary(*given, 1.0, 0, "sum", 1.0, "none", [], "")

    def _product(self, rows: Rows, bias: Tensor | None) -> Tensor:
        given = (rows.values, rows.scale, rows.zero, *self._parts, bias, *FLOAT_OUTPUTS)
        return torch.ops.onednn.qlinear_pointwise(*given, "none", [], "")


class Int8Linear(nn.Module):
    """Stands for a ``torch.nn.Linear`` of these weights (outputs, inputs), outside training."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        super().__init__()
        self.weight, self.bias = weight.detach(), None if bias is None else bias.detach()
        self.out_features, self.in_features = weight.shape
        self.in_int8 = Int8Weights(self.weight)

    def forward(self, inputs: Tensor) -> Tensor:
        """(..., inputs) -> (..., outputs)."""
        found = self.in_int8.product(Rows.scaled_each(inputs.flatten(0, -2)), self.bias)
        return found.unflatten(0, inputs.shape[:-1])


class Int8LSTM(nn.Module):
    """Stands for a ``torch.nn.LSTM`` of one layer, as a `Side` of a packed one."""

    def __init__(self, lstm: nn.LSTM) -> None:
        super().__init__()
        inputs, recurrent, bias = (weights.detach() for weights in lstm_weights(lstm))
        self.hidden_size = lstm.hidden_size
        self.inputs, self.recurrent, self.bias = Int8Weights(inputs), Int8Weights(recurrent), bias

    def project(self, inputs: Tensor, gates: Tensor) -> None:
        self.inputs.product(Rows.scaled_each(inputs), self.bias, gates)

    def add_recurrent(self, gates: Tensor, states: Tensor) -> None:
        self.recurrent.add_product(gates, Rows.within_one(states))


class Int8Copy(Generic[Model]):
    """A model's copy in eight bits, made when it is asked for, and anew once weights have changed."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._copy: tuple[object, Model] | None = None

    def get(self) -> Model:
        """The copy, which shares with the model what is not in eight bits; raises where it could not be computed."""
        weights = tuple(self._model.parameters())
        for weight in weights:
            if (weight.device.type, weight.dtype) != ("cpu", torch.float32):
                raise TreeparseError(
                    "The precision int8 is for weights in float32 on a CPU, and the model has some in "
                    f"{str(weight.dtype).removeprefix('torch.')} on {weight.device}: choose another precision."
                )
        if not has_int8():
            raise TreeparseError("This build of torch has no products in eight bits: choose the precision 32 or auto.")
        versions = tuple((weight.data_ptr(), weight._version) for weight in weights)
        if self._copy is None or self._copy[0] != versions:
            self._copy = versions, cast(Model, _in_int8(self._model))
        return self._copy[1]

    def __reduce__(self) -> tuple[type["Int8Copy[Model]"], tuple[Model]]:
        return Int8Copy, (self._model,)  # a copy in eight bits can be neither copied nor pickled


def _in_int8(module: nn.Module) -> nn.Module:
    """A copy of a module, whose large products are in eight bits, those of modules in it included."""
    if isinstance(module, nn.Linear):
        return Int8Linear(module.weight, module.bias) if module.weight.numel() >= LEAST_WEIGHTS else module
    if isinstance(module, nn.LSTM):
        return Int8LSTM(module)
    copied = copy.copy(module)
    parts = {name: part if part is None else _in_int8(part) for name, part in module._modules.items()}
    if isinstance(module, LabelBiaffine):
        parts["mixer"] = Int8Linear(module.weight.T, None)
    copied._modules = parts
    return copied


@cache
def input_levels() -> int:
    """How many levels an input may have on each side of zero.

    Without instructions for dot products of bytes, CPUs add pairs of products in sixteen bits, which inputs of eight
    bits would overflow.
    """
    return 127 if cpu_has_any(VNNI) else 63


@cache
def has_int8() -> bool:
    """Whether this build of torch computes such products."""
    try:
        found = Int8Weights(torch.tensor([[1.0, -0.5]])).product(Rows.within_one(torch.tensor([[1.0, 0.5]])), None)
    except (AttributeError, RuntimeError):
        return False
    return abs(float(found) - 0.75) < 0.02
