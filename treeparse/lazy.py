"""Packages whose names load at their first use, so that their light modules can be imported without torch."""

from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any


def names_on_demand(package: str, file: str) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a package, for the names that ``file`` imports under ``if TYPE_CHECKING:``."""

    @cache
    def modules() -> dict[str, str]:
        import ast

        tree = ast.parse(Path(file).read_text(encoding="utf-8"))
        blocks = [node for node in tree.body if isinstance(node, ast.If)]
        imports = [node for block in blocks for node in block.body if isinstance(node, ast.ImportFrom)]
        return {alias.name: str(node.module) for node in imports for alias in node.names}

    def load(name: str) -> Any:
        if name.startswith("__") or name not in modules():
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(modules()[name]), name)

    return load
