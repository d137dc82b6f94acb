"""Scripts in processes of their own that need not import torch first: they are forked from one that has done so.

For tests in which a process must end, not for those of how one begins: nothing is imported as by a new interpreter.
"""

import multiprocessing
import runpy
import sys
from pathlib import Path

IMPORTED = ["treeparse.training.run", "treeparse.training.module", "torch.utils.tensorboard"]
SECONDS = 300


def run_script(script: Path, *arguments: object) -> int:
    """Run a Python file with these arguments, of which it gets the texts; returns its exit code, or minus a signal."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(IMPORTED)
    process = context.Process(target=_run, args=(str(script), [str(argument) for argument in arguments]))
    process.start()
    process.join(SECONDS)
    process.kill()
    process.join()
    code = process.exitcode
    process.close()
    assert code is not None
    return code


def _run(script: str, arguments: list[str]) -> None:
    sys.argv = [script, *arguments]
    runpy.run_path(script, run_name="__main__")
