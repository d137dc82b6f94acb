"""Look-ups with a gradient, as operators in traced programs, and the library that holds all operators.

Inductor compiles the gradient of torch's own look-ups wrongly on the CPU, in silence: its kernel may read the buffer of
the ``scatter_add`` before the scatter (pytorch/pytorch #185509). It cannot reorder operators that it does not know.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.compiler import is_compiling

# Operators last as long as their library. It is kept beside them, so that a second import of this module finds both.
OPERATORS: Any = torch.ops.treeparse
ARE_NEW = not hasattr(OPERATORS, "library")
LIBRARY: torch.library.Library = torch.library.Library("treeparse", "DEF") if ARE_NEW else OPERATORS.library
OPERATORS.library = LIBRARY


def define(schema: str, function: Callable[..., Any], fake: Callable[..., Any]) -> None:
    """Define an operator by its schema, its implementation on any device, and what knows the shapes of its results."""
    name = schema.partition("(")[0]
    LIBRARY.define(schema)
    LIBRARY.impl(name, function, "CompositeExplicitAutograd")
    torch.library.register_fake(f"treeparse::{name}", fake, lib=LIBRARY)


def gather(values: Tensor, dim: int, index: Tensor) -> Tensor:
    """Return ``values.gather(dim, index)``."""
    return OPERATORS.gather(values, dim, index) if is_compiling() else values.gather(dim, index)


def rows_at(values: Tensor, *indices: Tensor) -> Tensor:
    """Return ``values[indices]``, by indices of one shape into the first dimensions, none of them negative."""
    if not is_compiling():
        return values[indices]
    axes, row = len(indices), indices[0]
    for size, index in zip(values.shape[1:axes], indices[1:], strict=True):
        row = row * size + index
    rows = values.flatten(0, axes - 1).unsqueeze(-1).flatten(1)
    found = OPERATORS.gather(rows, 0, row.reshape(-1, 1).expand(-1, rows.shape[1]))
    return found.reshape(*row.shape, *values.shape[axes:])


def _scatter_add(values: Tensor, dim: int, index: Tensor, shape: Sequence[int]) -> Tensor:
    return values.new_zeros(shape).scatter_add_(dim, index, values)


def _save_index(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    values, ctx.dim, index = inputs[:3]
    ctx.shape = values.shape
    ctx.save_for_backward(index)


def _gradient_of_gather(ctx: Any, gradient: Tensor) -> Any:
    return OPERATORS.scatter_add(gradient, ctx.dim, *ctx.saved_tensors, ctx.shape), None, None


def _gradient_of_scatter_add(ctx: Any, gradient: Tensor) -> Any:
    return OPERATORS.gather(gradient, ctx.dim, *ctx.saved_tensors), None, None, None


if ARE_NEW:
    define(
        "gather(Tensor values, int dim, Tensor index) -> Tensor",
        Tensor.gather,
        lambda values, dim, index: values.new_empty(index.shape),
    )
    define(
        "scatter_add(Tensor values, int dim, Tensor index, SymInt[] shape) -> Tensor",
        _scatter_add,
        lambda values, dim, index, shape: values.new_empty(shape),
    )
    for name, gradient in (("gather", _gradient_of_gather), ("scatter_add", _gradient_of_scatter_add)):
        torch.library.register_autograd(f"treeparse::{name}", gradient, setup_context=_save_index, lib=LIBRARY)
