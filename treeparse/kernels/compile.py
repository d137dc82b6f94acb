"""How kernels are compiled: by ``numba.njit``, and where their compiled code is cached.

Numba's cache looks at the file of a function alone, so it misses a change of a helper in another file; and it raises at
import where none of its folders is writable. So the folder is chosen here. Its name is a digest of all sources.
"""

import atexit
import hashlib
import logging
import os
import pickle
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import llvmlite.binding
import numba

LOG = logging.getLogger("treeparse.kernels")
SOURCES = Path(__file__).parent
NOT_CACHED = (
    "Compiled kernels cannot be cached, because no folder for them is writable: every process compiles them again, for "
    "up to a minute. Set NUMBA_CACHE_DIR to a writable folder, or run 'treeparse warm' once as the user who installed "
    "treeparse; for an image, run it where the image is built."
)

NOTICES: list[tuple[int, str]] = []  # to be logged at the first call, because at import nobody may listen yet


def _digest() -> str:
    """Return a digest of all sources, and of the versions and the processor for which code is compiled."""
    processor = numba.config.CPU_NAME or llvmlite.binding.get_host_cpu_name()  # pyright: ignore
    digest = hashlib.sha256(f"{numba.__version__} {processor}".encode())
    for path in sorted(SOURCES.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _cache_folder() -> tuple[Path, bool]:
    """Return the first writable folder, with compiled code from a folder that is not writable, and whether it lasts."""
    bases = os.environ.get("NUMBA_CACHE_DIR"), SOURCES / "__pycache__", os.path.expanduser("~/.cache/treeparse")
    name = f"kernels-{_digest()}"
    folders = [Path(base, name) for base in bases if base and not str(base).startswith("~")]
    made = [folder for folder in folders if folder.is_dir()]
    for folder in folders:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=folder).close()
        except OSError:
            continue
        lasts = True
        break
    else:
        folder, lasts = Path(tempfile.mkdtemp()), False
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
    if made and folder not in made:
        for path in made[0].rglob("*.nb?"):  # without the rights of the folders
            (folder / path.parent.name).mkdir(exist_ok=True)
            shutil.copyfile(path, folder / path.parent.name / path.name)
    elif not lasts:
        NOTICES.append((logging.WARNING, NOT_CACHED))
    elif not made:
        first = f"Kernels are compiled when they are first used, some seconds each, and cached in {folder}."
        NOTICES.append((logging.INFO, first))
    return folder, lasts


FOLDER, LASTS = _cache_folder()


def _compiler(fastmath: set[str]) -> Callable[[Callable[..., Any]], Any]:
    def compile_kernel(function: Callable[..., Any]) -> Any:
        before, numba.config.CACHE_DIR = numba.config.CACHE_DIR, str(FOLDER)  # pyright: ignore
        try:
            return numba.njit(cache=True, nogil=True, error_model="numpy", fastmath=fastmath)(function)
        finally:
            numba.config.CACHE_DIR = before  # pyright: ignore

    return compile_kernel


# For sums, which may be reordered and are vectorised then. Neither nnan nor ninf: -inf is a score.
kernel = _compiler({"reassoc", "contract", "nsz"})
# For what must be computed in the order in which it is written: ties, draws, and rounding by adding a constant.
exact_kernel = _compiler({"contract"})
# For maxima alone, which are vectorised only if no number is NaN.
maximum_kernel = _compiler({"nnan", "nsz"})


def call(kernel: Callable[..., Any], *arguments: Any) -> Any:
    """Call a kernel; where compiled code on disk is damaged, compile it again."""
    while NOTICES:
        LOG.log(*NOTICES.pop())
    try:
        return kernel(*arguments)
    except (EOFError, pickle.UnpicklingError) as error:
        LOG.warning("Compiled kernels in %s are damaged (%s) and are compiled again.", FOLDER, error)
        for path in FOLDER.rglob("*.nb?"):
            path.unlink(missing_ok=True)
        return kernel(*arguments)
