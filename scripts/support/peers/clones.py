"""What the benchmarks take from clones of other projects, without the packages these need for all the rest.

Peers lay scores out in their own ways: by dependent, with root arcs on the diagonal, or without a rule for the root.
"""

import importlib
import importlib.util
import sys
import types
import warnings
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
FORBIDDEN = -1e9


def import_supar(directory: Path, module: str, bare: Sequence[str] = ("supar", "supar.utils", "supar.structs")) -> Any:
    """A module of SuPar's clone, without what the ``bare`` packages import by themselves and without omegaconf."""
    bare_packages(directory, bare)
    stand_in("omegaconf", DictConfig=object, OmegaConf=object)  # imported by its helpers, which we never call
    with warnings.catch_warnings(action="ignore"):  # its use of torch.cuda.amp is deprecated
        return importlib.import_module(module)


def bare_packages(directory: Path, names: Sequence[str]) -> None:
    """Packages of a clone from which modules can be imported, but whose own ``__init__`` is not run."""
    for name in names:
        package = types.ModuleType(name)
        package.__path__ = [str(directory.joinpath(*name.split(".")))]
        sys.modules[name] = package


def stand_in(name: str, **contents: object) -> None:
    """A module with these contents, where the package that a clone imports and need not call is not installed."""
    if name not in sys.modules and importlib.util.find_spec(name) is None:
        module = types.ModuleType(name)
        module.__spec__ = ModuleSpec(name, None)  # others that look whether there is such a package need one
        module.__dict__.update(contents)
        sys.modules[name] = module


def import_package(directory: Path, module: str) -> Any:
    """A module of a clone that imports as it is."""
    sys.path.insert(0, str(directory))
    try:
        return importlib.import_module(module)
    finally:
        sys.path.remove(str(directory))


def import_file(directory: Path, *path: str) -> Any:
    """A file of a clone by itself, without the package around it."""
    file = directory.joinpath(*path)
    spec = importlib.util.spec_from_file_location(f"{directory.name}_{file.stem}", file)
    if spec is None or spec.loader is None or not file.exists():
        raise SystemExit(f"There is no {file}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def lower_root_arcs(scores: Array) -> Array:
    """Scores under which every best tree has one root arc, if the graph is complete."""
    lowered = scores.copy()
    lowered[:, 0] -= (np.ptp(scores) + 1) * scores.shape[-1]
    return lowered


def forbid_loops(scores: Array, value: float) -> Array:
    """Scores whose self-loops and arcs into the root are ``value``."""
    arcs = scores.copy()
    arcs[:, np.arange(arcs.shape[1]), np.arange(arcs.shape[1])] = value
    arcs[:, :, 0] = value
    return arcs


def dependent_major(scores: Array) -> Array:
    """``scores[dependent, head]`` without self-loops or arcs into the root."""
    return np.ascontiguousarray(forbid_loops(scores, FORBIDDEN).transpose(0, 2, 1))


def roots_on_diagonal(scores: Array) -> Array:
    """``scores[head, dependent]`` between words, with the root arcs on the diagonal, (B, n, n)."""
    loops = np.eye(scores.shape[-1] - 1) == 1
    return np.where(loops, scores[:, :1, 1:], scores[:, 1:, 1:])
