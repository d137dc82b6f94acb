"""Read the nodes of YAML that users write; errors name the line of every fault."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import yaml

from treeparse.data.yaml.bounds import LONGEST, check_yaml
from treeparse.errors import DataError, TreeparseError, did_you_mean
from treeparse.shipped import file_or_shipped

KINDS = {yaml.MappingNode: "a mapping", yaml.SequenceNode: "a list"}


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
