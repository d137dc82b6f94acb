"""Code of users, named by a path: ``mymodule.MyLoss``."""

from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

from treeparse.errors import TreeparseError


def import_code(module: str) -> ModuleType:
    """Import a module by its name, which runs what is in it; raise a sentence where that fails."""
    try:
        return import_module(module)
    except Exception as error:
        raise TreeparseError(
            f"The module {module!r:.100} cannot be imported ({type(error).__name__}: {error}): it must lie in the "
            "current folder or be installed."
        ) from error


def check_module(module: str) -> None:
    """Raise as `import_code` does where there is no module of that name; of one that exists nothing runs."""
    try:
        found = find_spec(module) is not None
    except (ImportError, ValueError, AttributeError):  # of what it would lie in
        found = False
    if not found:
        import_code(module)
