"""Fields of settings that files of earlier versions lack."""

from dataclasses import field, fields
from typing import Any, TypeVar, cast

BEFORE = "value of before"  # key in the metadata of a field

T = TypeVar("T")


def added_setting(default: T, *, before: T) -> T:
    """Declare a setting, as a dataclass field, that files of earlier versions lack.

    Such files are read as if they held ``before``, the behaviour of those versions. ``default`` may change; ``before``
    must never change.
    """
    return cast(T, field(default=default, metadata={BEFORE: before}))


def values_of_before(settings: Any) -> dict[str, Any]:
    """Return the value of each setting of a dataclass, or of its instance, that files of earlier versions lack."""
    return {each.name: each.metadata[BEFORE] for each in fields(settings) if BEFORE in each.metadata}
