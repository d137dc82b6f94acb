"""In which precision sentences are scored."""

from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext

import torch

from treeparse.names import Precision

BF16_INSTRUCTIONS = ("avx512_bf16", "amx_bf16")  # of CPUs, as torch names them


def has_bfloat16(device: torch.device) -> bool:
    """Whether the device has instructions for bfloat16: elsewhere it is slower than single precision."""
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    return device.type == "cpu" and cpu_has_any(BF16_INSTRUCTIONS)


def cpu_has_any(instructions: Iterable[str]) -> bool:
    """Whether the CPU has some of these instructions, which go by torch's names."""
    capabilities = getattr(torch.cpu, "get_capabilities", dict)()
    return any(capabilities.get(name) for name in instructions)


def may_use_kernels(device: torch.device) -> bool:
    """Whether compiled functions may stand for torch's: on the CPU, without gradients and autocast."""
    return device.type == "cpu" and not (torch.is_grad_enabled() or torch.is_autocast_enabled("cpu"))


def scoring_in(precision: Precision, device: torch.device) -> AbstractContextManager[object]:
    """Within it, products are in bfloat16 where the precision says so; ``auto`` where the device gains by it.

    With ``32`` nothing is changed: an autocast that surrounds it stays. Nor with ``int8``, see `treeparse.nn.int8`.
    """
    lower = precision == "bf16" or (precision == "auto" and has_bfloat16(device))
    return torch.autocast(device.type, torch.bfloat16) if lower else nullcontext()
