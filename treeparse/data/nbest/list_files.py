"""N-best lists in files: CoNLL-U, one block for each tree, or JSONL, one object for each sentence."""

import math
from collections.abc import Iterable, Iterator
from itertools import chain, count
from pathlib import Path

from treeparse.data.compression import plain_name
from treeparse.data.conllu import read_conllu
from treeparse.data.nbest import conllu_lists, jsonl_lists
from treeparse.data.outputs import atomic_output
from treeparse.data.parses import NBestList
from treeparse.errors import TreeparseError
from treeparse.names import ListFormat


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
        yield jsonl_lists.line(nbest, name) if format == "jsonl" else conllu_lists.blocks(nbest, name, drop_empty)


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
        return jsonl_lists.read(path)
    return conllu_lists.join_trees(read_conllu(path, require_trees=True, single_root=False))


def format_of(path: str | Path, form: ListFormat | None = None) -> ListFormat:
    """Return the format of a file: ``form`` or, if that is None, the one that the name says."""
    if form is not None:
        return form
    return "jsonl" if plain_name(path).endswith(".jsonl") else "conllu"


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
