"""Runs the CUDA sources on the CPU: compiled as C++17, as on a device, on top of ``emulator.h``, called by ctypes.

The libraries are kept beside this file, in ``__pycache__``, until any source changes.
"""

import ctypes
import hashlib
import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from torch import Tensor

from treeparse.device import compiler
from treeparse.device.launcher import Shape, words_of

HERE = Path(__file__).parent
COMPILER = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
LANES = 4  # of a warp
OPTIONS = (f"-DWARP={LANES}", f"-I{compiler.FOLDER}", "-std=c++17", "-O1", "-ffp-contract=off", "-pthread")
LIBRARY = "-shared", "-fPIC"


@dataclass(frozen=True)
class Emulator:
    """A ``Launcher`` of tensors in CPU memory."""

    most_shared_bytes: int = 1 << 18
    most_warps: int = 2
    most_blocks: int = 2

    def launch(self, kernel: str, shape: Shape, *arguments: Tensor | float | None) -> None:
        run(compiler.kernels()[kernel], kernel, shape, *arguments)


def run(source: Path, kernel: str, shape: Shape, *arguments: Tensor | float | None) -> None:
    """Run a kernel of any file, which may include the sources."""
    for argument in arguments:
        assert not isinstance(argument, Tensor) or argument.device.type == "cpu"
    function = getattr(_library(source), f"launch_{kernel}")
    function.restype = ctypes.c_char_p
    wrong = function(shape.blocks, shape.warps * LANES, shape.shared_bytes, words_of(arguments))
    assert wrong is None, f"{kernel}: {wrong.decode()}"


def needs_compiler() -> None:
    """Skip the test where there is no C++ compiler."""
    if COMPILER is None:
        pytest.skip("no C++ compiler, which runs CUDA sources on the CPU")


@cache
def _library(source: Path) -> ctypes.CDLL:
    return ctypes.CDLL(str(compiled(source)))


def compiled(source: Path) -> Path:
    """The library of a file of kernels, compiled if it is not there."""
    needs_compiler()
    code, texts = program(source), [path.read_bytes() for path in (source, HERE / "emulator.h")]
    key = [compiler.sources_digest(), *texts, code, COMPILER, *OPTIONS]
    digest = hashlib.sha256(repr(key).encode()).hexdigest()
    path = _folder() / f"{source.stem}-{digest[:16]}.so"
    if not path.exists():
        with tempfile.TemporaryDirectory(dir=path.parent) as folder:  # two processes may do this at once
            entry, library = Path(folder, "program.cpp"), Path(folder, "program.so")
            entry.write_text(code, encoding="utf-8")
            subprocess.run([str(COMPILER), *OPTIONS, *LIBRARY, str(entry), "-o", str(library)], check=True)
            for old in path.parent.glob(f"{source.stem}-*.so"):
                old.unlink(missing_ok=True)
            os.replace(library, path)
    return path


def program(source: Path) -> str:
    """A file of kernels on top of the emulator, and for every kernel a function that runs it."""
    names = compiler.KERNEL.findall(source.read_text(encoding="utf-8"))
    launches = [
        f'extern "C" const char* launch_{name}(int grid, int threads, int bytes, const std::uint64_t* values) '
        f"{{ return emulator::launch({name}, grid, threads, bytes, values); }}"
        for name in names
    ]
    return "\n".join([f'#include "{HERE / "emulator.h"}"', f'#include "{source}"', *launches, ""])


def _folder() -> Path:
    folder = HERE / "__pycache__"
    try:
        folder.mkdir(exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return _temporary_folder()
    return folder


@cache
def _temporary_folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="treeparse-emulator-"))
