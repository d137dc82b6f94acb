"""Checks of YAML before it is read: no duplicate keys, deep nesting or multiplied aliases."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import yaml

LONGEST = 2**20  # characters
DEEPEST = 32  # levels of lists and mappings
MOST_VALUES = 5_000  # those of an alias count at each use


class OutOfBoundsError(yaml.YAMLError):
    """The YAML exceeds the bounds of handwritten files; the message has the reason and the line."""


@dataclass(slots=True)
class _Open:
    """A list or mapping that is still open."""

    anchor: str | None
    is_mapping: bool
    size: int = 1
    children: int = 0
    keys: set[str] = field(default_factory=set)

    def take(self, key: str | None, size: int, line: int) -> None:
        """Count a child with its number of values; ``key`` is the text of a scalar."""
        if self.is_mapping and self.children % 2 == 0 and key is not None:
            if key in self.keys:
                raise OutOfBoundsError(f"line {line}: the key {key!r} is repeated: keep one of the two")
            self.keys.add(key)
        self.children += 1
        self.size += size


def check_yaml(text: str) -> None:
    """Check that a text is of bounded length, depth and size, aliases written out, and names no key twice.

    Raises:
        OutOfBoundsError: if it is out of bounds.
        yaml.YAMLError: if it is not YAML.
    """
    if len(text) > LONGEST:
        raise OutOfBoundsError(f"the text must have at most {LONGEST:,} characters, got {len(text):,}")
    sizes: dict[str, int] = {}  # number of values of each anchor
    open_ones = [_Open(None, is_mapping=False)]
    for event in _events(text):
        line = event.start_mark.line + 1
        if isinstance(event, yaml.CollectionStartEvent):
            open_ones.append(_Open(event.anchor, isinstance(event, yaml.MappingStartEvent)))
            if len(open_ones) > DEEPEST:
                raise _too_deep(line)
            continue
        if isinstance(event, yaml.CollectionEndEvent):
            done = open_ones.pop()
            anchor, key, size = done.anchor, None, done.size
        elif isinstance(event, yaml.AliasEvent):
            if event.anchor not in sizes:
                raise OutOfBoundsError(f"line {line}: define &{event.anchor} before the use of *{event.anchor}")
            anchor, key, size = None, None, sizes[event.anchor]
        elif isinstance(event, yaml.ScalarEvent):
            anchor, key, size = event.anchor, event.value, 1
        else:
            continue
        if anchor is not None:
            sizes[anchor] = size
        open_ones[-1].take(key, size, line)
        if open_ones[-1].size > MOST_VALUES:
            raise OutOfBoundsError(f"line {line}: the text may have at most {MOST_VALUES:,} values, with aliases")


def _events(text: str) -> Iterator[yaml.Event]:
    try:
        yield from yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.MarkedYAMLError as error:
        # The parser of PyYAML 6.0.4 reads ahead, and may refuse the depth before it yields the first list.
        if error.problem_mark is None or "nesting depth" not in (error.problem or ""):
            raise
        raise _too_deep(error.problem_mark.line + 1) from None


def _too_deep(line: int) -> OutOfBoundsError:
    return OutOfBoundsError(f"line {line}: lists and mappings must nest at most {DEEPEST} deep")
