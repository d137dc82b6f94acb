"""A server that forks: it imports once what takes seconds, computes nothing, and its children run programs.

Its standard input is a socket that listens; it ends with the process that started it. A request is a line of JSON, the
arguments of ``execute``; the answer is a line with the new process's number, and one with its exit code, or minus a
signal, once it has ended.
"""

import importlib
import json
import os
import socket
import socketserver
import sys
from collections.abc import Mapping, Sequence
from multiprocessing import get_context

# With what they import only as they work.
IMPORTED = [
    *("treeparse.training.run", "treeparse.training.parser_module", "torch.utils.tensorboard"),
    *("attrs", "docstring_parser"),
]


def execute(
    program: str,
    arguments: Sequence[str],
    folder: str,
    variables: Mapping[str, str],
    path: Sequence[str],
    forgotten: Sequence[str],
    streams: Sequence[str],
) -> None:
    """Run Python's text with these arguments in a folder; packages that are forgotten will be imported anew."""
    for number, stream in enumerate(streams):
        os.dup2(os.open(stream, os.O_RDWR), number)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(variables)
    for name in [name for name in sys.modules if name.partition(".")[0] in forgotten]:
        del sys.modules[name]
    importlib.invalidate_caches()
    sys.argv, sys.path[:] = list(arguments), path
    exec(program, {"__name__": "__main__"})


class Handler(socketserver.StreamRequestHandler):
    """In a child of the server, which has a child itself, so that it can tell of its end, however that comes."""

    def handle(self) -> None:
        process = get_context("fork").Process(target=execute, args=json.loads(self.rfile.readline()))
        process.start()
        self.wfile.write(b"%d\n" % process.pid)
        process.join()
        self.wfile.write(b"%d\n" % process.exitcode)


class Server(socketserver.ForkingMixIn, socketserver.UnixStreamServer):
    """Imports at the first request, and looks twice a second whether its parent is still there."""

    parent = os.getppid()

    def verify_request(self, request: object, client_address: object) -> bool:
        for name in IMPORTED:
            importlib.import_module(name)
        importlib.import_module("numba.core.registry").cpu_target.target_context.refresh()  # as a first kernel does
        return True

    def service_actions(self) -> None:
        super().service_actions()
        if os.getppid() != self.parent:
            os._exit(0)  # without waiting for any child


if __name__ == "__main__":
    with Server("", Handler, bind_and_activate=False) as server:
        server.socket.close()
        server.socket = socket.socket(fileno=sys.stdin.fileno())
        server.serve_forever()
