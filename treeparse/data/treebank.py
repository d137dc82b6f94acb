"""Treebanks: the sentences of one or more CoNLL-U files, in order."""

import functools
from collections.abc import Callable, Sequence
from pathlib import Path

from treeparse.data.conllu import ConlluSentence, read_conllu
from treeparse.data.files import expand_paths
from treeparse.errors import DataError, TreeparseError


def load_treebank(
    patterns: str | Path | Sequence[str | Path],
    *,
    require_trees: bool = True,
    partial: bool = False,
    single_root: bool = True,
    on_invalid: Callable[[DataError], None] | None = None,
) -> list[ConlluSentence]:
    """Read one or more files or globs (see `expand_paths`) as one treebank, with the options of `read_conllu`.

    Raises:
        TreeparseError: if a pattern matches no file, there is no pattern, or no sentence is valid.
        DataError: if a sentence is faulty and ``on_invalid`` is None.
    """
    if not patterns:
        raise TreeparseError("A treebank needs at least one file.")
    paths = expand_paths([patterns] if isinstance(patterns, str | Path) else patterns)
    read = functools.partial(read_conllu, require_trees=require_trees, partial=partial, single_root=single_root)
    sentences = [sentence for path in paths for sentence in read(path, on_invalid=on_invalid)]
    if not sentences:
        raise TreeparseError(f"No sentence is valid in {', '.join(map(str, paths))}.")
    return sentences
