"""Names of packages, and attributes of objects, that are made at their first use."""

import contextlib
import functools
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, TypeVar, cast

from treeparse.errors import naming_missing_packages

T = TypeVar("T")


def names_on_demand(package: str, modules: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the ``__getattr__`` and the ``__dir__`` of a package whose light modules can be imported without torch.

    ``modules`` has the names of each module, with spaces. ``dir``, and so ``help``, has them whether loaded or not.
    """
    homes = {name: module for module, names in modules.items() for name in names.split()}

    def load(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        with naming_missing_packages(f"{package}.{name}"):
            return getattr(import_module(homes[name]), name)

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *homes})

    return load, names


class cached_property(functools.cached_property[T]):
    """``functools.cached_property`` without the lock that it has before Python 3.12, which torch.compile cannot trace.

    Threads that ask at the same time may compute a value twice; the last one stays.
    """

    def __get__(self, instance: Any, owner: type | None = None) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        if instance is None:
            return self
        value = self.func(instance)
        object.__setattr__(instance, cast(str, self.attrname), value)
        return value


class graph_property(cached_property[T]):
    """A `cached_property` that records its graph for gradients, even if it is first used without gradients."""

    def __get__(self, instance: Any, owner: type | None = None) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        import torch  # here, because `import treeparse` does without it

        if instance is None:
            return self
        with contextlib.nullcontext() if torch.is_grad_enabled() else torch.enable_grad():
            value = self.func(instance)
        object.__setattr__(instance, cast(str, self.attrname), value)
        return value
