"""Dependency parsing in PyTorch with exact distributions over trees.

The public names load when they are first used, so ``import treeparse`` itself costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from treeparse import metrics as metrics
    from treeparse.errors import DataError as DataError
    from treeparse.errors import NoTreeError as NoTreeError
    from treeparse.errors import TreeparseError as TreeparseError
    from treeparse.model import Parse as Parse
    from treeparse.model import Parser as Parser
    from treeparse.sentence import Sentence as Sentence
    from treeparse.trees import LabeledCRF as LabeledCRF
    from treeparse.trees import NonProjectiveCRF as NonProjectiveCRF
    from treeparse.trees import ProjectiveCRF as ProjectiveCRF

    __version__: str

_HOMES = {
    "DataError": "treeparse.errors",
    "LabeledCRF": "treeparse.trees",
    "NoTreeError": "treeparse.errors",
    "NonProjectiveCRF": "treeparse.trees",
    "Parse": "treeparse.model",
    "Parser": "treeparse.model",
    "ProjectiveCRF": "treeparse.trees",
    "Sentence": "treeparse.sentence",
    "TreeparseError": "treeparse.errors",
}
_SUBPACKAGES = ("metrics",)

__all__ = [*_HOMES, *_SUBPACKAGES, "__version__"]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> object:
    if name in _SUBPACKAGES:
        return import_module(f"treeparse.{name}")
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if name == "__version__":
        return import_module("treeparse.version").installed_version()
    raise AttributeError(f"module 'treeparse' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
