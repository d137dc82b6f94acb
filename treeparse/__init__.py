"""Dependency parsing in PyTorch with exact distributions over trees.

Each public name loads at its first use, so ``import treeparse`` itself costs almost nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from treeparse.lazy import names_on_demand

if TYPE_CHECKING:
    from treeparse import metrics as metrics
    from treeparse.errors import DataError as DataError
    from treeparse.errors import NoTreeError as NoTreeError
    from treeparse.errors import TreeparseError as TreeparseError
    from treeparse.model import Parse as Parse
    from treeparse.model import Parser as Parser
    from treeparse.sentence import Sentence as Sentence
    from treeparse.trees import LabeledCRF as LabeledCRF
    from treeparse.trees import Mixture as Mixture
    from treeparse.trees import NonProjectiveCRF as NonProjectiveCRF
    from treeparse.trees import NonProjectiveSiblingCRF as NonProjectiveSiblingCRF
    from treeparse.trees import ProjectiveCRF as ProjectiveCRF
    from treeparse.trees import SecondOrderCRF as SecondOrderCRF
    from treeparse.trees import SiblingCRF as SiblingCRF

    __version__: str

_MODULES = {
    "treeparse.errors": "DataError NoTreeError TreeparseError",
    "treeparse.model": "Parse Parser",
    "treeparse.sentence": "Sentence",
    "treeparse.trees": (
        "LabeledCRF Mixture NonProjectiveCRF NonProjectiveSiblingCRF ProjectiveCRF SecondOrderCRF SiblingCRF"
    ),
}
_load, _names = names_on_demand(__name__, _MODULES)
__all__ = [
    "DataError",
    "LabeledCRF",
    "Mixture",
    "NoTreeError",
    "NonProjectiveCRF",
    "NonProjectiveSiblingCRF",
    "Parse",
    "Parser",
    "ProjectiveCRF",
    "SecondOrderCRF",
    "Sentence",
    "SiblingCRF",
    "TreeparseError",
]


def __getattr__(name: str) -> object:
    if name == "metrics":
        return import_module("treeparse.metrics")
    if name == "__version__":
        return import_module("treeparse.shipped").installed_version()
    return _load(name)


def __dir__() -> list[str]:
    return sorted({*_names(), "metrics", "__version__"})
