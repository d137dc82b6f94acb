"""Tensors that behave as those of a device do, with a look at them an error: what a graph could not capture.

They say that they are on torch's device "meta", for the CPU's own are known to be at hand. Their numbers are in CPU
memory, where the emulator runs the kernels.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from helpers.emulator import Emulator
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode, return_and_correct_aliasing
from torch.utils._pytree import tree_any, tree_map_only

from treeparse.device.launcher import Shape

FAR = torch.device("meta")
# Operations for which the CPU waits: numbers, or shapes that depend on them.
WAITING = {
    "_local_scalar_dense",
    "is_nonzero",
    "item",
    "equal",
    "nonzero",
    "nonzero_static",
    "masked_select",
    "_unique2",
    "unique_dim",
    "unique_consecutive",
    "bincount",
    "repeat_interleave",
    "_to_sparse",
}


class Far(Tensor):
    """A tensor as if on a device, whose numbers are those of another one, ``near``."""

    near: Tensor

    @staticmethod
    def __new__(cls, near: Tensor) -> "Far":
        result: Any = torch.Tensor._make_wrapper_subclass(  # pyright: ignore
            cls, near.size(), strides=near.stride(), storage_offset=near.storage_offset(), dtype=near.dtype, device=FAR
        )
        result.near = near
        return result

    __torch_function__ = torch._C._disabled_torch_function_impl  # pyright: ignore

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _call(func, args, kwargs or {})


class NothingWaits(TorchDispatchMode):
    """Within, operations on far tensors are done on their numbers, and whatever waits for a device raises.

    Args:
        copies: whether what lies in CPU memory may be copied to the device, which a graph could not repeat.
    """

    def __init__(self, *, copies: bool = False) -> None:
        super().__init__()
        self.copies = copies

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if kwargs.get("device") == FAR and isinstance(args[0] if args else None, Tensor):
            at_once = self.copies and kwargs.get("non_blocking")
            assert at_once or isinstance(args[0], Far), f"{func}: a copy to the device"
        if kwargs.get("device") == FAR or tree_any(lambda part: isinstance(part, Far), (args, kwargs)):
            return _call(func, args, kwargs)
        return func(*args, **kwargs)


def _call(func: Any, args: Any, kwargs: Any) -> Any:
    name = func.overloadpacket.__name__
    assert name not in WAITING, f"{func} waits for the device"
    assert kwargs.get("device") in (None, FAR), f"{func}: a copy to {kwargs['device']}"
    if name in ("index", "index_put", "index_put_", "_index_put_impl_"):
        assert all(index is None or index.dtype != torch.bool for index in args[1]), f"{func} by a mask waits"
    near_args, near_kwargs = tree_map_only(Far, lambda part: part.near, (args, kwargs))
    if near_kwargs.get("device") == FAR:
        near_kwargs["device"] = torch.device("cpu")
    found = tree_map_only(Tensor, Far, func(*near_args, **near_kwargs))
    return return_and_correct_aliasing(func, args, kwargs, found)


@dataclass(frozen=True)
class FarEmulator(Emulator):
    """The emulator for such tensors."""

    def launch(self, kernel: str, shape: Shape, *arguments: Tensor | float | None) -> None:
        super().launch(kernel, shape, *(part.near if isinstance(part, Far) else part for part in arguments))


def nothing_waits(function: Callable[..., Any], *near: Tensor, copies: bool = False) -> tuple[Any, list[Tensor | None]]:
    """What a function of such tensors gives, and their gradients, as tensors in CPU memory."""
    with NothingWaits(copies=copies):
        far = [Far(each.detach()).requires_grad_(each.requires_grad) for each in near]
        found = function(*far)
    gradients = [each.grad.near if isinstance(each.grad, Far) else None for each in far]
    return tree_map_only(Far, lambda part: part.near.detach(), found), gradients
