"""Imports of users' own code, which settings and options name by a path: ``mymodule.MyLoss``."""

from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import TypeVar

from treeparse.errors import TreeparseError, name_among

T = TypeVar("T")


def import_code(module: str) -> ModuleType:
    """Import a module, which runs its code.

    Raises:
        TreeparseError: the module does not exist, or its code fails.
    """
    try:
        return import_module(module)
    except Exception as error:
        remedy = ": it must be in the current folder or be installed" * isinstance(error, ModuleNotFoundError)
        problem = f"The module {module!r:.100} cannot be imported ({type(error).__name__}: {error}){remedy}."
        raise TreeparseError(problem) from error


def check_module(module: str) -> None:
    """Raise as `import_code` does if a module does not exist; a module that exists is not run."""
    try:
        exists = find_spec(module) is not None
    except (ImportError, ValueError, AttributeError):  # its package cannot be imported
        exists = False
    if not exists:
        import_code(module)


def check_name(name: str, table: Mapping[str, object], noun: str) -> str:
    """Return the name of a class in a table, or a class path, which is not imported; raise for another name."""
    if "." in name:
        return name
    return name_among(name, (*table,), f"Unknown {noun} {name!r:.60}, which is no class path")


def class_named(name: str, table: Mapping[str, type[T]], base: type[T], noun: str) -> type[T]:
    """Return the class of a name in a table, or of a class path, such as ``mine.Brackets``, which is imported.

    Raises:
        TreeparseError: the name is unknown, or the class is no subclass of ``base``.
    """
    name = check_name(name, table, noun)
    if name in table:
        return table[name]
    module, _, attribute = name.rpartition(".")
    kind = getattr(import_code(module), attribute, None)
    if kind is None:
        raise TreeparseError(f"Unknown {noun} {name}: the module {module} has no class {attribute!r}.")
    if not (isinstance(kind, type) and issubclass(kind, base)):
        raise TreeparseError(f"The {noun} {name} must be a subclass of {base.__module__}.{base.__name__}.")
    return kind
