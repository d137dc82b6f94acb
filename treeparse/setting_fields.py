"""Fields of settings that files of earlier versions lack."""

from dataclasses import field, fields
from typing import Any, TypeVar, cast

BEFORE = "value of before"  # in the metadata of a field

T = TypeVar("T")


def added_setting(default: T, *, before: T) -> T:
    """A dataclass's field of a setting that files of earlier versions lack.

    They are read as if they held ``before``, which says what was done then; ``default`` may change, this never.
    """
    return cast(T, field(default=default, metadata={BEFORE: before}))


def values_of_before(settings: Any) -> dict[str, Any]:
    """The settings of a dataclass, or of one of its instances, that files may lack, with what they are read as."""
    return {each.name: each.metadata[BEFORE] for each in fields(settings) if BEFORE in each.metadata}
