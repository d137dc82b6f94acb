"""N-best lists as CoNLL-U, one block for each tree.

Every tree has the comments ``# rank`` (from 1), ``# log_prob`` and ``# score``. Its ``# sent_id`` is the sentence's,
followed by a dot and the rank, because the UD validator requires unique ids. For the same reason only the first tree
has the comments that may not be repeated: the start of a document or paragraph, and ids of parallel sentences.
Probabilities are written as `treeparse.data.annotations.with_probabilities` does; the sentence's earlier ones are left
out.
"""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from treeparse.data.annotations import (
    ARC_PROB,
    ENTROPY,
    LABEL_PROB,
    has_probabilities,
    misc_entries,
    with_probabilities,
    without_probabilities,
)
from treeparse.data.conllu import ConlluSentence, key_and_value
from treeparse.data.parses import NBestList, Parse
from treeparse.data.validation import shown
from treeparse.errors import DataError

Fault = Callable[[str], DataError]
"""Makes the error for a problem, with file and line."""

RANK, LOG_PROB, SCORE = FIGURES = ("rank", "log_prob", "score")
ROUNDING = 1e-3  # of log probabilities in float32
_ONCE = re.compile(r"newdoc\b|newpar\b|parallel_id$|global\.")
_RANK = re.compile(r"[1-9][0-9]{0,8}")


def blocks(nbest: NBestList, sent_id: str, drop_empty: bool) -> str:
    """Return the text of a list's trees, with ids made from ``sent_id``."""
    comments, rows = _split_lines(without_probabilities(nbest.sentence))
    bare = replace(nbest.sentence, text="\n".join([*rows, "", ""]))
    trees = []
    for rank, parse in enumerate(nbest.parses, 1):
        figures = [
            f"# {RANK} = {rank}",
            f"# {LOG_PROB} = {float(parse.log_prob)!r}",
            f"# {SCORE} = {float(parse.score)!r}",
        ]
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
    """Return a tree's comments with another ``sent_id``, without the figures of an earlier list."""
    header: list[str] = []
    index = None
    for comment in comments:
        key, _ = key_and_value(comment)
        if key == "sent_id":
            index = len(header) if index is None else index
        elif key not in FIGURES and (first or not _ONCE.match(key)):
            header.append(comment)
    header.insert(index or 0, f"# sent_id = {sent_id}")
    return header


@dataclass(frozen=True, slots=True)
class _Ranked:
    """A tree of a list, read from a file."""

    block: ConlluSentence
    sent_id: str  # of the sentence
    rank: int
    parse: Parse


def join_trees(blocks: Iterable[ConlluSentence]) -> Iterator[NBestList]:
    """Yield the lists that the trees of a file form."""
    trees: list[_Ranked] = []
    for block in blocks:
        tree = _ranked(block)
        if tree.rank == 1 and trees:
            yield _joined(trees)
            trees.clear()
        if problem := _order_problem(trees, tree):
            raise block.fault(problem)
        trees.append(tree)
    if trees:
        yield _joined(trees)


def _joined(trees: Sequence[_Ranked]) -> NBestList:
    """Return the list of a sentence's trees; its sentence has the first tree's comments, without those of the list."""
    first = trees[0]
    comments, rows = _split_lines(without_probabilities(first.block))
    text = "\n".join([*_header(comments, first.sent_id), *rows, "", ""])
    sentence = replace(first.block, sent_id=first.sent_id, text=text)
    return NBestList(sentence, tuple(tree.parse for tree in trees))


def _order_problem(before: Sequence[_Ranked], tree: _Ranked) -> str | None:
    """Return the fault of a tree that cannot be the next one of its sentence, or None."""
    if before and before[0].sent_id != tree.sent_id:
        return (
            f"the tree is among those of sentence {before[0].sent_id}; its own sentence has no tree of rank 1 before it"
        )
    if tree.rank != len(before) + 1:
        return f"the rank must be {len(before) + 1}, the next of the sentence, got {tree.rank}"
    if before and before[0].parse.tokens != tree.parse.tokens:
        return "the words must be those of the sentence's first tree"
    return None


def _ranked(block: ConlluSentence) -> _Ranked:
    """Return a tree with the values of its comments."""
    figures = {key: block.comments(key) for key in FIGURES}
    for key, values in figures.items():
        if len(values) != 1:
            raise block.fault(f"every tree of an n-best list must have one comment # {key}, got {len(values)}")
    [rank] = figures[RANK]
    if not _RANK.fullmatch(rank):
        raise block.fault(f"the rank must be an integer of at least 1, got {shown(rank)}")
    sent_id = (block.sent_id or "").removesuffix(f".{rank}")
    if sent_id in ("", block.sent_id):
        raise block.fault(f"the sent_id of a tree of rank {rank} must be the sentence's, followed by .{rank}")
    words = block.words
    log_prob, score = (finite_number(figures[key][0], key, block.fault) for key in (LOG_PROB, SCORE))
    check_log_prob(log_prob, block.fault)
    parse = Parse(words.forms, words.heads or (), words.labels or (), log_prob, score)
    return _Ranked(block, sent_id, int(rank), _with_read_probabilities(parse, block))


def _with_read_probabilities(parse: Parse, block: ConlluSentence) -> Parse:
    """Return the parse with the probabilities and the entropy that the block has."""
    if not has_probabilities(block):
        return parse
    entries = misc_entries(block)
    arcs, labeled = (
        tuple(_probability(each.get(key), f"{key} of word {word}", block.fault) for word, each in enumerate(entries, 1))
        for key in (ARC_PROB, LABEL_PROB)
    )
    entropies = block.comments(ENTROPY)
    entropy = finite_number(entropies[0], ENTROPY, block.fault) if entropies else None
    return replace(parse, arc_probs=arcs, label_probs=labeled, entropy=entropy)


def _probability(text: str | None, name: str, fault: Fault) -> float:
    if text is None:
        raise fault(f"the {name} is missing; all words must have it if one has")
    return probability_number(text, name, fault)


def probability_number(text: str, name: str, fault: Fault) -> float:
    """Return the probability that a text holds; raise if it is none."""
    number = finite_number(text, name, fault)
    if not 0 <= number <= 1:
        raise fault(f"the {name} must be from 0 to 1, got {shown(text)}")
    return number


def check_log_prob(log_prob: float, fault: Fault) -> None:
    """Raise for a log probability above 0 by more than rounding."""
    if log_prob > ROUNDING:
        raise fault(f"the {LOG_PROB} must be the log of a probability, at most 0, got {log_prob:g}")


def finite_number(text: str, name: str, fault: Fault) -> float:
    """Return the number that a text holds; raise if it is no finite number."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise fault(f"the {name} must be a finite number, got {shown(text)}")
    return number
