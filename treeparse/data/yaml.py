"""Read the nodes of YAML that users write; errors name the line of every fault."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from treeparse.errors import DataError, TreeparseError, did_you_mean
from treeparse.shipped import file_or_shipped

KINDS = {yaml.MappingNode: "a mapping", yaml.SequenceNode: "a list"}


class UniqueKeyLoader(yaml.SafeLoader):
    """PyYAML's safe loader, which also refuses a mapping with a repeated key."""

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node = super().compose_mapping_node(anchor)
        keys = set[str]()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in keys:
                    problem = f"the key {key.value!r} is repeated: keep one of the two"
                    raise yaml.MarkedYAMLError(problem=problem, problem_mark=key.start_mark)
                keys.add(key.value)
        return node


def read_yaml_text(path: str | Path, what: str) -> str:
    """Return the text of a file of ``what``, rules or constraints; a shipped file is found by its name.

    Raises:
        DataError: if the text is not UTF-8.
        TreeparseError: if a bare name is neither a file nor a shipped file.
        OSError: if the file cannot be read.
    """
    file = Path(path) if Path(path).suffix else file_or_shipped(path, what)
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise DataError("the file must be text in UTF-8", source=str(path)) from error


def compose(text: str, source: str) -> yaml.Node | None:
    """Return the YAML tree of a text; None if it is empty. Raise ``DataError`` if it is not YAML or repeats a key."""
    try:
        return yaml.compose(text, Loader=UniqueKeyLoader)
    except yaml.MarkedYAMLError as error:
        line = None if error.problem_mark is None else error.problem_mark.line + 1
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
