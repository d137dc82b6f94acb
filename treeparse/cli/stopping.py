"""How training ends when it is told to: Ctrl-C and SIGTERM, and the line that says how to go on."""

import shlex
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from treeparse.cli.common import INTERRUPTED, TERMINATED


@contextmanager
def sigterm_exits() -> Iterator[None]:
    """Within it SIGTERM raises ``SystemExit(TERMINATED)``, so that files are closed and half-written ones removed.

    Whatever fails on the way out, as a worker process does that got the signal too, is part of that end.
    """
    if threading.current_thread() is not threading.main_thread():  # no other may set handlers
        yield
        return

    received = False

    def end(*_: object) -> None:
        nonlocal received
        received = True
        raise SystemExit(TERMINATED)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    except Exception as error:
        if received:
            raise SystemExit(TERMINATED) from error
        raise
    finally:
        signal.signal(signal.SIGTERM, before or signal.SIG_DFL)


def stoppable(work: Callable[[], None]) -> int:
    """Do work that the same command resumes, and return the exit code; after Ctrl-C or SIGTERM a line says so."""
    try:
        with sigterm_exits():
            work()
    except KeyboardInterrupt:
        print("interrupted; the same command resumes", file=sys.stderr)
        return INTERRUPTED
    except SystemExit as error:
        if error.code != TERMINATED:
            raise
        print("terminated; the same command resumes", file=sys.stderr)
        return TERMINATED
    return 0


def way_on(output: str | None) -> str:
    """What to do after a stop, given the folder of the run, if it is known."""
    from treeparse.training.checkpoint import RunDirectory

    run = None if output is None else RunDirectory(output)
    if run is None or not run.config.exists():
        return "no run had begun: give the same command again"
    path = shlex.quote(str(run.path))
    if not run.state.exists():
        return f"no epoch was complete; start again with: treeparse train --resume {path}"
    return f"go on with: treeparse train --resume {path} (the parser so far: treeparse export {path})"
