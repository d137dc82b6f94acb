"""Parse a stream of sentences, in order, in memory that does not grow with their number."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from typing import TypeVar

import torch

from treeparse.data.filling import Parsed, with_trees
from treeparse.data.mapping import Words, check_several, each_sentence
from treeparse.data.parses import Parse
from treeparse.data.prefetch import prefetched
from treeparse.errors import TreeparseError
from treeparse.model.inference.parsing import Model, Request, lists_of

T = TypeVar("T")


def stream_of(model: Model, sentences: Iterable[Words], request: Request, ahead: int) -> Iterator[Parse]:
    """Yield the first tree of each sentence, in order; `lists_of` parses ``ahead`` sentences at a time.

    Another thread parses the next sentences while the caller uses the last ones.
    """
    if ahead < 1:
        raise TreeparseError(f"ahead must be 1 or more, not {ahead}.")
    check_several(sentences)

    def chunks() -> Iterator[list[Parse]]:
        left, first = iter(each_sentence(sentences)), 0
        while chunk := list(islice(left, ahead)):
            yield [parses[0] for parses in lists_of(model, chunk, request, first)]
            first += len(chunk)

    return chain.from_iterable(made_ahead(chunks(), model.device))


def made_ahead(parses: Iterator[T], device: torch.device) -> Iterator[T]:
    """Yield items in order; another thread computes the next one while the caller uses the last one."""
    # Autocast holds for one thread, so that another one would compute without it.
    return parses if torch.is_autocast_enabled(device.type) else prefetched(parses)


def annotated(stream: Callable[[Iterable[Words]], Iterator[Parse]], sentences: Iterable[Parsed]) -> Iterator[Parsed]:
    """Yield each item with the trees that ``stream`` finds for its sentences."""
    check_several(sentences)
    waiting = deque[tuple[Parsed, int]]()  # items without trees yet, and their numbers of sentences

    def read() -> Iterator[Words]:
        for held in sentences:
            own = list(each_sentence([held]))
            waiting.append((held, len(own)))
            yield from own

    return _filled(waiting, stream(read()))


def _filled(waiting: deque[tuple[Parsed, int]], parses: Iterator[Parse]) -> Iterator[Parsed]:
    """Yield the waiting items with their parses; taking a parse may add waiting items."""
    for parse in parses:
        while not waiting[0][1]:
            yield with_trees(waiting.popleft()[0], ())
        held, count = waiting.popleft()
        yield with_trees(held, [parse, *islice(parses, count - 1)])
    yield from (with_trees(held, ()) for held, _ in waiting)
