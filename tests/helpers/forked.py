"""Scripts in processes of their own that need not import torch first: they are forked from one that has done so.

For tests in which a process must end, not for those of how one begins: nothing is imported as by a new interpreter.
"""

import multiprocessing
import os
import runpy
import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from tempfile import TemporaryDirectory

IMPORTED = ["treeparse.training.run", "treeparse.training.module", "torch.utils.tensorboard"]
SECONDS = 300


def run_script(script: Path, *arguments: object) -> int:
    """Run a Python file with these arguments, of which it gets the texts; returns its exit code, or minus a signal."""
    return _exit_code(_run, str(script), [str(argument) for argument in arguments])


def run_program(program: str, *arguments: str) -> CompletedProcess[str]:
    """Run Python's text with these arguments, as ``python -c`` would."""
    with TemporaryDirectory() as folder:
        streams = [Path(folder, name) for name in ("stdout", "stderr")]
        code = _exit_code(_execute, program, arguments, *map(str, streams))
        return CompletedProcess(arguments, code, *(stream.read_text(encoding="utf-8") for stream in streams))


def _exit_code(work: Callable[..., None], *arguments: object) -> int:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(IMPORTED)
    process = context.Process(target=work, args=arguments)
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


def _execute(program: str, arguments: tuple[str, ...], *streams: str) -> None:
    for number, stream in enumerate(streams, 1):
        os.dup2(os.open(stream, os.O_WRONLY | os.O_CREAT), number)
    sys.argv = ["-c", *arguments]
    exec(program, {"__name__": "__main__"})
