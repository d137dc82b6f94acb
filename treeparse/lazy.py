"""Packages whose names load at their first use, so that their light modules can be imported without torch."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def names_on_demand(package: str, modules: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a package; ``modules`` has the names of each module, with spaces."""
    homes = {name: module for module, names in modules.items() for name in names.split()}

    def load(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(homes[name]), name)

    return load
