"""The end of a command by SIGTERM or SIGHUP."""

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

SIGNALS = {"SIGTERM": "terminated", "SIGHUP": "hung up"}  # Windows has no SIGHUP
PATIENCE = 1.0  # seconds after which a signal whose exception was lost is sent again


class Stopped(SystemExit):
    """The exception for a signal to end, which lets files be closed and incomplete files be removed.

    Attributes:
        exit_code: the exit code of a process that the signal ended, 128 + its number.
        word: the event in one word, for messages.
    """

    def __init__(self, number: int) -> None:
        self.exit_code: int = 128 + number
        super().__init__(self.exit_code)
        self.word: str = SIGNALS[signal.Signals(number).name]


@contextmanager
def signals_exit() -> Iterator[None]:
    """Raise `Stopped` in the block at the first SIGTERM or SIGHUP; signals that the process ignores stay ignored.

    An error after the signal, such as the error of a worker process that got it too, also becomes `Stopped`. An
    exception that Python drops, because the signal came in a finalizer or a callback, is raised again.
    """
    if threading.current_thread() is not threading.main_thread():  # only the main thread may set handlers
        yield
        return
    received: list[int] = []
    is_over, repeating = threading.Event(), list[threading.Thread]()

    def end(number: int, *_: object) -> None:
        received.append(number)
        if len(received) == 1:
            repeating.append(threading.Thread(target=_repeat, args=(number, is_over)))
            repeating[0].start()
        if not _is_stopping():  # a closing terminal sends SIGHUP twice: the second signal must not stop the cleaning
            raise Stopped(received[0])

    numbers = [getattr(signal, name) for name in SIGNALS if hasattr(signal, name)]
    handlers = {number: handler for number in numbers if (handler := signal.getsignal(number)) is not signal.SIG_IGN}
    try:
        for number in handlers:
            signal.signal(number, end)
        yield
    except Exception as error:
        if received:
            raise Stopped(received[0]) from error
        raise
    finally:
        is_over.set()
        for thread in repeating:  # because without these handlers a signal would kill the process
            thread.join()
        for number, handler in handlers.items():
            signal.signal(number, handler or signal.SIG_DFL)


def _is_stopping() -> bool:
    """Whether the code that runs in this thread cleans up after `Stopped`."""
    error = sys.exc_info()[1]
    while error is not None and not isinstance(error, Stopped):
        error = error.__context__
    return error is not None


def _repeat(number: int, is_over: threading.Event) -> None:
    """Send a signal to the main thread again and again until the event."""
    main = threading.main_thread().ident
    while not is_over.wait(PATIENCE):
        if main is not None and hasattr(signal, "pthread_kill"):
            signal.pthread_kill(main, number)
