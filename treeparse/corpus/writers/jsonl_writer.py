"""JSON Lines: one object for each sentence, with its trees."""

from collections.abc import Iterable, Iterator

from treeparse.corpus.writers.writer import Writer, WriterOptions, with_id
from treeparse.data.nbest.list_files import nbest_texts
from treeparse.data.parses import NBestList
from treeparse.errors import TreeparseError


class JsonlWriter(Writer):
    """Writes JSON Lines, an object a sentence, as `treeparse.data.nbest.jsonl_lists`; a parse is a list of one.

    Raises:
        TreeparseError: the options ask for tags or sets of heads, for which the format has no keys.
    """

    suffix = ".jsonl"

    def __init__(self, options: WriterOptions | None = None) -> None:
        super().__init__(options)
        if self.options.tags or self.options.head_sets:
            raise TreeparseError("The output format jsonl has no tags and no sets of heads: choose conllu.")

    def texts(self, results: Iterable[NBestList]) -> Iterator[str]:
        """Yield the line of each sentence."""
        return nbest_texts(map(with_id, results), "jsonl")
