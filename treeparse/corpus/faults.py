"""Lists of the sentences that were left out of an output: JSON Lines, an object a fault.

Its keys are ``file``, ``line`` (of a table the row), ``sent_id`` and ``problem``; what is unknown is left out.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from treeparse.data.outputs import atomic_output
from treeparse.errors import DataError


@contextmanager
def fault_list(path: str | None) -> Iterator[Callable[[DataError], object]]:
    """Open a list that appears once the block ends without an exception; yield what adds a fault to it.

    Without a path nothing is written.
    """
    if path is None:
        yield lambda fault: None
        return
    with atomic_output(path) as output:
        yield lambda fault: output.write(_line(fault))


def _line(fault: DataError) -> bytes:
    place = {"file": fault.source, "line": fault.line, "sent_id": fault.sent_id, "problem": fault.problem}
    known = {key: value for key, value in place.items() if value is not None}
    return f"{json.dumps(known, ensure_ascii=False)}\n".encode(errors="backslashreplace")  # names that are not UTF-8
