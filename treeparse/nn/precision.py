"""The precision of scoring: float32, bfloat16 or int8."""

from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext

import torch

from treeparse.names import Precision

BF16_INSTRUCTIONS = ("avx512_bf16", "amx_bf16")  # of CPUs, as torch names them


def has_bfloat16(device: torch.device) -> bool:
    """Return whether the device has bfloat16 instructions; without them bfloat16 is slower than float32."""
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    return device.type == "cpu" and cpu_has_any(BF16_INSTRUCTIONS)


def cpu_has_any(instructions: Iterable[str]) -> bool:
    """Return whether the CPU has any of these instructions, by torch's names."""
    capabilities = getattr(torch.cpu, "get_capabilities", dict)()
    return any(capabilities.get(name) for name in instructions)


def may_use_kernels(device: torch.device) -> bool:
    """Return whether kernels may replace torch's functions: on the CPU, without gradients and autocast."""
    return device.type == "cpu" and not (torch.is_grad_enabled() or torch.is_autocast_enabled("cpu"))


def scoring_in(precision: Precision, device: torch.device) -> AbstractContextManager[object]:
    """Return a context with matrix products in bfloat16 for ``bf16``, and for ``auto`` on a device that gains by it.

    For ``32`` and ``int8`` (`treeparse.nn.int8`) the context changes nothing, so an outer autocast stays in effect.
    """
    lower = precision == "bf16" or (precision == "auto" and has_bfloat16(device))
    return torch.autocast(device.type, torch.bfloat16) if lower else nullcontext()
