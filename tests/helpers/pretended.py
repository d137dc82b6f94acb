"""A CUDA device that is not there: tensors in CPU memory that say they are on it, and a list of the waits for it.

Code that asks where tensors are takes its ways for CUDA devices, on real numbers; kernels run by the emulator. What
makes the CPU wait for a device is noted with the place in treeparse that asked for it: a number or an array that Python
reads, a shape that depends on values, a copy from memory that is not pinned, an event that is waited for.
"""

import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any
from unittest.mock import patch

import torch
from helpers.emulator import Emulator, needs_compiler
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._foreach_utils import _group_tensors_by_device_and_dtype
from torch.utils._python_dispatch import return_and_correct_aliasing
from torch.utils._pytree import tree_any, tree_map_only

import treeparse
from treeparse.device import cuda
from treeparse.device.launcher import Shape

PACKAGE = f"{Path(treeparse.__file__).parent}/"  # a checkout's folder may be called treeparse, too
DEVICE = torch.device("cuda", 0)
READ = {
    *("_local_scalar_dense", "is_nonzero", "equal", "nonzero", "nonzero_static", "masked_select"),
    *("_unique2", "unique_dim", "unique_consecutive", "bincount", "repeat_interleave", "_to_sparse"),
}
MADE = {torch.tensor, torch.as_tensor, torch.scalar_tensor}  # from numbers of Python's
TO, FROM = "to", "from"  # the device: directions of copies
Waits = list[tuple[str, str]]  # what waited, and the file of treeparse that made it wait


class Pretended(Tensor):
    """A tensor that says it is on the device; ``held`` is in CPU memory."""

    held: Tensor

    @staticmethod
    def __new__(cls, held: Tensor) -> "Pretended":
        return Tensor._make_wrapper_subclass(
            cls, held.shape, held.stride(), held.storage_offset(), dtype=held.dtype, layout=held.layout
        )

    def __init__(self, held: Tensor) -> None:
        self.held = held

    device = DEVICE  # pyright: ignore[reportAssignmentType, reportIncompatibleVariableOverride]
    is_cuda = True  # pyright: ignore[reportAssignmentType, reportIncompatibleVariableOverride]

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # pyright: ignore
        kwargs = kwargs or {}
        name = func.overloadpacket.__name__
        plain = tree_any(lambda each: type(each) is Tensor and each.dim() > 0, (args, kwargs))
        assert not plain, f"{name} of tensors on two devices"
        if name in READ or _has_open_shape(name, args):
            _note(name)
        own, named = tree_map_only(Pretended, lambda each: each.held, (args, kwargs))
        found = tree_map_only(Tensor, Pretended, func(*own, **named))
        return return_and_correct_aliasing(func, args, kwargs, found)


def _has_open_shape(name: str, args: Any) -> bool:
    """Whether a mask says how many entries there are."""
    if name not in ("index", "index_put_", "index_put", "_index_put_impl_"):
        return False
    return any(each is not None and each.dtype == torch.bool for each in args[1]) and (
        name == "index" or args[2].numel() != 1
    )


_NOTED: list[Waits] = []


def _note(what: str) -> None:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not frame.f_code.co_filename.startswith(PACKAGE):
        frame = frame.f_back
    place = "" if frame is None else frame.f_code.co_filename.removeprefix(PACKAGE)
    if _NOTED:
        _NOTED[-1].append((what, place))


class _Functions(TorchFunctionMode):
    """Lets functions of torch be asked for tensors on the device, in backward passes, too."""

    def __init__(self, free: Collection[str]) -> None:
        super().__init__()
        self._free = free

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if func in READERS and isinstance(args[0], Pretended):
            _note(func.__name__)
            return func(args[0].held.detach(), *tree_map_only(Pretended, lambda each: each.held, args[1:]), **kwargs)
        if func is Tensor.data_ptr and isinstance(args[0], Pretended):
            return args[0].held.data_ptr()
        if func is Tensor.pin_memory:
            pinned = args[0].clone()
            pinned.is_pinned_here = True
            return pinned
        if func in (Tensor.to, Tensor.cpu, Tensor.cuda):
            return self._moved(func, *args, **kwargs)
        if not _is_device(kwargs.get("device")):
            return func(*args, **kwargs)
        del kwargs["device"]
        if func in MADE:
            _note(func.__name__)
        found = func(*args, **kwargs)
        return found if isinstance(found, Pretended) else Pretended(found)

    def _moved(self, func: Any, tensor: Tensor, *args: Any, non_blocking: bool = False, **kwargs: Any) -> Tensor:
        args = (torch.device("cpu"),) if func is Tensor.cpu else (DEVICE,) if func is Tensor.cuda else args
        given = [*args, kwargs.pop("device", None)]
        places = [torch.device(each) for each in given if isinstance(each, str | torch.device)]
        types = [each for each in given if isinstance(each, torch.dtype)]
        is_here = isinstance(tensor, Pretended)
        if any(isinstance(each, Tensor) for each in given) or not places or (places[0].type == "cuda") == is_here:
            args = tuple(each for each in args if isinstance(each, torch.dtype | Tensor))
            kwargs.update({"dtype": types[0]} if types and not args else {})
            return Tensor.to(tensor, *args, **kwargs) if args or kwargs else tensor
        is_pinned = is_here or getattr(tensor, "is_pinned_here", False)
        if not (non_blocking and is_pinned and (FROM if is_here else TO) in self._free):
            _note("copy")
        moved = _Across.apply(tensor)
        return moved.to(*types) if types else moved


class _Across(torch.autograd.Function):
    """A copy to the device or from it."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor) -> Tensor:
        return tensor.held.clone() if isinstance(tensor, Pretended) else Pretended(tensor.clone())

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        return _Across.apply(*grad_outputs)


READERS: set[Callable[..., Any]] = {
    getattr(Tensor, name)
    for name in ("tolist", "numpy", "item", "__bool__", "__int__", "__float__", "__index__", "__contains__")
}


ARANGE, BACKWARD = torch.arange, torch.autograd._engine_run_backward  # pyright: ignore[reportPrivateImportUsage]


def _arange(*args: Any, device: Any = None, **kwargs: Any) -> Tensor:
    """Torch's own functions ask for it where no mode sees them."""
    made = ARANGE(*args, **kwargs)
    return Pretended(made) if _is_device(device) else made


def _grouped(lists: Any) -> dict[Any, Any]:
    """Gradients by their device, of which torch knows only where they are held."""
    found = _group_tensors_by_device_and_dtype(lists)
    return {
        (DEVICE if isinstance(own[0][0], Pretended) else device, dtype): (own, places)
        for (device, dtype), (own, places) in found.items()
    }


def _is_device(value: object) -> bool:
    return isinstance(value, str | torch.device) and torch.device(value).type == "cuda"


class _Launcher:
    """The emulator, for such tensors."""

    most_shared_bytes, most_warps, most_blocks = 1 << 18, 2, 2

    def launch(self, kernel: str, shape: Shape, *arguments: Tensor | float | None) -> None:
        held = tree_map_only(Pretended, lambda each: each.held, arguments)
        Emulator().launch(kernel, shape, *held)


class _Event:
    def synchronize(self) -> None:
        _note("event")


class _Stream:
    def record_event(self) -> _Event:
        return _Event()


@contextmanager
def pretended_device(*, free: Collection[str] = (TO, FROM)) -> Iterator[Waits]:
    """Within it there is the device; gives the list of waits for it, which grows.

    Copies that nobody waits for are noted, too, but in the directions that are ``free``: no graph could repeat them.
    """
    needs_compiler()
    waits: Waits = []
    launcher, functions = _Launcher(), _Functions(free)

    def backward(*args: Any, **kwargs: Any) -> Any:
        with functions:  # torch has switched the mode off, as the mode was asked about the call of backward
            return BACKWARD(*args, **kwargs)

    _NOTED.append(waits)
    try:
        with (
            patch.object(cuda, "launcher_or_none", lambda index: launcher),
            patch.object(cuda, "launcher_of", lambda index: launcher),
            patch.object(torch.cuda, "current_stream", lambda device=None: _Stream()),
            patch.object(torch.cuda, "current_device", lambda: 0),
            patch.object(torch, "arange", _arange),
            patch.object(torch.autograd, "_engine_run_backward", backward),
            patch.object(torch.nn.utils.clip_grad, "_group_tensors_by_device_and_dtype", _grouped),
            patch.object(
                torch.backends.cudnn, "is_acceptable", lambda tensor: False
            ),  # it warns that there is no cuDNN
            functions,
        ):
            yield waits
    finally:
        _NOTED.pop()


def to_device(module: nn.Module) -> None:
    """Moves the weights of a module to the device, as ``Module.to`` does."""
    with patch.object(torch.__future__, "get_overwrite_module_params_on_conversion", lambda: True):
        module._apply(lambda each: each if isinstance(each, Pretended) else Pretended(each.detach().clone()))
