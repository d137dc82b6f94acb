"""The CUDA sources, and their compilation by NVRTC, with machine code cached in the user's cache folder."""

import hashlib
import os
import re
import sys
import tempfile
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from treeparse.errors import TreeparseError

FOLDER = Path(__file__).parent / "sources"
KERNEL = re.compile(r"^KERNEL (\w+)\(", re.MULTILINE)
# No contraction: a product is rounded before it is added to, unless a source says fma. So results are the CPU's bits.
OPTIONS = ("--std=c++17", "--fmad=false")


@cache
def kernels() -> dict[str, Path]:
    """Return the file of every kernel, by the kernel's name."""
    files: dict[str, Path] = {}
    for path in sorted(FOLDER.glob("*.cu")):
        for name in KERNEL.findall(path.read_text(encoding="utf-8")):
            assert name not in files, f"two kernels have the name {name}"
            files[name] = path
    return files


@cache
def sources_digest() -> str:
    """Return the digest of all sources, names included."""
    result = hashlib.sha256()
    for path in sorted(FOLDER.iterdir()):
        result.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return result.hexdigest()


def machine_code(source: Path, architecture: str) -> bytes:
    """Return the code of a source for an architecture such as sm_90; compile it if it is not cached.

    Raises:
        ImportError: if the Python package cuda-bindings is missing.
        TreeparseError: if the compiler refuses the source or the architecture.
    """
    path = cached_path(source, architecture)
    try:
        return path.read_bytes()
    except OSError:
        code = compile_source(source, architecture)
        _cache(code, path)
        return code


def cached_path(source: Path, architecture: str) -> Path:
    """Return the path of the code in the cache."""
    return _folder() / f"{source.stem}-{architecture}-{_digest()[:32]}.cubin"


def compile_source(source: Path, architecture: str) -> bytes:
    """Compile a source without the cache; errors as for ``machine_code``."""
    return compile_and_report(source, architecture)[0]


def compile_and_report(source: Path, architecture: str, *more_options: str) -> tuple[bytes, str]:
    """Return the code and the compiler's log."""
    nvrtc = import_module("cuda.bindings.nvrtc")
    program = _checked(nvrtc.nvrtcCreateProgram(source.read_bytes(), source.name.encode(), 0, None, None))
    options = [*OPTIONS, f"--gpu-architecture={architecture}", f"--include-path={source.parent}", *more_options]
    (status,) = nvrtc.nvrtcCompileProgram(program, len(options), [option.encode() for option in options])
    log = b" " * _checked(nvrtc.nvrtcGetProgramLogSize(program))
    _checked(nvrtc.nvrtcGetProgramLog(program, log))
    messages = log.decode().rstrip("\0")
    if int(status):
        raise TreeparseError(f"NVRTC cannot compile {source.name} for {architecture} ({status.name}): {messages}")
    code = b" " * _checked(nvrtc.nvrtcGetCUBINSize(program))
    _checked(nvrtc.nvrtcGetCUBIN(program, code))
    _checked(nvrtc.nvrtcDestroyProgram(program))
    return code, messages


def version() -> tuple[int, int]:
    """Return the version of NVRTC."""
    return _checked(import_module("cuda.bindings.nvrtc").nvrtcVersion())


def _checked(result: tuple[Any, ...]) -> Any:
    """Return the values of a call of NVRTC; raise if it failed."""
    status, *values = result
    if int(status):
        raise TreeparseError(f"NVRTC, the compiler of CUDA sources, failed: {status.name}.")
    return values[0] if len(values) == 1 else tuple(values)


def _digest() -> str:
    return hashlib.sha256(repr((sources_digest(), OPTIONS, version())).encode()).hexdigest()


def _folder() -> Path:
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", "~"), "treeparse", "Cache")
    return Path(os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache")), "treeparse")


def _cache(code: bytes, path: Path) -> None:
    """Write a file atomically; if that fails, the next process compiles again."""
    if not path.is_absolute():  # of a user who has no home
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, suffix=".part")
        with os.fdopen(handle, "wb") as file:
            file.write(code)
        os.replace(name, path)
    except OSError:
        pass
