"""Parquet: a row for each tree, in columns named as the keys of JSON Lines."""

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from treeparse.corpus.readers.parquet_reader import parquet_errors
from treeparse.corpus.writers.writer import FileWriter, WriterOptions, with_id
from treeparse.data.outputs import atomic_output
from treeparse.data.parses import NBestList, Parse
from treeparse.errors import TreeparseError

if TYPE_CHECKING:
    import pyarrow as pa

ROWS = 10_000  # of a row group
PACKED = 1000  # sentences


class ParquetWriter(FileWriter):
    """Writes Parquet, a row for each tree.

    The columns are ``sent_id``, ``text`` (null if unknown), ``tokens``, of lists ``rank`` (from 1), then ``heads``,
    ``labels``, ``log_prob`` (null if the trees have none) and ``score``; and those that the options add.

    Raises:
        TreeparseError: the options ask for sets of heads, for which there is no column; or pyarrow is not installed.
    """

    suffix: ClassVar[str] = ".parquet"

    def __init__(self, options: WriterOptions | None = None) -> None:
        super().__init__(options)
        if self.options.head_sets:
            raise TreeparseError("The output format parquet has no sets of heads: choose conllu.")
        with parquet_errors("the output"):
            self._schema = _schema(self.options)

    @property
    def is_independent(self) -> bool:
        """Whether processes can pack sentences: always, because ids need not differ."""
        return True

    def write(self, path: str | Path, results: Iterable[NBestList]) -> None:
        """Write the rows of sentences."""
        rest = iter(results)
        self.write_packed(path, map(self.pack, iter(lambda: [*islice(rest, PACKED)], [])))

    def pack(self, results: Sequence[NBestList]) -> "pa.RecordBatch":
        """Return the rows of sentences."""
        from pyarrow import RecordBatch

        return RecordBatch.from_pylist([row for result in results for row in self._rows(result)], schema=self._schema)

    def write_packed(self, path: str | Path, packed: Iterable["pa.RecordBatch"]) -> None:
        """Write rows, always as many in a row group, so that the bytes do not depend on how they were packed."""
        from pyarrow import Table
        from pyarrow.parquet import ParquetWriter as Stream

        with atomic_output(path) as output, Stream(output, self._schema, compression="zstd") as stream:
            waiting = Table.from_batches([], schema=self._schema)
            for batch in packed:
                waiting = Table.from_batches([*waiting.to_batches(), batch], schema=self._schema)
                while len(waiting) >= ROWS:
                    stream.write_table(waiting.slice(0, ROWS).combine_chunks())
                    waiting = waiting.slice(ROWS)
            if len(waiting):
                stream.write_table(waiting.combine_chunks())

    def _rows(self, result: NBestList) -> Iterator[dict[str, Any]]:
        result = with_id(result)
        texts = result.sentence.comments("text")
        own = {"sent_id": result.sent_id, "text": texts[0] if texts and texts[0] else None, "tokens": result.tokens}
        for rank, parse in enumerate(result.parses, 1):
            yield own | {"rank": rank, **_columns(parse)}


def _columns(parse: Parse) -> dict[str, Any]:
    """Return the columns of a tree; the schema chooses among them."""
    names = ("heads", "labels", "score", "upos", "xpos", "feats", "arc_probs", "label_probs", "entropy")
    log_prob = None if math.isnan(parse.log_prob) else parse.log_prob
    return {name: getattr(parse, name) for name in names} | {"log_prob": log_prob}


def _schema(options: WriterOptions) -> "pa.Schema":
    import pyarrow as pa

    texts, numbers = pa.list_(pa.string()), pa.list_(pa.float64())
    columns = {"sent_id": pa.string(), "text": pa.string(), "tokens": texts}
    if options.tags:
        columns |= dict.fromkeys(("upos", "xpos", "feats"), texts)
    if options.lists:
        columns["rank"] = pa.int32()
    columns |= {"heads": pa.list_(pa.int32()), "labels": texts, "log_prob": pa.float64(), "score": pa.float64()}
    if options.probabilities:
        columns |= {"arc_probs": numbers, "label_probs": numbers, "entropy": pa.float64()}
    return pa.schema(list(columns.items()))
