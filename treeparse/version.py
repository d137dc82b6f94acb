"""The version of the installed package."""

from importlib import metadata

UNKNOWN = "0+unknown"


def installed_version() -> str:
    """Return the version, or ``0+unknown`` if this copy of the package is not installed."""
    try:
        return metadata.version("treeparse")
    except metadata.PackageNotFoundError:
        return UNKNOWN
