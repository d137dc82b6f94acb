"""The tests that need a CUDA device, by themselves and under NVIDIA's compute-sanitizer, as lines of a report."""

import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[3]
GPU_TESTS = (sys.executable, "-m", "pytest", "-q", "-m", "gpu")
SANITIZERS = ("memcheck", "racecheck")
SHOWN = 15  # lines of what failed


def tests_lines() -> Iterator[str]:
    """All tests marked ``gpu``."""
    yield "\n## Tests\n"
    yield from _run("tests marked gpu", GPU_TESTS)


def sanitizer_lines(tools: Sequence[str] = SANITIZERS) -> Iterator[str]:
    """Those of the kernels under each tool."""
    yield "\n## Sanitizer\n"
    sanitizer = shutil.which("compute-sanitizer")
    if sanitizer is None:
        yield "compute-sanitizer is not installed: memory and races were not checked."
        return
    for tool in tools:
        options = ["--report-api-errors", "no"] if tool == "memcheck" else []  # bindings look for what drivers lack
        command = [sanitizer, "--tool", tool, *options, "--error-exitcode", "1", *GPU_TESTS, "tests/device"]
        yield from _run(f"compute-sanitizer {tool}, tests of the kernels", command)


def _run(name: str, command: Sequence[str]) -> Iterator[str]:
    start = time.perf_counter()
    done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    lines = [line for line in done.stdout.splitlines() if line.strip()]
    end = lines[-1] if lines else "no output"
    yield f"- {name}: {'passed' if done.returncode == 0 else 'FAILED'}, {time.perf_counter() - start:.0f} s: {end}"
    if done.returncode:
        yield from ("      " + line for line in [*lines[-SHOWN:], *done.stderr.splitlines()[-SHOWN:]])
