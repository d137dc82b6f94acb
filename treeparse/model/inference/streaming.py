"""Parses of sentences without end, in order, in memory that does not grow with them."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from typing import TypeVar

import torch

from treeparse.data.filling import Held, filled
from treeparse.data.mapping import Words, check_several, each_sentence
from treeparse.data.parses import Parse
from treeparse.data.prefetch import prefetched
from treeparse.errors import TreeparseError
from treeparse.model.inference.parsing import Model, Request, lists_of

T = TypeVar("T")


def stream_of(model: Model, sentences: Iterable[Words], request: Request, ahead: int) -> Iterator[Parse]:
    """The first tree of each sentence, in order, as `lists_of` finds them for ``ahead`` sentences at a time.

    While they are used, those of the next sentences are found.
    """
    if ahead < 1:
        raise TreeparseError(f"Sentences are read 1 or more ahead, not {ahead}.")
    check_several(sentences)

    def found() -> Iterator[list[Parse]]:
        left, first = iter(each_sentence(sentences)), 0
        while chunk := list(islice(left, ahead)):
            yield [parses[0] for parses in lists_of(model, chunk, request, first)]
            first += len(chunk)

    return chain.from_iterable(made_ahead(found(), model.device))


def made_ahead(parses: Iterator[T], device: torch.device) -> Iterator[T]:
    """What a model on the device makes, in order: the next one is made, by another thread, while one is used."""
    # Autocast is of this thread alone.
    return parses if torch.is_autocast_enabled(device.type) else prefetched(parses)


def annotated(stream: Callable[[Iterable[Words]], Iterator[Parse]], sentences: Iterable[Held]) -> Iterator[Held]:
    """What people hold, each under the trees that a stream of parses has for its sentences."""
    check_several(sentences)
    waiting = deque[tuple[Held, int]]()  # with how many sentences each has

    def read() -> Iterator[Words]:
        for held in sentences:
            own = list(each_sentence([held]))
            waiting.append((held, len(own)))
            yield from own

    return _filled(waiting, stream(read()))


def _filled(waiting: deque[tuple[Held, int]], parses: Iterator[Parse]) -> Iterator[Held]:
    """What waits, which grows as parses are taken, under its parses."""
    for parse in parses:
        while not waiting[0][1]:
            yield filled(waiting.popleft()[0], ())
        held, count = waiting.popleft()
        yield filled(held, [parse, *islice(parses, count - 1)])
    yield from (filled(held, ()) for held, _ in waiting)
