"""Compute the results of a function ahead of their use, in a thread or in processes."""

import multiprocessing
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from functools import partial
from multiprocessing import forkserver
from threading import Event
from typing import Any, TypeVar

S = TypeVar("S")
T = TypeVar("T")


def map_ahead(
    function: Callable[[S], T], inputs: Iterable[S], ahead: int = 1, closed: Event | None = None
) -> Generator[T, None, None]:
    """Yield the result of a function for each input, in order; a thread computes ``ahead`` results in advance.

    The caller's thread reads the inputs. An error in reading or computing is raised after the results before it.
    Closing the iterator, as `contextlib.closing` does, waits for the end of a call and of the thread. Before it waits,
    it sets ``closed``, at which a long call may raise. With ``ahead`` 0 there is no thread.
    """
    if not ahead:
        yield from map(function, inputs)
        return
    with (
        ThreadPoolExecutor(1) as thread,
        closing(submit_ahead(partial(thread.submit, function), inputs, ahead + 1)) as submitted,
    ):
        try:
            for _, future in submitted:
                yield future.result()
        finally:
            if closed is not None:
                closed.set()


def submit_ahead(
    submit: Callable[[S], Future[T]], inputs: Iterable[S], count: int
) -> Generator[tuple[S, Future[T]], None, None]:
    """Submit inputs to an executor; yield each input with its future, in order.

    At most ``count`` inputs are submitted and not yet yielded. An error in reading inputs is raised after the inputs
    before it. Closing the iterator cancels the other futures.
    """
    source, end = iter(inputs), None
    waiting = deque[tuple[S, Future[T]]]()
    try:
        while True:
            while end is None and len(waiting) < count:
                try:
                    item = next(source)
                except Exception as error:  # StopIteration among them
                    end = error
                else:
                    waiting.append((item, submit(item)))
            if waiting:
                yield waiting.popleft()
            elif end is None or isinstance(end, StopIteration):
                return
            else:
                raise end
    finally:
        for _, future in waiting:
            future.cancel()


def process_context(module: str) -> Any:
    """Return the context of processes that need a module, such as one that imports torch.

    Where the system can fork, a server forks these processes. The server has no threads, unlike this process; it
    begins to import the module when this function is first called, and the processes share what it has imported.
    """
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([module])
    forkserver.ensure_running()
    return context
