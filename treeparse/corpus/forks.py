"""How the processes of `treeparse.corpus.jobs` start; without torch, which they import while this process does."""

import multiprocessing
from multiprocessing import forkserver
from typing import Any

WORKER = "treeparse.corpus.worker"


def worker_context() -> Any:
    """Return the context in which workers start.

    Where the system can fork, a server forks them, which has no threads, unlike this process; what it has imported,
    they share. The first call starts it, and does not wait until it has imported everything.
    """
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([WORKER])
    forkserver.ensure_running()
    return context
