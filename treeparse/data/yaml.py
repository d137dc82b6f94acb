"""Read the nodes of YAML that users write, bounded in size; errors name the line of every fault."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from treeparse.errors import DataError, TreeparseError, did_you_mean
from treeparse.shipped import file_or_shipped

LONGEST = 2**20  # characters
DEEPEST = 32  # levels of lists and mappings
MOST_VALUES = 5_000  # those of an alias count at each use
KINDS = {yaml.MappingNode: "a mapping", yaml.SequenceNode: "a list"}


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


def read_yaml_text(path: str | Path, what: str) -> str:
    """Return the text of a file of ``what``, rules or constraints; a shipped file is found by its name.

    Raises:
        DataError: if the text is too long, or not UTF-8.
        TreeparseError: if a bare name is neither a file nor a shipped file.
        OSError: if the file cannot be read.
    """
    with open(path if Path(path).suffix else file_or_shipped(path, what), "rb") as stream:
        data = stream.read(LONGEST + 1)
    if len(data) > LONGEST:
        raise DataError(f"a file of {what} must have at most {LONGEST:,} bytes", source=str(path))
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise DataError("the file must be text in UTF-8", source=str(path)) from error


def compose(text: str, source: str) -> yaml.Node | None:
    """Return the YAML tree of a text, bounded in size; None if it is empty. Raise ``DataError`` if it is not YAML."""
    try:
        check_yaml(text)
        return yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = None if mark is None else mark.line + 1
        raise DataError(f"the text is not YAML: {error.problem or error.context}", source=source, line=line) from error
    except yaml.YAMLError as error:
        problem, *_ = str(error).splitlines()
        raise DataError(problem, source=source) from error


def line_of(node: yaml.Node) -> int:
    """Return the line in which a node begins, from 1."""
    return node.start_mark.line + 1


@contextmanager
def at(node: yaml.Node, source: str) -> Iterator[None]:
    """Add the line and source to errors that have none."""
    try:
        yield
    except DataError:
        raise
    except TreeparseError as error:
        raise DataError(str(error), source=source, line=line_of(node)) from error


def entries(node: yaml.Node, keys: Collection[str], what: str, source: str) -> dict[str, yaml.Node]:
    """Return the values of a mapping; raise for keys that are not among these."""
    if not isinstance(node, yaml.MappingNode):
        raise TreeparseError(f"{what} must be a mapping with keys such as {next(iter(keys))}, got {shown(node)}")
    values = {}
    for key, value in node.value:
        with at(key, source):
            if not isinstance(key, yaml.ScalarNode) or key.value not in keys:
                problem = f"unknown key {shown(key)} in {what}; the keys are {', '.join(keys)}"
                raise TreeparseError(problem + did_you_mean(str(key.value), keys))
            values[key.value] = value
    return values


def texts(node: yaml.Node, what: str) -> tuple[str, ...]:
    """Return one or more texts as they are written: 'no' and '1' are words too."""
    nodes: Sequence[yaml.Node] = node.value if isinstance(node, yaml.SequenceNode) else [node]
    if not nodes:
        raise TreeparseError(f"a list of {what} must not be empty: leave it out, or name some")
    return tuple(map(scalar, nodes))


def scalar(node: yaml.Node) -> str:
    """Return the text of one value."""
    if not isinstance(node, yaml.ScalarNode):
        raise TreeparseError(f"this must be one value, got {shown(node)}")
    if not node.value:
        raise TreeparseError("this must be a value, got nothing")
    return node.value


def shown(node: yaml.Node) -> str:
    """Return a short form of a node for messages."""
    return KINDS.get(type(node)) or (f"{node.value!r:.50}" if node.value else "empty")
