"""N-best lists as JSONL, one object for each sentence: ``sent_id``, ``text`` if known, ``tokens`` and ``parses``.

A parse has ``heads`` (as in CoNLL-U), ``labels``, ``log_prob`` and ``score``; with probabilities also the lists
``arc_probs`` and ``label_probs``, and ``entropy`` if known. Other keys are ignored.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from treeparse.data.annotations import ENTROPY
from treeparse.data.conllu import NO_SENTENCE, ConlluSentence
from treeparse.data.files import display_name, numbered_lines, open_input
from treeparse.data.nbest.conllu_lists import (
    LOG_PROB,
    SCORE,
    Fault,
    check_log_prob,
    finite_number,
    probability_number,
)
from treeparse.data.parses import NBestList, Parse
from treeparse.errors import DataError
from treeparse.json_files import from_json
from treeparse.sentence import tree_problem

_PROBS = ("arc_probs", "label_probs")
_MAX_LINE = 2**30  # bytes: a line holds all trees of a sentence
_LINE_BREAKS = re.compile(r"[\n\r]")
_COLUMN_BREAKS = re.compile(r"[\t\n\r]")


def line(nbest: NBestList, sent_id: str) -> str:
    """Return the line of a list, with the id ``sent_id``."""
    texts = nbest.sentence.comments("text")
    data: dict[str, Any] = {"sent_id": sent_id}
    if texts and texts[0]:
        data["text"] = texts[0]
    data["tokens"] = nbest.tokens
    data["parses"] = [_as_object(parse) for parse in nbest.parses]
    return json.dumps(data, ensure_ascii=False, allow_nan=False) + "\n"


def _as_object(parse: Parse) -> dict[str, Any]:
    data = {"heads": parse.heads, "labels": parse.labels, LOG_PROB: parse.log_prob, SCORE: parse.score}
    probabilities = {name: getattr(parse, name) for name in (*_PROBS, ENTROPY)}
    return data | {name: value for name, value in probabilities.items() if value is not None}


def read(path: str | Path) -> Iterator[NBestList]:
    """Read lists, one at a time; blank lines are ignored."""
    source, empty = display_name(path), True
    with open_input(path) as stream:
        for number, content in numbered_lines(stream, source, limit=_MAX_LINE):
            if content.strip():
                empty = False
                yield _list(content, source, number)
    if empty:
        raise DataError(NO_SENTENCE, source=source)


def _list(content: bytes, source: str, number: int) -> NBestList:
    fault: Fault = partial(DataError, source=source, line=number)
    try:
        data = from_json(content)
    except ValueError as error:
        raise fault(f"the line must be JSON ({error})") from error
    if not isinstance(data, dict):
        raise fault("the line must be a JSON object of one sentence")
    sent_id = _text(data.get("sent_id"), "sent_id", fault)
    fault = partial(DataError, source=source, line=number, sent_id=sent_id)
    tokens = _items(str, data.get("tokens"), "tokens", fault)
    text = None if data.get("text") is None else _text(data["text"], "text", fault)
    sentence = ConlluSentence.from_forms(tokens, text=text, sent_id=sent_id, source=source, line=number)
    parses = _items(dict, data.get("parses"), "parses", fault)
    return NBestList(sentence, tuple(_parse(parse, sentence.words.forms, fault) for parse in parses))


def _parse(data: dict[str, Any], tokens: tuple[str, ...], fault: Fault) -> Parse:
    heads = _items(int, data.get("heads"), "heads", fault)
    labels = _items(str, data.get("labels"), "labels", fault)
    if not len(heads) == len(labels) == len(tokens):
        raise fault(
            f"a parse of {len(tokens)} tokens must have as many heads and labels, got {len(heads)} and {len(labels)}"
        )
    if problem := tree_problem(heads, single_root=False):
        raise fault(problem)
    if any(not label or _COLUMN_BREAKS.search(label) for label in labels):
        raise fault("a label must have a character, and no tab or line break")
    log_prob, score = (_number(data.get(name), name, fault) for name in (LOG_PROB, SCORE))
    check_log_prob(log_prob, fault)
    parse = Parse(tokens, tuple(heads), tuple(labels), log_prob, score)
    arcs, labeled = (_probabilities(data.get(name), name, tokens, fault) for name in _PROBS)
    if (arcs is None) != (labeled is None):
        raise fault(f"a parse must have both {' and '.join(_PROBS)}, or neither")
    entropy = None if data.get(ENTROPY) is None else _number(data[ENTROPY], ENTROPY, fault)
    return replace(parse, arc_probs=arcs, label_probs=labeled, entropy=entropy)


def _probabilities(values: Any, name: str, tokens: tuple[str, ...], fault: Fault) -> tuple[float, ...] | None:
    """Return the probability of each word; None if the parse has none."""
    if values is None:
        return None
    if not isinstance(values, list) or len(values) != len(tokens):
        raise fault(f"the {name} of a parse must be a list of {len(tokens)} numbers, one for each token")
    if any(type(value) not in (int, float) for value in values):
        raise fault(f"the {name} of a parse must be numbers")
    return tuple(probability_number(str(value), f"{name} of a parse", fault) for value in values)


def _number(value: Any, name: str, fault: Fault) -> float:
    if type(value) not in (int, float):  # not isinstance: True is an int
        raise fault(f"the {name} of a parse must be a number")
    return finite_number(str(value), name, fault)


def _text(value: Any, name: str, fault: Fault) -> str:
    if not isinstance(value, str) or not value.strip() or _LINE_BREAKS.search(value):
        raise fault(f"{name} must be one line of text")
    return value.strip()


def _items(kind: type, value: Any, name: str, fault: Fault) -> list[Any]:
    if not isinstance(value, list) or not value or any(type(item) is not kind for item in value):
        raise fault(f"{name} must be a list of one or more {_KINDS[kind]}")
    return value


_KINDS = {str: "strings", int: "integers", dict: "objects"}
