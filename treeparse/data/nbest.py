"""N-best lists in files: CoNLL-U, one block for each tree, or JSONL, one object for each sentence.

In CoNLL-U every tree has the comments ``# rank`` (from 1), ``# log_prob`` and ``# score``, after all comments of the
sentence, which may have some of the same names. Its ``# sent_id`` is the
sentence's, followed by a dot and the rank, because the UD validator requires unique ids. For the same reason only the
first tree has the comments that may not be repeated: the start of a document or paragraph, and ids of parallel
sentences. Probabilities are written as `treeparse.data.annotations.with_probabilities` does; earlier ones of the
sentence are left out.

In JSONL an object has ``sent_id``, ``text`` if known, ``tokens`` and ``parses``. A parse has ``heads`` (as in CoNLL-U),
``labels``, ``log_prob`` and ``score``; with probabilities also the lists ``arc_probs`` and ``label_probs``, and
``entropy`` if known. Other keys are ignored.
"""

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, count
from pathlib import Path
from typing import Any

from treeparse.data.annotations import (
    ARC_PROB,
    ENTROPY,
    LABEL_PROB,
    has_probabilities,
    misc_entries,
    with_probabilities,
    without_probabilities,
)
from treeparse.data.conllu import (
    COLUMN_BREAKS,
    LINE_BREAKS,
    NO_SENTENCE,
    ConlluSentence,
    key_and_value,
    read_conllu,
)
from treeparse.data.files import display_name, numbered_lines, open_input, plain_name
from treeparse.data.outputs import atomic_output
from treeparse.data.parses import NBestList, Parse
from treeparse.data.validation import shown
from treeparse.errors import DataError, TreeparseError
from treeparse.json_files import from_json
from treeparse.names import ListFormat
from treeparse.sentence import tree_problem

Fault = Callable[[str], DataError]
"""Makes the error for a problem, with file and line."""

RANK, LOG_PROB, SCORE = FIGURES = ("rank", "log_prob", "score")
ROUNDING = 1e-3  # of log probabilities in float32
_ONCE = re.compile(r"newdoc\b|newpar\b|parallel_id$|global\.")
_RANK = re.compile(r"[1-9][0-9]{0,8}")
_PROBS = ("arc_probs", "label_probs")  # fields of a parse
_MAX_LINE = 2**30  # bytes: a line holds all trees of a sentence
_KINDS = {str: "strings", int: "integers", dict: "objects"}


def write_nbest(
    path: str | Path, lists: Iterable[NBestList], *, format: ListFormat | None = None, drop_empty: bool = False
) -> None:
    """Write lists, all or none; ``.gz`` and the like compress, ``-`` is standard output.

    A sentence without ``sent_id``, or with the id of an earlier sentence, gets a new one. Memory holds only the ids,
    about 100 bytes a sentence.

    Args:
        path: the file.
        lists: the lists, in their order.
        format: None is JSONL for a name in ``.jsonl``, or ``.jsonl.gz`` and the like, otherwise CoNLL-U.
        drop_empty: leave out empty nodes (8.1), which the UD validator refuses without enhanced arcs.

    Raises:
        TreeparseError: a list has no parse, a parse has other words or numbers that are not finite, or the file's
            folder does not exist.
        OSError: the file cannot be written.
    """
    with atomic_output(path) as output:
        for text in nbest_texts(lists, format_of(path, format), drop_empty=drop_empty):
            output.write(text)


def nbest_texts(lists: Iterable[NBestList], format: ListFormat, *, drop_empty: bool = False) -> Iterator[str]:
    """Yield the text of each list, as `write_nbest` writes it; raise as it does."""
    taken: set[str] = set()
    for number, nbest in enumerate(lists, 1):
        base = nbest.sent_id or f"sentence-{number}"
        name = next(name for name in chain([base], (f"{base}+{copy}" for copy in count(2))) if name not in taken)
        taken.add(name)
        _check(nbest, name)
        yield _json_line(nbest, name) if format == "jsonl" else _blocks(nbest, name, drop_empty)


def read_nbest(path: str | Path, *, format: ListFormat | None = None) -> Iterator[NBestList]:
    """Read the lists of a file, a compressed file or ``-`` (standard input), one at a time.

    Args:
        path: the file.
        format: None is JSONL for a name in ``.jsonl``, or ``.jsonl.gz`` and the like, otherwise CoNLL-U.

    Raises:
        DataError: the file is not in the format of `write_nbest`: invalid lines, heads that are no tree, ranks out of
            order, missing or wrong numbers, mixed sentences, or no sentence; with file, line and ``sent_id``.
        OSError: the file cannot be read.
    """
    if format_of(path, format) == "jsonl":
        return _read_jsonl(path)
    return join_trees(read_conllu(path, require_trees=True, single_root=False))


def format_of(path: str | Path, form: ListFormat | None = None) -> ListFormat:
    """Return the format of a file: ``form`` or, if that is None, the one that the name says."""
    return form or ("jsonl" if plain_name(path).endswith(".jsonl") else "conllu")


def _check(nbest: NBestList, name: str) -> None:
    if not nbest.parses:
        raise TreeparseError(f"The list of sentence {name} has no parse: leave it out.")
    for rank, parse in enumerate(nbest.parses, 1):
        if parse.tokens != nbest.tokens:
            raise TreeparseError(f"The parse of rank {rank} of sentence {name} has other words than the sentence.")
        if math.isnan(parse.log_prob):
            raise TreeparseError(
                f"The parse of rank {rank} of sentence {name} has no log probability, because the trees of its model "
                "have none: write CoNLL-U instead of a list."
            )
        if not math.isfinite(parse.log_prob) or not math.isfinite(parse.score):
            raise TreeparseError(
                f"The parse of rank {rank} of sentence {name} has a log_prob or score that is not finite."
            )


def _blocks(nbest: NBestList, sent_id: str, drop_empty: bool) -> str:
    """Return the text of a list's trees, with ids made from ``sent_id``."""
    comments, rows = _split_lines(without_probabilities(nbest.sentence))
    if is_listed(nbest.sentence):
        comments = _without_figures(comments)
    bare = replace(nbest.sentence, text="\n".join([*rows, "", ""]))
    trees = []
    for rank, parse in enumerate(nbest.parses, 1):
        values = rank, float(parse.log_prob), float(parse.score)
        figures = [f"# {key} = {value!r}" for key, value in zip(FIGURES, values, strict=True)]
        header = [*_header(comments, f"{sent_id}.{rank}", first=rank == 1), *figures]
        tree = bare.text_with_parse(parse.heads, parse.labels, drop_empty=drop_empty)
        if parse.arc_probs is not None:
            tree = with_probabilities(replace(bare, text=tree), parse).text
        trees.append("\n".join([*header, tree]))
    text = "".join(trees)
    return text.replace("\n", "\r\n") if "\r\n" in nbest.sentence.text else text


def _split_lines(sentence: ConlluSentence) -> tuple[list[str], list[str]]:
    """Return the comments and the other lines of a sentence, without line ends, blank lines and byte order mark."""
    lines = [line.removesuffix("\r") for line in sentence.text.removeprefix("\ufeff").split("\n")]
    comments = [line for line in lines if line.startswith("#")]
    return comments, [line for line in lines if line and not line.startswith("#")]


def _header(comments: Sequence[str], sent_id: str, *, first: bool = True) -> list[str]:
    """Return a tree's comments with another ``sent_id``."""
    header: list[str] = []
    index = None
    for comment in comments:
        key, _ = key_and_value(comment)
        if key == "sent_id":
            index = len(header) if index is None else index
        elif first or not _ONCE.match(key):
            header.append(comment)
    header.insert(index or 0, f"# sent_id = {sent_id}")
    return header


def _without_figures(comments: Sequence[str]) -> list[str]:
    """Return the comments without the last of each figure: earlier ones are the sentence's."""
    keys = [key_and_value(comment)[0] for comment in comments]
    last = {max((index for index, other in enumerate(keys) if other == key), default=-1) for key in FIGURES}
    return [comment for index, comment in enumerate(comments) if index not in last]


def is_listed(sentence: ConlluSentence) -> bool:
    """Return whether a sentence is a tree of a list: it has all figures, and its ``sent_id`` ends in its rank.

    A treebank may have comments of the same names.
    """
    ranks, *others = (sentence.comments(key)[-1:] for key in FIGURES)
    return all(others) and any((sentence.sent_id or "").endswith(f".{rank}") for rank in ranks)


def join_trees(blocks: Iterable[ConlluSentence]) -> Iterator[NBestList]:
    """Yield the lists that the trees of a file form; a list's sentence has the other comments of its first tree."""
    sentence: ConlluSentence | None = None
    parses: list[Parse] = []
    for block in blocks:
        sent_id, rank, parse = _read_tree(block)
        if sentence is None or rank == 1:
            if sentence is not None:
                yield NBestList(sentence, tuple(parses))
            comments, rows = _split_lines(without_probabilities(block))
            text = "\n".join([*_header(_without_figures(comments), sent_id), *rows, "", ""])
            sentence, parses = replace(block, sent_id=sent_id, text=text), []
        if sent_id != sentence.sent_id:
            trees = f"the tree is among those of sentence {sentence.sent_id}"
            raise block.fault(f"{trees}; its own sentence has no tree of rank 1 before it")
        if rank != len(parses) + 1:
            raise block.fault(f"the rank must be {len(parses) + 1}, the next of the sentence, got {rank}")
        if parse.tokens != sentence.words.forms:
            raise block.fault("the words must be those of the sentence's first tree")
        parses.append(parse)
    if sentence is not None:
        yield NBestList(sentence, tuple(parses))


def _read_tree(block: ConlluSentence) -> tuple[str, int, Parse]:
    """Return the id of the sentence of a tree, the tree's rank, and the tree."""
    figures = dict[str, str]()
    for key in FIGURES:
        values = block.comments(key)
        if not values:
            raise block.fault(f"every tree of an n-best list must have a comment # {key}, got none")
        figures[key] = values[-1]
    rank = figures[RANK]
    if not _RANK.fullmatch(rank):
        raise block.fault(f"the rank must be an integer of at least 1, got {shown(rank)}")
    sent_id = (block.sent_id or "").removesuffix(f".{rank}")
    if sent_id in ("", block.sent_id):
        raise block.fault(f"the sent_id of a tree of rank {rank} must be the sentence's, followed by .{rank}")
    words = block.words
    log_prob, score = (_finite_number(figures[key], key, block.fault) for key in (LOG_PROB, SCORE))
    _check_log_prob(log_prob, block.fault)
    parse = Parse(words.forms, words.heads or (), words.labels or (), log_prob, score)
    if has_probabilities(block):
        arcs, labeled = (tuple(_probabilities_in_misc(block, key)) for key in (ARC_PROB, LABEL_PROB))
        entropies = [_finite_number(text, ENTROPY, block.fault) for text in block.comments(ENTROPY)[:1]]
        parse = replace(parse, arc_probs=arcs, label_probs=labeled, entropy=next(iter(entropies), None))
    return sent_id, int(rank), parse


def _probabilities_in_misc(block: ConlluSentence, key: str) -> Iterator[float]:
    for word, entries in enumerate(misc_entries(block), 1):
        name = f"{key} of word {word}"
        if key not in entries:
            raise block.fault(f"the {name} is missing; all words must have it if one has")
        yield _probability(entries[key], name, block.fault)


def _probability(text: str, name: str, fault: Fault) -> float:
    """Return the probability that a text holds; raise if it is none."""
    number = _finite_number(text, name, fault)
    if not 0 <= number <= 1:
        raise fault(f"the {name} must be from 0 to 1, got {shown(text)}")
    return number


def _check_log_prob(log_prob: float, fault: Fault) -> None:
    """Raise for a log probability above 0 by more than rounding."""
    if log_prob > ROUNDING:
        raise fault(f"the {LOG_PROB} must be the log of a probability, at most 0, got {log_prob:g}")


def _finite_number(text: str, name: str, fault: Fault) -> float:
    """Return the number that a text holds; raise if it is no finite number."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise fault(f"the {name} must be a finite number, got {shown(text)}")
    return number


def _json_line(nbest: NBestList, sent_id: str) -> str:
    """Return the line of a list, with the id ``sent_id``."""
    data: dict[str, Any] = {"sent_id": sent_id}
    if text := next(iter(nbest.sentence.comments("text")), ""):
        data["text"] = text
    data["tokens"] = nbest.tokens
    data["parses"] = [_as_object(parse) for parse in nbest.parses]
    return json.dumps(data, ensure_ascii=False, allow_nan=False) + "\n"


def _as_object(parse: Parse) -> dict[str, Any]:
    data = {"heads": parse.heads, "labels": parse.labels, LOG_PROB: parse.log_prob, SCORE: parse.score}
    probabilities = {name: getattr(parse, name) for name in (*_PROBS, ENTROPY)}
    return data | {name: value for name, value in probabilities.items() if value is not None}


def _read_jsonl(path: str | Path) -> Iterator[NBestList]:
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
    if any(not label or COLUMN_BREAKS.search(label) for label in labels):
        raise fault("a label must have a character, and no tab or line break")
    log_prob, score = (_number(data.get(name), name, fault) for name in (LOG_PROB, SCORE))
    _check_log_prob(log_prob, fault)
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
    return tuple(_probability(str(value), f"{name} of a parse", fault) for value in values)


def _number(value: Any, name: str, fault: Fault) -> float:
    if type(value) not in (int, float):  # not isinstance: True is an int
        raise fault(f"the {name} of a parse must be a number")
    return _finite_number(str(value), name, fault)


def _text(value: Any, name: str, fault: Fault) -> str:
    if not isinstance(value, str) or not value.strip() or LINE_BREAKS.search(value):
        raise fault(f"{name} must be one line of text")
    return value.strip()


def _items(kind: type, value: Any, name: str, fault: Fault) -> list[Any]:
    if not isinstance(value, list) or not value or any(type(item) is not kind for item in value):
        raise fault(f"{name} must be a list of one or more {_KINDS[kind]}")
    return value
