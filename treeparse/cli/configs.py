"""The configurations that ship with treeparse, by name."""

from pathlib import Path

from treeparse.shipped import file_or_shipped as config_file
from treeparse.shipped import shipped_file as shipped_config
from treeparse.shipped import shipped_files

__all__ = ["config_file", "shipped_config", "shipped_configs"]


def shipped_configs() -> dict[str, Path]:
    """The configurations by name."""
    return shipped_files()
