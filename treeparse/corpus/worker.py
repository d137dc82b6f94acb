"""A process that parses chunks of a corpus for `treeparse.corpus.jobs`."""

import os
import signal
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator
from queue import SimpleQueue
from typing import Any, NamedTuple

import torch

from treeparse.corpus.parsing import ChunkParser, ParsedChunk, Result
from treeparse.corpus.request import CorpusRequest
from treeparse.corpus.sentences import RawItemOrEnd
from treeparse.corpus.writers.writer import FileWriter
from treeparse.data.parses import NBestList
from treeparse.errors import DataError, TreeparseError
from treeparse.model import Ensemble, Parser
from treeparse.rules import RuleTally

Loader = Callable[[], Parser | Ensemble]
"""Returns the model of a process."""


class OutputPiece(NamedTuple):
    """Results of a chunk that belong to one output.

    Attributes:
        packed: the sentences as the writer packs them, if it packs them independently; None if there are none.
        results: the sentences otherwise.
        faults: of the sentences that are left out.
        ends: whether the output ends here.
    """

    packed: Any
    results: list[NBestList]
    faults: list[DataError]
    ends: bool


class SentChunk(NamedTuple):
    """A parsed chunk, as a worker sends it, with the outcomes of the search for trees that satisfy rules."""

    parsed: ParsedChunk[OutputPiece]
    tally: RuleTally | None


def serve_chunks(connection: Any, load: Loader, request: CorpusRequest, threads: int) -> None:
    """Parse the chunks that arrive, until the connection ends; send their results, or the error that ends the work."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends its workers
    torch.set_num_threads(threads)
    try:
        model = load()
        if request.tags:
            model.check_tags()
        parser, writer = ChunkParser(model, request), request.writer()
        for items in _arriving(connection):
            connection.send(_parsed(parser, writer, items))
    except TreeparseError as error:
        connection.send(error if isinstance(error, DataError) else TreeparseError(str(error)))
    except OSError as error:
        connection.send(error)
    except Exception:  # of our own making: the parent shows where
        connection.send(RuntimeError(f"A process that parses failed:\n{traceback.format_exc()}"))


def _arriving(connection: Any) -> Iterator[list[RawItemOrEnd]]:
    """Yield chunks; a thread receives the next one meanwhile, so that the parent never waits to send it."""
    queue = SimpleQueue[Any]()

    def receive() -> None:
        try:
            while True:
                queue.put(connection.recv())
        except (EOFError, OSError):
            os._exit(0)  # the parent has ended, perhaps by a signal, and nobody takes results

    threading.Thread(target=receive, daemon=True).start()
    while True:
        yield queue.get()


def _parsed(parser: ChunkParser, writer: FileWriter, items: list[RawItemOrEnd]) -> SentChunk:
    parsed, rules = parser.parse(items, lambda sentences, words, size: None), parser.request.trees.rules
    pieces = ParsedChunk([*_pieces(parsed.results, writer)], parsed.summary, parsed.fault, parsed.doubt)
    return SentChunk(pieces, None if rules is None else rules.tally.taken())


def _pieces(results: Iterable[Result], writer: FileWriter) -> Iterator[OutputPiece]:
    """Yield the results of each output: all but the last one end with the end of their output."""
    own, faults = list[NBestList](), list[DataError]()
    for result in results:
        if isinstance(result, NBestList):
            own.append(result)
        elif result is not None:
            faults.append(result)
        else:
            yield _piece(own, faults, writer, ends=True)
            own, faults = [], []
    if own or faults:
        yield _piece(own, faults, writer, ends=False)


def _piece(results: list[NBestList], faults: list[DataError], writer: FileWriter, *, ends: bool) -> OutputPiece:
    if not writer.is_independent:
        return OutputPiece(None, results, faults, ends)
    return OutputPiece(writer.pack(results) if results else None, [], faults, ends)
