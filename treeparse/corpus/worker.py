"""A process that parses chunks of a corpus for `treeparse.corpus.jobs`."""

import os
import signal
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any, NamedTuple

import torch

from treeparse.corpus.parsing import ChunkParser
from treeparse.corpus.progress import CorpusSummary
from treeparse.corpus.request import CorpusRequest
from treeparse.corpus.sentences import RawItemOrEnd
from treeparse.corpus.writers.writer import Writer
from treeparse.data.parses import NBestList
from treeparse.errors import DataError, TreeparseError
from treeparse.model import Ensemble, Parser
from treeparse.rules import RuleTally

Loader = Callable[[], Parser | Ensemble]
"""Returns the model of a process."""


class OutputPiece(NamedTuple):
    """Results of a chunk that belong to one output.

    Attributes:
        text: the text of the sentences, UTF-8, if the writer's texts are independent.
        results: the results otherwise.
        ends: whether the output ends here.
    """

    text: bytes
    results: list[NBestList]
    ends: bool


@dataclass
class ChunkResult:
    """A parsed chunk, as a worker sends it.

    Attributes:
        pieces: the results.
        summary: counts of the chunk.
        size: bytes of the input that the chunk held.
        fault: the error that ends the work after these results.
        doubt: what may be wrong with the input.
        tally: outcomes of the search for trees that satisfy rules.
    """

    pieces: list[OutputPiece]
    summary: CorpusSummary
    size: int
    fault: DataError | None
    doubt: str | None
    tally: RuleTally | None


def work(connection: Any, load: Loader, request: CorpusRequest, threads: int) -> None:
    """Parse the chunks that arrive, until the connection ends; send their results, or the error that ends the work."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends its workers
    torch.set_num_threads(threads)
    try:
        model = load()
        if request.tags:
            model.check_tags()
        parser, writer = ChunkParser(model, request), request.writer()
        for items in _arriving(connection):
            connection.send(_result(parser, writer, items))
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


def _result(parser: ChunkParser, writer: Writer, items: list[RawItemOrEnd]) -> ChunkResult:
    parsed = parser.parse(items, lambda sentences, words, size: None)
    rules = parser.request.trees.rules
    return ChunkResult(
        pieces=[*_pieces(parsed.results, writer)],
        summary=parsed.summary,
        size=sum(len(item.raw.text) for item in items if item is not None),
        fault=parsed.fault,
        doubt=parsed.doubt,
        tally=None if rules is None else rules.tally.taken(),
    )


def _pieces(results: Iterable[NBestList | None], writer: Writer) -> Iterator[OutputPiece]:
    """Yield the results of each output: all but the last one end with the end of their output."""
    own: list[NBestList] = []
    for result in results:
        if result is None:
            yield _piece(own, writer, ends=True)
            own = []
        else:
            own.append(result)
    if own:
        yield _piece(own, writer, ends=False)


def _piece(results: list[NBestList], writer: Writer, *, ends: bool) -> OutputPiece:
    if not writer.is_independent:
        return OutputPiece(b"", results, ends)
    return OutputPiece("".join(writer.texts(results)).encode() if results else b"", [], ends)
