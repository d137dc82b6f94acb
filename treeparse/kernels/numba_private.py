"""Every private part of numba that kernels use: how they are compiled in two forms, and where they are cached.

``compile`` imports this module, and compiles by the plain ``numba.njit`` where that raises an ImportError: because a
name of numba's is missing, or takes other arguments than these classes rely on. Results are the same bits; compiling
takes longer, calls with many arrays too, and nothing is cached.

By itself, numba needs a writable folder even where it can read all that it needs, and raises if there is none.
``KernelCache`` reads compiled code from any folder, and compiles for this process alone if no folder is writable.
Where no folder has it, code that the package ``treeparse-kernels`` brings for kinds of processors comes before the
compiler: it is up to twice as slow as code for this one, which ``treeparse warm`` makes, and has the same bits.

The logger ``treeparse.kernels`` says which kernel is compiled (INFO) or was read from a cache (DEBUG), with ``kernel``
and ``folder`` as arguments; ``folder`` is None without a cache. It warns once if compiled kernels cannot be cached.
"""

import hashlib
import inspect
import json
import logging
import os
import tempfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import llvmlite
import numba
from numba import types
from numba.core import config, event
from numba.core.base import BaseContext
from numba.core.caching import (
    CompileResultCacheImpl,
    FunctionCache,
    IndexDataCacheFile,
    _CacheLocator,
)
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.dispatcher import Dispatcher
from numba.core.options import DefaultOptions
from numba.core.targetconfig import ConfigStack
from numba.misc.appdirs import AppDirs

# What the classes of this module override or call, by name, with its parameters; None: only its existence matters.
RELIED_ON: dict[Any, dict[str, tuple[str, ...] | None]] = {
    JITCodeLibrary: {
        "__init__": ("self", "codegen", "name"),
        "_finalize_final_module": ("self",),
        "_finalize_dynamic_globals": ("self",),
        "_verify_declare_only_symbols": ("self",),
        "_optimize_final_module": ("self",),
        "has_dynamic_globals": None,
    },
    Compiler: {"compile_extra": ("self", "func")},
    BaseContext: {"insert_user_function": ("self", "func", "fndesc", "libs")},
    Dispatcher: {"get_call_template": ("self", "args", "kws"), "get_overload": ("self", "sig"), "_insert": None},
    DefaultOptions: {"_nrt": None, "no_cfunc_wrapper": None, "no_cpython_wrapper": None},
    ConfigStack: {"top_or_none": ()},
    FunctionCache: {
        "__init__": ("self", "py_func"),
        "load_overload": ("self", "sig", "target_context"),
        "save_overload": ("self", "sig", "data"),
        "_index_key": ("self", "sig", "codegen"),
    },
    CompileResultCacheImpl: {
        "reduce": ("self", "cres"),
        "rebuild": ("self", "target_context", "payload"),
        "filename_base": None,
    },
    IndexDataCacheFile: {
        "__init__": ("self", "cache_path", "filename_base", "source_stamp"),
        "load": ("self", "key"),
        "save": ("self", "key", "data"),
        "_load_index": ("self",),
        "_save_index": ("self", "overloads"),
        "_save_data": ("self", "name", "data"),
        "_data_name": ("self", "number"),
    },
    _CacheLocator: {
        "from_function": ("py_func", "py_file"),
        "get_cache_path": ("self",),
        "get_source_stamp": ("self",),
        "get_disambiguator": ("self",),
        "get_suitable_cache_subpath": ("py_file",),
    },
    AppDirs: {"user_cache_dir": None},
    event: {"register": ("kind", "listener"), "Listener": None},
}


def _changes() -> Iterator[str]:
    """Return the names in ``RELIED_ON`` that numba lacks, or has with other parameters."""
    for owner, names in RELIED_ON.items():
        for name, expected in names.items():
            if not hasattr(owner, name):
                yield f"{owner.__name__}.{name} is missing"
            elif expected is not None:
                parameters = tuple(inspect.signature(getattr(owner, name)).parameters)
                if parameters != expected:
                    yield f"{owner.__name__}.{name} takes {parameters}, not {expected}"


if changes := list(_changes()):
    raise ImportError("; ".join(changes))

LOG = logging.getLogger("treeparse.kernels")
NOT_CACHED = (
    "Compiled kernels cannot be cached (%s): every process compiles them again, for up to a minute. Set "
    "NUMBA_CACHE_DIR to a writable folder, or run 'treeparse warm' once as the user who installed treeparse; for an "
    "image, run it where the image is built."
)
SHIPPED = "treeparse_kernels"  # the package
KERNELS = Path(__file__).parent  # a change of any source in this folder or below makes all cached code stale


@cache
def _digest_of_sources(folder: Path = KERNELS) -> bytes:
    """Return the digest of all kernels' sources, and of the sources in another folder that has kernels."""
    digest = hashlib.sha256()
    for source in sorted({*KERNELS.rglob("*.py"), *folder.glob("*.py")}):
        digest.update(os.path.relpath(source, KERNELS).encode() + b"\0" + source.read_bytes())
    return digest.digest()


def _module_of(function: Callable[..., Any]) -> tuple[Path, str]:
    """Return the folder below which a function's code is cached, and the name of its module in that folder.

    All kernels share one folder, whichever package they are in; code of other functions is cached beside its source.
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
    """The source of a function. It names no folder, because ``KernelCache`` does."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._home, self._module = _module_of(function)
        self._line = function.__code__.co_firstlineno

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], py_file: str) -> Self:
        return cls(py_func)

    def get_cache_path(self) -> Any:
        return ""

    def get_source_stamp(self) -> Any:
        return _digest_of_sources(self._home)

    def get_disambiguator(self) -> Any:
        return f"{self._module}-{self._line}"  # packages may have files and functions of the same name


class _Serializer(CompileResultCacheImpl):
    _locator_classes: ClassVar = [_Locator]


class _CodeFile(IndexDataCacheFile):
    """The compiled code of a function in one folder, which several processes and kinds of machines may share."""

    def save(self, key: Any, data: Any) -> None:
        """Write the code before the index, so that an index never names code of an older version or another machine."""
        signature, machine, _ = key
        name = self._data_name(zlib.crc32(repr((signature, machine)).encode()))
        self._save_data(name, data)
        self._save_index({**self._load_index(), key: name})

    def _load_index(self) -> dict[Any, str]:
        try:
            return super()._load_index()
        except Exception:  # unreadable or damaged: it is written again
            return {}


class ShippedCode(NamedTuple):
    """Compiled code of all kernels for a kind of processor, from the package ``treeparse-kernels``."""

    folder: str
    machine: tuple[str, str, str]  # target, processor and features, as numba names them

    @staticmethod
    def versions() -> dict[str, str]:
        """Return what compiled code depends on besides the processor."""
        sources = _digest_of_sources().hex()
        return {"sources": sources, "numba": numba.__version__, "llvmlite": llvmlite.__version__}


@cache
def shipped_code(target: str, features: str) -> ShippedCode | None:
    """Return the code for the most able kind of processor whose features a processor has, if it fits its versions."""
    package = find_spec(SHIPPED)
    places = [Path(place) for place in (package and package.submodule_search_locations) or ()]
    for manifest in sorted((path for place in places for path in place.glob("*/manifest.json")), reverse=True):
        try:
            described = json.loads(manifest.read_text(encoding="utf-8"))
            own_target, _, own_features = described["machine"]
        except (OSError, ValueError, KeyError):
            LOG.debug("%s is damaged", manifest, exc_info=True)
            continue
        if described["versions"] != ShippedCode.versions():
            LOG.debug("code in %s is of other versions: %s", manifest.parent, described["versions"])
        elif own_target == target and {*own_features.split(",")} <= {*features.split(",")}:
            return ShippedCode(str(manifest.parent), tuple(described["machine"]))
    return None


_reads_shipped_code = ContextVar("reads_shipped_code", default=True)


@contextmanager
def without_shipped_code() -> Iterator[None]:
    """Compile kernels for this processor within the block, even where shipped code would do."""
    token = _reads_shipped_code.set(False)
    try:
        yield
    finally:
        _reads_shipped_code.reset(token)


class KernelCache(FunctionCache):
    """The cache of one function. Its code is stale once any source in this folder or below has changed."""

    _impl_class = _Serializer

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self._home, module = _module_of(function)
        self._kernel = f"{module}.{function.__qualname__.lstrip('_')}"

    @property
    def folder(self) -> str | None:
        """The first writable folder of the cache, or None."""
        return next(filter(_is_writable, self._folders()), None)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the compiled code from the folders up to the first writable one, or shipped code, or None."""
        target_context.refresh()
        key = self._index_key(sig, target_context.codegen())
        for folder in self._folders():
            code = self._read(folder, key, target_context)
            if code is not None:
                return code
            if _is_writable(folder):
                break
        if not (_reads_shipped_code.get() and self._home == KERNELS):
            return None
        signature, (target, _, features), source = key
        shipped = shipped_code(target, features)
        return shipped and self._read(shipped.folder, (signature, shipped.machine, source), target_context)

    def _read(self, folder: str, key: Any, target_context: Any) -> Any:
        """Return the compiled code from a folder, None where it has none."""
        try:
            data = self._file_in(folder).load(key)
            if data is None:
                return None
            code = self._impl.rebuild(target_context, data)
        except Exception:  # whatever is wrong with the file, the kernel can be compiled again
            LOG.debug("compiled code of %s in %s is damaged", self._name, folder, exc_info=True)
            return None
        self._log(logging.DEBUG, "read from cache: %(kernel)s", folder)
        return code

    def save_overload(self, sig: Any, data: Any) -> None:
        folder = self.folder
        if folder is None or data.library.has_dynamic_globals:  # addresses of this process, as under NUMBA_OPT=0
            return
        try:
            os.makedirs(folder, exist_ok=True)
            self._file_in(folder).save(self._index_key(sig, data.codegen), self._impl.reduce(data))
        except OSError as error:  # the disk is full, or the folder is no longer what it was
            _announcer.warn(f"{folder}: {error.strerror}")

    def announce(self) -> None:
        """Log that the kernel is about to be compiled."""
        if self.folder is None:
            _announcer.warn("no folder for them is writable")
        how_long = "once" if self.folder else "for this process"
        self._log(logging.INFO, f"compiling kernels, {how_long}: %(kernel)s", self.folder)

    def _log(self, level: int, message: str, folder: str | None) -> None:
        LOG.log(level, message, {"kernel": self._kernel, "folder": folder})

    def _folders(self) -> list[str]:
        """Numba's folders in its order: NUMBA_CACHE_DIR, the one next to the sources, the user's cache."""
        name = _Locator.get_suitable_cache_subpath(str(self._home / "kernels"))  # of any file there
        folders = [self._home / "__pycache__", Path(AppDirs("numba", appauthor=False).user_cache_dir, name)]
        if config.CACHE_DIR:  # pyright: ignore[reportAttributeAccessIssue]
            folders.insert(0, Path(config.CACHE_DIR, name))  # pyright: ignore[reportAttributeAccessIssue]
        return [str(folder) for folder in folders if folder.parts[0] != "~"]  # of a user who has no home

    def _file_in(self, folder: str) -> _CodeFile:
        return _CodeFile(folder, self._impl.filename_base, _digest_of_sources(self._home))


class _Announcer(event.Listener):
    """Logs every kernel that is compiled. Functions compiled as its parts have no cache, so they are not logged."""

    has_warned = False

    def warn(self, reason: str) -> None:
        """Log, once a process, that compiled kernels are lost when the process ends."""
        if not self.has_warned:
            self.has_warned = True
            LOG.warning(NOT_CACHED, reason)

    def on_start(self, event: Any) -> None:
        if isinstance(code := event.data["dispatcher"]._cache, KernelCache):
            code.announce()

    def on_end(self, event: Any) -> None:
        pass


_announcer = _Announcer()
event.register("numba:compile", _announcer)


class _InnerCode(JITCodeLibrary):
    """The code of a function for the kernels that it is linked into, which alone become machine code."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True


class _PartCode(_InnerCode):
    """The code of a function that is optimised only as a part of the kernels that it is linked into."""

    def _optimize_final_module(self) -> None:
        pass


class _InnerCompiler(Compiler):
    code: type[JITCodeLibrary] = _InnerCode

    def compile_extra(self, func: Callable[..., Any]) -> Any:
        target = self.state.targetctx
        self.state.library = self.code(target.codegen(), func.__qualname__)
        self.state.flags.no_compile = True
        result = super().compile_extra(func)._replace(entry_point=object())  # identifies calls from kernels
        returned = result.signature.return_type
        if not self.state.flags.nrt and target.data_model_manager[returned].contains_nrt_meminfo():
            raise TypeError(f"{func.__qualname__} borrows its arrays, so it cannot return an array ({returned}).")
        target.insert_user_function(result.entry_point, result.fndesc, [result.library])
        return result


class _PartCompiler(_InnerCompiler):
    code = _PartCode


def compiled(function: Callable[..., Any], *, part: bool = False, borrows: bool = False, **options: Any) -> Any:
    """Compile a function in two forms: one that Python calls, and one that kernels call.

    The second form has neither a wrapper for Python nor machine code, which took two fifths of the time of compiling.

    Args:
        function: the function.
        part: whether the second form is optimised only within the kernels that call it.
        borrows: whether references to its arrays are not counted, neither by it nor by the functions that it calls.
        options: of ``numba.njit``.
    """
    # C code never calls kernels, and wrappers for C would take a tenth of the time that compiling takes.
    options["no_cfunc_wrapper"] = True
    if borrows:
        options["_nrt"] = False
    dispatcher: Any = numba.njit(**options)(function)
    if dispatcher is not function:  # under NUMBA_DISABLE_JIT=1 it is the function

        @cache
        def inner_form(counts: bool) -> Any:
            compiler = _PartCompiler if part else _InnerCompiler
            inner_options: dict[str, Any] = {**options, "_nrt": counts, "no_cpython_wrapper": True, "cache": False}
            inner: Any = numba.njit(**inner_options, pipeline_class=compiler)(function)
            inner._insert = lambda *_: None  # Python has nothing to call
            return inner

        def form_here() -> Any:
            return inner_form(not borrows and _counts_references())

        dispatcher.get_call_template = lambda *call: form_here().get_call_template(*_for_any_number(*call))
        dispatcher.get_overload = lambda signature: form_here().get_overload(signature)
    return dispatcher


def _counts_references() -> bool:
    """Whether the function that is being compiled counts references to arrays; functions that it calls do the same."""
    flags: Any = ConfigStack.top_or_none()
    return flags.nrt


def _for_any_number(args: Sequence[types.Type], kws: Mapping[str, types.Type]) -> tuple[list[Any], dict[str, Any]]:
    """The argument types of a call from a kernel without the values of literal numbers.

    Otherwise numba compiles the function again for each literal number.
    """
    return [types.unliteral(arg) for arg in args], {k: types.unliteral(v) for k, v in kws.items()}


def compiled_and_cached(function: Callable[..., Any], **options: Any) -> Any:
    """Compile a kernel as ``compiled`` does, and cache its code on disk until any source of the kernels changes."""
    kernel = compiled(function, **options)
    if kernel is not function:
        kernel._cache = KernelCache(function)
    return kernel
