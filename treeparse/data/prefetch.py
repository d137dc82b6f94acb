"""Compute items in a thread, ahead of their use."""

from collections.abc import Iterable, Iterator
from queue import Full, Queue
from threading import Event, Thread
from typing import NamedTuple, TypeVar

T = TypeVar("T")

PATIENCE = 0.1  # seconds between two tries to put an item into a full queue


class _End(NamedTuple):
    fault: BaseException | None


def prefetched(items: Iterable[T], ahead: int = 1) -> Iterator[T]:
    """Yield the items in order; a thread computes up to ``ahead`` of them in advance.

    An error in computing an item is raised after the items before it. The thread ends with the iterator, and does not
    keep the program from ending.
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
    except BaseException as fault:  # raised in the caller's thread
        _put(_End(fault), queue, closed)
    else:
        _put(_End(None), queue, closed)


def _put(item: "T | _End", queue: "Queue[T | _End]", closed: Event) -> bool:
    """Put an item into the queue; return False if the iterator was closed before."""
    while not closed.is_set():
        try:
            queue.put(item, timeout=PATIENCE)
        except Full:
            continue
        return True
    return False
