"""Rules as YAML that a linguist can write; errors name the line of every mistake.

A file has any of these keys::

    at_most_one:                      # a head has at most one dependent with one of these labels
      - [nsubj, csubj]                # a name matches its subtypes: nsubj:pass too
      - obj
      - {labels: [aux], except: ["aux:pass"]}
    forbidden:                        # no word with the label dependent hangs from a word with the label head
      - {head: [case, mark], dependent: [nsubj, obj]}
      - {head: punct, dependent: {labels: nsubj, except: "nsubj:outer"}}
    root_upos: [VERB, NOUN, ADJ]      # only words of these UPOS hang from the root, if the sentence has any
    trees: projective                 # no arcs cross
"""

from pathlib import Path
from typing import Literal

import yaml

from treeparse.data.yaml import at, compose, entries, line_of, read_yaml_text, scalar, shown, texts
from treeparse.errors import DataError, TreeparseError
from treeparse.rules.rules import AtMostOne, ForbiddenPair, LabelSet, RootTags, Rule, Rules

KEYS = ("at_most_one", "forbidden", "root_upos", "trees")


def read_rules(path: str | Path) -> Rules:
    """Return the rules of a file.

    Raises:
        DataError: if the file has a mistake; it names the line.
        OSError: if the file cannot be read.
    """
    return parse_rules(read_yaml_text(path, "rules"), str(path))


def parse_rules(text: str, source: str = "rules") -> Rules:
    """Return the rules of a text; ``source`` is its name in messages; otherwise as ``read_rules``."""
    root = compose(text, source)
    if root is None or (isinstance(root, yaml.MappingNode) and not root.value):
        raise DataError(f"rules must have one or more of the keys {', '.join(KEYS)}, got none", source=source)
    rules: list[Rule] = []
    trees: Literal["projective"] | None = None
    with at(root, source):
        for key, node in entries(root, KEYS, "a file of rules", source).items():
            if key == "trees":
                with at(node, source):
                    if scalar(node) != "projective":
                        raise TreeparseError(f"trees must be projective, got {shown(node)}: leave it out for all trees")
                trees = "projective"
            elif key == "root_upos":
                with at(node, source):
                    rules.append(RootTags(texts(node, "root_upos"), line=line_of(node)))
            elif key == "at_most_one":
                rules += [AtMostOne(_labels(item, source), line=line_of(item)) for item in _items(key, node, source)]
            else:
                rules += [_forbidden(item, source) for item in _items(key, node, source)]
    return Rules(tuple(rules), trees, source)


def _items(key: str, node: yaml.Node, source: str) -> list[yaml.Node]:
    """Return the nodes of the rules of one kind."""
    with at(node, source):
        if not isinstance(node, yaml.SequenceNode):
            raise TreeparseError(f"{key} must be a list, got {shown(node)}: begin each rule of it with '- '")
        if not node.value:
            raise TreeparseError(
                f"the list of {key} must not be empty: leave it out, or begin each rule of it with '- '"
            )
    return node.value


def _forbidden(node: yaml.Node, source: str) -> ForbiddenPair:
    with at(node, source):
        keyed = entries(node, ("head", "dependent"), "a forbidden pair", source)
        for key in ("head", "dependent"):
            if key not in keyed:
                raise TreeparseError(
                    f"a forbidden pair must have head and dependent, got no {key}: give the labels of both arcs"
                )
    return ForbiddenPair(_labels(keyed["head"], source), _labels(keyed["dependent"], source), line=line_of(node))


def _labels(node: yaml.Node, source: str) -> LabelSet:
    with at(node, source):
        if not isinstance(node, yaml.MappingNode):
            return LabelSet(texts(node, "labels"))
        keyed = entries(node, ("labels", "except"), "a set of labels", source)
        if "labels" not in keyed:
            raise TreeparseError("a set of labels must have the key labels, and can have except")
        return LabelSet(*(texts(value, key) for key, value in sorted(keyed.items(), reverse=True)))
