"""The end of a command by SIGTERM or SIGHUP."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

SIGNALS = {"SIGTERM": "terminated", "SIGHUP": "hung up"}  # Windows has no SIGHUP


class Stopped(SystemExit):
    """The exception for a signal to end, which lets files be closed and incomplete files be removed.

    Attributes:
        exit_code: the exit code of a process that the signal ended, 128 + its number.
        word: the event in one word, for messages.
    """

    def __init__(self, number: int) -> None:
        self.exit_code = 128 + number
        super().__init__(self.exit_code)
        self.word = SIGNALS[signal.Signals(number).name]


@contextmanager
def signals_exit() -> Iterator[None]:
    """Raise `Stopped` in the block at the first SIGTERM or SIGHUP; signals that the process ignores stay ignored.

    An error after the signal, such as the error of a worker process that got it too, also becomes `Stopped`.
    """
    if threading.current_thread() is not threading.main_thread():  # only the main thread may set handlers
        yield
        return
    received: list[int] = []

    def end(number: int, *_: object) -> None:
        received.append(number)
        if len(received) == 1:  # a closing terminal sends SIGHUP twice: the second signal must not stop the cleaning
            raise Stopped(number)

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
        for number, handler in handlers.items():
            signal.signal(number, handler or signal.SIG_DFL)
