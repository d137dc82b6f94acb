"""The kernels as plain Python, where an index out of range raises and an undefined name is found."""

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
def test_kernels_run_uncompiled() -> None:
    if os.environ.get("NUMBA_DISABLE_JIT") == "1":
        return
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-m",
        "nojit",
        "-p",
        "no:cacheprovider",
        str(Path(__file__).parent),
    ]
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=300)
    assert result.returncode == 0, result.stdout[-3000:]
    assert " passed" in result.stdout
