"""Programs in processes of their own that need not import torch first: they are forked from one that has done so.

For tests in which a process must end, or import our package anew, not for those of how an interpreter begins.
"""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from subprocess import CompletedProcess
from tempfile import TemporaryDirectory
from typing import TextIO

SECONDS = 300
SCRIPT = "import runpy, sys; runpy.run_path(sys.argv[0], run_name='__main__')"
COMMAND = "import runpy; runpy.run_module('treeparse', run_name='__main__')"


class ForkServer:
    """The process that forks. Its strings have other hashes than those of the process that starts it."""

    def __init__(self) -> None:
        self._folder = TemporaryDirectory(prefix="treeparse-")
        self.address = str(Path(self._folder.name, "forks"))
        seed = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
        variables = {"PYTHONPATH": os.pathsep.join(sys.path), "PYTHONHASHSEED": seed}
        command = [sys.executable, "-P", str(Path(__file__).with_name("fork_server.py"))]
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(self.address)
            listener.listen()
            self._process = subprocess.Popen(
                command, stdin=listener.fileno(), env=os.environ | variables, start_new_session=True
            )

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait()
        self._folder.cleanup()


class ForkedProcess:
    """A process that was begun: its number, what it has written up to now, and its end."""

    def __init__(self, answers: TextIO, folder: Path) -> None:
        self.pid = int(answers.readline())
        self._answers, self._folder = answers, folder
        self._code: int | None = None

    def stdout(self) -> str:
        return self._folder.joinpath("stdout").read_text(encoding="utf-8")

    def stderr(self) -> str:
        return self._folder.joinpath("stderr").read_text(encoding="utf-8")

    def wait(self) -> int:
        """Its exit code, or minus a signal."""
        if self._code is None:
            self._code = int(self._answers.readline())
        return self._code

    def kill(self) -> None:
        """End it, unless its end is known."""
        if self._code is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            self.wait()


class Forks:
    """Has programs run by processes that a server forks.

    A program is the path of a file or Python's text, as of ``python -c``; it gets its arguments as texts, and what
    this process has now: its folder, environment and path of modules. Packages that it is to import anew are named.
    """

    def __init__(self, address: str) -> None:
        self._address = address

    def run(
        self, program: str | Path, *arguments: object, folder: Path | None = None, anew: Collection[str] = ()
    ) -> CompletedProcess[str]:
        """As ``subprocess.run`` would."""
        with self.begin(program, *arguments, folder=folder, anew=anew) as process:
            code = process.wait()
            return CompletedProcess([*map(str, arguments)], code, process.stdout(), process.stderr())

    @contextmanager
    def begin(
        self, program: str | Path, *arguments: object, folder: Path | None = None, anew: Collection[str] = ()
    ) -> Iterator[ForkedProcess]:
        """The process as it runs; it is killed where it has not ended by then."""
        text, name = (program, "-c") if isinstance(program, str) else (SCRIPT, program)
        argv = [str(argument) for argument in (name, *arguments)]
        with TemporaryDirectory() as output, socket.socket(socket.AF_UNIX) as server:
            streams = Path(output, "stdout"), Path(output, "stderr")
            for stream in streams:
                stream.touch()
            files = [os.devnull, *map(str, streams)]
            request = text, argv, str(folder or Path.cwd()), dict(os.environ), sys.path, list(anew), files
            server.settimeout(SECONDS)
            server.connect(self._address)
            server.sendall(json.dumps(request).encode() + b"\n")
            with server.makefile("r") as answers:
                process = ForkedProcess(answers, Path(output))
                try:
                    yield process
                finally:
                    process.kill()
