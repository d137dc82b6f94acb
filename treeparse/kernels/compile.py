"""How every kernel is compiled.

A kernel is one compiled function ``kernel(start, stop, lengths, ...)`` that does the batch items of a range, which
``threads`` calls. Compiled code is kept on disk until any file of this folder or below changes (``cache``), so a kernel
may call helpers of another file and room.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numba
from numba import types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.targetconfig import ConfigStack

from treeparse.kernels.cache import KernelCache


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
        result = super().compile_extra(func)._replace(entry_point=object())  # calls from kernels are known by it
        returned = result.signature.return_type
        if not self.state.flags.nrt and target.data_model_manager[returned].contains_nrt_meminfo():
            raise TypeError(f"{func.__qualname__} is lent its arrays, so it cannot return any ({returned}).")
        target.insert_user_function(result.entry_point, result.fndesc, [result.library])
        return result


class _PartCompiler(_InnerCompiler):
    code = _PartCode


# Nobody calls kernels from C: wrappers for that would take a tenth of the time that compiling takes.
OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}


def compiled(function: Callable[..., Any], inner: type[Compiler] = _InnerCompiler, **options: Any) -> Any:
    """The function as it is called from Python; kernels that call it have a form of their own.

    Their form has neither a wrapper for Python nor machine code, which took two fifths of the time of compiling.
    """
    dispatcher: Any = numba.njit(**OPTIONS, **options)(function)
    if dispatcher is not function:  # as it is under NUMBA_DISABLE_JIT=1
        as_part = {"cache": False, "no_cpython_wrapper": True, "pipeline_class": inner}
        may_count = options.get("_nrt", True)

        @cache
        def form(counting: bool) -> Any:
            flags: dict[str, Any] = {**OPTIONS, **options, **as_part, "_nrt": counting}
            made: Any = numba.njit(**flags)(function)
            made._insert = lambda *_: None  # nothing that Python could call
            return made

        def form_here() -> Any:
            return form(may_count and _is_counting())

        dispatcher.get_call_template = lambda *call: form_here().get_call_template(*_for_any_number(*call))
        dispatcher.get_overload = lambda signature: form_here().get_overload(signature)
    return dispatcher


def _is_counting() -> bool:
    """Whether the function that is being compiled counts references to arrays; what it calls does likewise."""
    flags: Any = ConfigStack.top_or_none()
    return flags.nrt


def _for_any_number(args: Sequence[types.Type], kws: Mapping[str, types.Type]) -> tuple[list[Any], dict[str, Any]]:
    """The arguments of a call from a kernel, which by itself numba compiles anew for each number that stands in one."""
    return [types.unliteral(arg) for arg in args], {k: types.unliteral(v) for k, v in kws.items()}


def _compiler(inner: type[Compiler] = _InnerCompiler, **options: Any) -> Any:
    def compile_kernel(function: Callable[..., Any]) -> Any:
        kernel = compiled(function, inner, **options)
        if kernel is not function:
            kernel._cache = KernelCache(function)
        return kernel

    return compile_kernel


# fastmath is said to be off: otherwise numba compiles a helper with the flags of the first caller that needs it.
jit = _compiler(fastmath=False)
# For what calls much and is called by kernels alone: with a function numba optimises all that it calls over again, so
# that deep calls take long to compile. Inner loops are better optimised by themselves, too.
part_jit = _compiler(_PartCompiler, fastmath=False)
# These are lent their arrays: references to them are not counted, neither in them nor in what they call, which took
# most of the time of short calls with many arrays, in tuples too. So they neither make arrays nor return any.
lent_jit = _compiler(fastmath=False, _nrt=False)
lent_part_jit = _compiler(_PartCompiler, fastmath=False, _nrt=False)
# The flags let loops over sums be vectorised. Neither nnan nor ninf: -inf is a score, and finiteness is tested.
vector_jit = _compiler(fastmath={"reassoc", "contract", "nsz"}, _nrt=False)
# Likewise, but every sum stands as it is written, which rounding by adding and taking away needs.
fused_jit = _compiler(fastmath={"contract"}, _nrt=False)
# For views of arrays, which become part of what asks for them.
view_jit = _compiler(inline="always", fastmath=False)
