"""Programs run as in a container: by a user who owns nothing, has no home and may write nowhere."""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

USER = 64_321  # whom no system knows
CAP_DAC_READ_SEARCH = 2  # reading all, but no writing: the interpreter may lie where root alone looks


def make_read_only(folder: Path) -> None:
    """Take the right to write from everybody, and give all others to everybody."""
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)


def run_as_nobody(
    arguments: Sequence[str], cwd: Path, variables: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run Python with these arguments; root's rights are dropped, and another user loses his home alone."""
    if sys.platform == "win32":
        pytest.skip("on Windows a process cannot drop its user's rights")
    environment = {name: value for name, value in os.environ.items() if name not in ("HOME", "XDG_CACHE_HOME")}
    environment = {name: value for name, value in environment.items() if not name.startswith("NUMBA_")}
    if os.geteuid() != 0:
        environment["HOME"] = "/dev/null"
    return subprocess.run(
        [*_dropping_rights(), sys.executable, *arguments],
        cwd=cwd,
        env=environment | dict(variables or {}),
        capture_output=True,
        text=True,
        timeout=600,
    )


def _dropping_rights() -> list[str]:
    if os.geteuid() != 0:
        return []
    if shutil.which("setpriv") is None:
        pytest.skip("root's rights are dropped by setpriv (of util-linux), which is not there")
    kept = "-all,+dac_read_search" if _capabilities() >> CAP_DAC_READ_SEARCH & 1 else "-all"
    capabilities = [f"--{kind}={kept}" for kind in ("inh-caps", "ambient-caps", "bounding-set")]
    return ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", *capabilities]


def _capabilities() -> int:
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("CapPrm:")), 16)
