"""What is installed: the version, and by name what comes with it: configs, rules, constraints and models."""

import re
from importlib import metadata
from pathlib import Path

from treeparse.errors import TreeparseError, did_you_mean

MODEL = re.compile("[a-z]{2,3}")  # its name
KINDS = {"config": "configuration", "rules": "file of rules", "constraints": "file of constraints"}


def installed_version() -> str:
    """Return the version, or ``0+unknown`` if this copy of the package is not installed."""
    try:
        return metadata.version("treeparse")
    except metadata.PackageNotFoundError:
        return "0+unknown"


def shipped_files(kind: str = "config") -> dict[str, Path]:
    """Return the files of a kind by name, without ``.yaml``."""
    folder = _installed("configs", "configs")
    return {path.stem: path for path in sorted((folder if kind == "config" else folder / kind).glob("*.yaml"))}


def shipped_model(name: str | Path) -> Path | None:
    """Return the folder of a model that comes with treeparse, by the code of its language; None for other names.

    The name of a file or folder here is none.
    """
    folder = _installed("models", "data/models") / str(name)
    return folder if MODEL.fullmatch(str(name)) and folder.is_dir() and not Path(name).exists() else None


def _installed(in_wheel: str, in_checkout: str) -> Path:
    package = Path(__file__).resolve().parent
    folders = (package / in_wheel, package.parent / in_checkout)
    return next((folder for folder in folders if folder.is_dir()), folders[0])


def shipped_file(name: str, kind: str = "config") -> Path:
    """Return a file by its name, with or without ``.yaml``; the name may start with the kind, as ``rules/ud`` does.

    Raises:
        TreeparseError: no file has that name.
    """
    folder, _, stem = name.removesuffix(".yaml").rpartition("/")
    kind = folder or kind
    files = shipped_files(kind) if kind in KINDS else {}
    if stem not in files:
        known = list(files) if kind in KINDS else every_name()
        problem = f"Unknown {KINDS.get(kind, 'shipped file')} {name!r}: choose one of {', '.join(known)}"
        raise TreeparseError(problem + (did_you_mean(stem, known) or "."))
    return files[stem]


def file_or_shipped(name: str | Path, kind: str = "config") -> Path:
    """Return a file by its path, or by the name of an installed file; a path with a folder is not checked."""
    path = Path(name)
    return path if path.is_file() or path.name != str(name) else shipped_file(path.name, kind)


def every_name() -> list[str]:
    """Return the names of all files; rules and constraints have their kind before the name: ``rules/ud``."""
    return [name if kind == "config" else f"{kind}/{name}" for kind in KINDS for name in shipped_files(kind)]
