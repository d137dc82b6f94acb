"""The device that ``--device`` names."""

import torch

from treeparse.core import TreeparseError


def pick_device(name: str | None) -> torch.device:
    """The device of that name; without a name a GPU if there is one, otherwise the CPU.

    Raises:
        TreeparseError: the name is no device's, or this machine has no such device.
    """
    if name is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:  # torch's own: unknown, or not in this build
        raise TreeparseError(f"There is no device {name!r} on this machine: say cpu, or cuda for a GPU.") from error
    return device
