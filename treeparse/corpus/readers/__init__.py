"""Input formats: a reader turns files into sentences. One file and one line in `READERS` a format."""

from collections.abc import Mapping

from treeparse.corpus.readers.conllu_reader import ConlluReader
from treeparse.corpus.readers.jsonl_reader import JsonlReader
from treeparse.corpus.readers.parquet_reader import ParquetReader
from treeparse.corpus.readers.reader import Reader
from treeparse.corpus.readers.text import TextReader
from treeparse.names import CorpusFormat

READERS: Mapping[CorpusFormat, type[Reader]] = {
    "conllu": ConlluReader,
    "text": TextReader,
    "jsonl": JsonlReader,
    "parquet": ParquetReader,
}
