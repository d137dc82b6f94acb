"""Where compiled kernels are kept, and what is said while they are compiled.

By itself, numba asks for a folder that it can write to even where all it needs lies there to be read, and raises where
it finds none. Here compiled code is read wherever it lies, and where it can be kept nowhere it serves this process.

The logger ``treeparse.kernels`` says which kernel is compiled (INFO) or was found (DEBUG), with ``kernel`` and
``folder`` as arguments, None where nothing is kept; and once, as a warning, that compiled kernels cannot be kept.
"""

import hashlib
import inspect
import logging
import os
import tempfile
import zlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Self

from numba.core import config, event
from numba.core.caching import (
    CompileResultCacheImpl,
    FunctionCache,
    IndexDataCacheFile,
    _CacheLocator,
)
from numba.misc.appdirs import AppDirs

LOG = logging.getLogger("treeparse.kernels")
NOT_KEPT = (
    "Compiled kernels cannot be kept (%s): every process compiles them again, for up to a minute. Set NUMBA_CACHE_DIR "
    "to a folder that can be written to, or run 'treeparse warm' once as the user who installed treeparse; for an "
    "image, where it is built."
)


KERNELS = Path(__file__).parent  # what lies there and below is compiled anew when any of it changes


@cache
def _digest_of_sources() -> bytes:
    digest = hashlib.sha256()
    for source in sorted(KERNELS.rglob("*.py")):
        digest.update(source.relative_to(KERNELS).as_posix().encode() + b"\0" + source.read_bytes())
    return digest.digest()


def _place_of(function: Callable[..., Any]) -> tuple[Path, str]:
    """The folder that keeps its compiled code, if it can, and the name of its module there.

    Kernels are kept together, whichever room they are in; what others compile is kept beside its source.
    """
    source = Path(inspect.getfile(function))
    folder = KERNELS if source.is_relative_to(KERNELS) else source.parent
    return folder, ".".join(source.relative_to(folder).with_suffix("").parts)


@cache
def _is_writable(folder: str) -> bool:
    try:
        os.makedirs(folder, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return False
    return True


class _Locator(_CacheLocator):
    """Of a function's source; it names no folder, for ``KernelCache`` does."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._module, self._line = _place_of(function)[1], function.__code__.co_firstlineno

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], py_file: str) -> Self:
        return cls(py_func)

    def get_cache_path(self) -> Any:
        return ""

    def get_source_stamp(self) -> Any:
        return _digest_of_sources()

    def get_disambiguator(self) -> Any:
        return f"{self._module}-{self._line}"  # rooms may have files and functions of the same name


class _Serializer(CompileResultCacheImpl):
    _locator_classes: ClassVar = [_Locator]


class _CodeFile(IndexDataCacheFile):
    """A function's compiled code in one folder, which several processes and kinds of machines may share."""

    def save(self, key: Any, data: Any) -> None:
        """Write the code first: an index never leads to what an older version, or another machine, has left there."""
        signature, machine, _ = key
        name = self._data_name(zlib.crc32(repr((signature, machine)).encode()))
        self._save_data(name, data)
        self._save_index({**self._load_index(), key: name})

    def _load_index(self) -> dict[Any, str]:
        try:
            return super()._load_index()
        except Exception:  # unreadable or damaged in whatever way: it is written again
            return {}


class KernelCache(FunctionCache):
    """numba's cache of one function; its code is stale once any source in this folder or below has changed."""

    _impl_class = _Serializer

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self._home, module = _place_of(function)
        self._kernel = f"{module}.{function.__qualname__.lstrip('_')}"

    @property
    def folder(self) -> str | None:
        """Where compiled code is kept: the first of the folders that can be written to."""
        return next(filter(_is_writable, self._folders()), None)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled code, if any of the folders up to that where it would be kept has it."""
        target_context.refresh()
        key = self._index_key(sig, target_context.codegen())
        for folder in self._folders():
            try:
                data = self._file_in(folder).load(key)
                if data is not None:
                    code = self._impl.rebuild(target_context, data)
                    self._log(logging.DEBUG, "found compiled: %(kernel)s", folder)
                    return code
            except Exception:  # whatever is wrong with what lies there, it can be compiled again
                LOG.debug("compiled code of %s in %s is damaged", self._name, folder, exc_info=True)
            if _is_writable(folder):
                break
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        folder = self.folder
        if folder is None or not self._impl.check_cachable(data):
            return
        try:
            os.makedirs(folder, exist_ok=True)
            self._file_in(folder).save(self._index_key(sig, data.codegen), self._impl.reduce(data))
        except OSError as error:  # the disk is full, or the folder is no longer what it was
            _announcer.warn(f"{folder}: {error.strerror}")

    def announce(self) -> None:
        """Say that the kernel is about to be compiled."""
        if self.folder is None:
            _announcer.warn("no folder for them can be written to")
        how_long = "once" if self.folder else "for this process"
        self._log(logging.INFO, f"compiling kernels, {how_long}: %(kernel)s", self.folder)

    def _log(self, level: int, message: str, folder: str | None) -> None:
        LOG.log(level, message, {"kernel": self._kernel, "folder": folder})

    def _folders(self) -> list[str]:
        """numba's, in its order: NUMBA_CACHE_DIR, beside the sources, the user's."""
        name = _Locator.get_suitable_cache_subpath(str(self._home / "kernels"))  # of any file there
        folders = [self._home / "__pycache__", Path(AppDirs("numba", appauthor=False).user_cache_dir, name)]
        if config.CACHE_DIR:  # pyright: ignore[reportAttributeAccessIssue]
            folders.insert(0, Path(config.CACHE_DIR, name))  # pyright: ignore[reportAttributeAccessIssue]
        return [str(folder) for folder in folders if folder.parts[0] != "~"]  # of a user who has no home

    def _file_in(self, folder: str) -> _CodeFile:
        return _CodeFile(folder, self._impl.filename_base, _digest_of_sources())


class _Announcer(event.Listener):
    """Announces every kernel that is compiled; what is compiled as a part of it has no cache of its own."""

    has_warned = False

    def warn(self, reason: str) -> None:
        """Say, once, that compiled kernels are lost with the process."""
        if not self.has_warned:
            self.has_warned = True
            LOG.warning(NOT_KEPT, reason)

    def on_start(self, event: Any) -> None:
        if isinstance(code := event.data["dispatcher"]._cache, KernelCache):
            code.announce()

    def on_end(self, event: Any) -> None:
        pass


_announcer = _Announcer()
event.register("numba:compile", _announcer)
