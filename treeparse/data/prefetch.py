"""Items that are made ahead while those before them are used."""

from collections.abc import Iterable, Iterator
from queue import Full, Queue
from threading import Event, Thread
from typing import NamedTuple, TypeVar

T = TypeVar("T")

PATIENCE = 0.1  # seconds after which a full queue is looked at again, and whether anybody still waits


class _End(NamedTuple):
    fault: BaseException | None


def prefetched(items: Iterable[T], ahead: int = 1) -> Iterator[T]:
    """The items in order, made by a thread of their own: so many are ready, or in work, when one is asked for.

    What making them raises is raised in their place, after the items before. The thread ends with the iterator, or once
    nobody holds it, and does not keep the program from ending, whatever it waits for.
    """
    queue: Queue[T | _End] = Queue(ahead)
    closed = Event()
    Thread(target=_make, args=(iter(items), queue, closed), daemon=True).start()
    try:
        while not isinstance(item := queue.get(), _End):
            yield item
        if item.fault is not None:
            raise item.fault
    finally:
        closed.set()


def _make(items: Iterator[T], queue: "Queue[T | _End]", closed: Event) -> None:
    try:
        for item in items:
            if not _put(item, queue, closed):
                return
    except BaseException as fault:  # whatever it is, it is for whoever waits
        _put(_End(fault), queue, closed)
    else:
        _put(_End(None), queue, closed)


def _put(item: "T | _End", queue: "Queue[T | _End]", closed: Event) -> bool:
    """Whether the item was put, as it is unless nobody wants it."""
    while not closed.is_set():
        try:
            queue.put(item, timeout=PATIENCE)
        except Full:
            continue
        return True
    return False
