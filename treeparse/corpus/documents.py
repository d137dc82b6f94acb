"""Documents of other pipelines: texts in memory, parsed by chunks, each document's sentences together."""

import json
from collections.abc import Iterable, Iterator
from itertools import count

from treeparse.corpus.corpus_parsing import CHUNK, CHUNK_WORDS, ChunkParser
from treeparse.corpus.request import CorpusRequest
from treeparse.corpus.sentences import RawOrEnd, chunks_of
from treeparse.data.conllu import RawSentence
from treeparse.data.parses import NBestList
from treeparse.data.text.tokenizers import Tokenizer
from treeparse.errors import DataError
from treeparse.model import Ensemble, Parser, TreeRequest

SOURCE = "<documents>"  # in messages


def parse_documents(
    model: Parser | Ensemble,
    texts: Iterable[str],
    *,
    ids: Iterable[str | int] | None = None,
    tokenizer: str | Tokenizer | None = None,
    trees: TreeRequest | None = None,
    max_words: int | None = None,
) -> Iterator[list[NBestList]]:
    """Yield the sentences of each document with their trees, read ahead by some thousand documents.

    Each line of a text is a sentence of words between spaces or, with a tokenizer, a paragraph. A writer of
    `treeparse.corpus.writers` packs what is yielded, for example ``ConlluWriter().pack(sentences)``.

    Args:
        model: parses.
        texts: the documents; a blank one has no sentences.
        ids: of the documents; by default numbers from 1. The id of a sentence begins with its document's.
        tokenizer: splits paragraphs into sentences and words, as for `CorpusRequest`.
        trees: of every sentence; by default its parse.
        max_words: longer sentences are left out.

    Raises:
        DataError: a text holds what no file can hold, or no tree fits a sentence.
    """
    options = {"id_column": "id", "tokenizer": tokenizer, "max_words": max_words, "trees": trees or TreeRequest()}
    parser = ChunkParser(model, CorpusRequest([], format="jsonl", **options))
    sentences: list[NBestList] = []
    for chunk in chunks_of(_items(texts, count(1) if ids is None else ids), CHUNK, CHUNK_WORDS):
        parsed = parser.parse(chunk, lambda sentences, words, length: None)
        for result in parsed.results:
            if result is None:
                yield sentences
                sentences = []
            elif isinstance(result, NBestList):
                sentences.append(result)
        if parsed.fault is not None:
            raise parsed.fault


def _items(texts: Iterable[str], ids: Iterable[str | int]) -> Iterator[RawOrEnd]:
    """Yield the documents as the reader of JSON Lines takes them, each with an end after it."""
    for number, (text, name) in enumerate(zip(texts, ids, strict=False)):
        if not isinstance(text, str):
            raise DataError(f"a document must be a string, got {text!r:.50}", source=SOURCE, line=number + 1)
        yield RawSentence(json.dumps({"text": text, "id": name}).encode(), SOURCE, number + 1, number)
        yield None
