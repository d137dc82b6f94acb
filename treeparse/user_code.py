"""Imports of users' own code, which settings and options name by a path: ``mymodule.MyLoss``."""

from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

from treeparse.errors import TreeparseError


def import_code(module: str) -> ModuleType:
    """Import a module, which runs its code.

    Raises:
        TreeparseError: the module does not exist, or its code fails.
    """
    try:
        return import_module(module)
    except Exception as error:
        raise TreeparseError(
            f"The module {module!r:.100} cannot be imported ({type(error).__name__}: {error}): it must be in the "
            "current folder or be installed."
        ) from error


def check_module(module: str) -> None:
    """Raise as `import_code` does if a module does not exist; a module that exists is not run."""
    try:
        exists = find_spec(module) is not None
    except (ImportError, ValueError, AttributeError):  # its package cannot be imported
        exists = False
    if not exists:
        import_code(module)
