"""The C library keeps freed memory."""

import platform
import subprocess
import sys

import pytest

CALL = "from treeparse.cli.commands.train import keep_freed_memory; print(keep_freed_memory())"


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries are left alone")
def test_glibc_takes_the_parameters() -> None:
    run = subprocess.run([sys.executable, "-c", CALL], capture_output=True, text=True, check=True)
    assert run.stdout == "True\n"
