"""What runs the kernels in tests of this folder."""

import pytest
import torch
from helpers.emulator import Emulator

from treeparse.device import cuda
from treeparse.device.launcher import Launcher

MEMORIES = {"shared": Emulator(), "global": Emulator(most_shared_bytes=0)}
ON_DEVICE = pytest.param("cuda", marks=[pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="")])


@pytest.fixture(params=[*MEMORIES, ON_DEVICE])
def launcher(request: pytest.FixtureRequest) -> Launcher:
    """The emulator with shared memory and without any, and a device."""
    return cuda.launcher_of(0) if request.param == "cuda" else MEMORIES[request.param]
