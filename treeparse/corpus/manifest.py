"""Manifests of a corpus: JSON Lines, an object for each output that is complete."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from treeparse.errors import DataError


class Manifest:
    """A file that grows by a line for each output, which is on the disk before the output has its name.

    An output without a line is therefore one that this program did not write. A line may be followed by another one for
    the same output, where the program was killed between the two steps: the last one counts.
    """

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        self._path.parent.mkdir(parents=True, exist_ok=True)

    def add(self, line: Mapping[str, Any]) -> None:
        """Append a line."""
        with self._path.open("ab") as stream:
            stream.write(f"{json.dumps(line, ensure_ascii=False)}\n".encode(errors="backslashreplace"))
            stream.flush()
            os.fsync(stream.fileno())


def read_manifest(path: str | Path) -> dict[str, dict[str, Any]]:
    """Return the last line of each output, by the output.

    Raises:
        DataError: for a line that is none of a manifest.
    """
    lines: dict[str, dict[str, Any]] = {}
    with open(path, "rb") as stream:
        for number, text in enumerate(stream, 1):
            try:
                line = json.loads(text)  # not `from_json`: names of files may hold halves of surrogate pairs
            except ValueError:
                line = None
            if not (isinstance(line, dict) and isinstance(line.get("output"), str)):
                problem = 'a line of a manifest is a JSON object with an "output": is the file damaged?'
                raise DataError(problem, source=str(path), line=number)
            lines[line["output"]] = line
    return lines
