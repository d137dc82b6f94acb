"""How every kernel is compiled.

A kernel is one compiled function ``kernel(start, stop, lengths, ...)`` that does the batch items of a range, which
``threads`` calls. Compiled code is kept on disk until any file of this folder or below changes (``cache``), so a kernel
may call helpers of another file and room.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numba
from numba import types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler

from treeparse.kernels.cache import KernelCache


class _PartCode(JITCodeLibrary):
    """The code of a function that is optimised only as a part of the kernels that it is linked into."""

    def _optimize_final_module(self) -> None:
        pass


class _PartCompiler(Compiler):
    def compile_extra(self, func: Callable[..., Any]) -> Any:
        self.state.library = _PartCode(self.state.targetctx.codegen(), func.__qualname__)
        self.state.library.enable_object_caching()
        return super().compile_extra(func)


# Nobody calls kernels from C: wrappers for that would take a tenth of the time that compiling takes.
OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}


def _compiler(**options: Any) -> Any:
    def compile_function(function: Callable[..., Any]) -> Any:
        dispatcher: Any = numba.njit(**OPTIONS, **options)(function)
        if dispatcher is not function:  # as it is under NUMBA_DISABLE_JIT=1
            dispatcher._cache = KernelCache(function)
            dispatcher.get_call_template = _for_any_number(dispatcher.get_call_template)
        return dispatcher

    return compile_function


def _for_any_number(template_for: Callable[..., Any]) -> Callable[..., Any]:
    """The code for a call from a kernel, which by itself numba compiles anew for each number that stands in one."""

    def template_for_types(args: Sequence[types.Type], kws: Mapping[str, types.Type]) -> Any:
        return template_for([types.unliteral(arg) for arg in args], {k: types.unliteral(v) for k, v in kws.items()})

    return template_for_types


# fastmath is said to be off: otherwise numba compiles a helper with the flags of the first caller that needs it.
jit = _compiler(fastmath=False)
# For what calls much and is called by kernels alone: with a function numba optimises all that it calls over again, so
# that deep calls take long to compile. Inner loops are better optimised by themselves, too.
part_jit = _compiler(fastmath=False, pipeline_class=_PartCompiler)
# The flags let loops over sums be vectorised. Neither nnan nor ninf: -inf is a score, and finiteness is tested.
vector_jit = _compiler(fastmath={"reassoc", "contract", "nsz"})
# Likewise, but every sum stands as it is written, which rounding by adding and taking away needs.
fused_jit = _compiler(fastmath={"contract"})
