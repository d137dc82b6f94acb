"""The configurations that ship with treeparse, by name."""

from pathlib import Path

from treeparse.errors import TreeparseError, did_you_mean


def shipped_configs() -> dict[str, Path]:
    """The shipped configurations by name: ``treeparse/configs`` of a wheel, or ``configs`` of a checkout."""
    package = Path(__file__).resolve().parents[1]
    folders = (package / "configs", package.parent / "configs")
    folder = next((folder for folder in folders if folder.is_dir()), folders[0])
    return {path.stem: path for path in sorted(folder.glob("*.yaml"))}


def shipped_config(name: str) -> Path:
    """The file of a shipped configuration, by its name with or without ``.yaml``; raises where there is none."""
    configs = shipped_configs()
    stem = name.removesuffix(".yaml")
    if stem not in configs:
        problem = f"There is no configuration {name!r}; there are: {', '.join(configs)}"
        raise TreeparseError(problem + (did_you_mean(stem, configs) or "."))
    return configs[stem]


def config_file(name: str) -> Path:
    """A config's file by its path, or by the name of one that is shipped; a path that does not exist stays."""
    path = Path(name)
    return path if path.is_file() or path.name != name else shipped_config(name)
