"""Kernels on a CUDA device, on torch's current stream."""

import ctypes
import logging
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib import import_module
from typing import Any

import torch
from torch import Tensor

from treeparse.device import compiler
from treeparse.device.launcher import Shape, words_of
from treeparse.errors import TreeparseError

LOG = logging.getLogger("treeparse.device")
LANES = 32
MOST_WARPS = 16  # as in sources/block.cuh
BLOCKS_A_PROCESSOR = 4  # blocks whose working memory does not fit on the chip
NOT_COMPILED = (
    "Kernels for %s cannot be compiled or loaded, so operations of torch and the CPU replace them, which are "
    "slower: %s Kernels need cuda-bindings of torch's version of CUDA (pip install 'treeparse[cuda]' "
    "'cuda-bindings==%s.*')."
)


@cache
def launcher_of(index: int) -> "CudaLauncher":
    """Return the launcher of a device; the first call compiles the kernels, or reads them from the cache.

    Raises:
        Exception: any failure, from a missing package to a driver that is too old.
    """
    return CudaLauncher(index, import_module("cuda.bindings.driver"))


@cache
def launcher_or_none(index: int) -> "CudaLauncher | None":
    """Return ``launcher_of``, or None if it fails for any reason, with one warning in the log."""
    try:
        return launcher_of(index)
    except Exception as error:
        LOG.warning(why_not(index, error))
        return None


def why_not(index: int, error: Exception) -> str:
    """Return a message that says why the kernels do not run on a device."""
    reason = str(error) or type(error).__name__
    return NOT_COMPILED % (f"cuda:{index}", f"{reason.rstrip('.')}.", (torch.version.cuda or "").split(".")[0])


def architecture_of(index: int) -> str:
    """Return the architecture of a device for the compiler, such as sm_90."""
    major, minor = torch.cuda.get_device_capability(index)
    return f"sm_{major}{minor}"


class CudaLauncher:
    """A ``Launcher`` of one device.

    Args:
        index: the device's number.
        driver: NVIDIA's bindings of the CUDA driver, ``cuda.bindings.driver``.
    """

    def __init__(self, index: int, driver: Any) -> None:
        self._device, self._driver = torch.device("cuda", index), driver
        with torch.cuda.device(self._device):
            properties = torch.cuda.get_device_properties(self._device)
            self._context = self._call("cuDevicePrimaryCtxRetain", self._call("cuDeviceGet", index))
            self._call("cuCtxSetCurrent", self._context)
            most = driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
            self.most_shared_bytes: int = self._call("cuDeviceGetAttribute", most, self._call("cuDeviceGet", index))
            self.most_warps: int = MOST_WARPS
            self.most_blocks: int = BLOCKS_A_PROCESSOR * properties.multi_processor_count
            self._functions = self._load(architecture_of(index))

    def launch(self, kernel: str, shape: Shape, *arguments: Tensor | float | None) -> None:
        words = words_of(arguments)
        start = ctypes.addressof(words)
        places = (ctypes.c_void_p * len(words))(*(start + 8 * place for place in range(len(words))))
        with torch.cuda.device(self._device):
            self._call("cuCtxSetCurrent", self._context)  # in a new thread there is none
            stream = torch.cuda.current_stream(self._device).cuda_stream
            sizes = shape.blocks, 1, 1, LANES * shape.warps, 1, 1, shape.shared_bytes
            self._call("cuLaunchKernel", self._functions[kernel], *sizes, stream, ctypes.addressof(places), 0)

    def _load(self, architecture: str) -> dict[str, Any]:
        """Load all kernels; each may take all shared memory."""
        most = self._driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        files = sorted(set(compiler.kernels().values()))
        with ThreadPoolExecutor() as pool:  # compiling takes seconds a file
            codes = pool.map(lambda file: compiler.machine_code(file, architecture), files)
        modules = {file: self._call("cuModuleLoadData", code) for file, code in zip(files, codes, strict=True)}
        functions = {}
        for name, file in compiler.kernels().items():
            functions[name] = self._call("cuModuleGetFunction", modules[file], name.encode())
            self._call("cuFuncSetAttribute", functions[name], most, self.most_shared_bytes)
        return functions

    def _call(self, name: str, *arguments: Any) -> Any:
        """Return the values of a call of the driver; raise if it failed."""
        status, *values = getattr(self._driver, name)(*arguments)
        if int(status):
            raise TreeparseError(f"The CUDA driver's {name} failed on {self._device}: {status.name}.")
        return values[0] if values else None
