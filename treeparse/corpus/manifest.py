"""Manifests of a corpus: JSON Lines, an object for each output that is complete."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any


class Manifest:
    """A file that grows by a line for each output, which is on the disk before the output has its name.

    An output without a line is therefore one that this program did not write. A line may be followed by another one for
    the same output, where the program was killed between the two steps: the last one counts. A line that a killed
    program has not finished is removed.
    """

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        if self._path.exists():
            with self._path.open("r+b") as stream:
                stream.truncate(sum(len(line) for line in stream if line.endswith(b"\n")))

    def add(self, line: Mapping[str, Any]) -> None:
        """Append a line."""
        with self._path.open("ab") as stream:
            stream.write(f"{json.dumps(line, ensure_ascii=False)}\n".encode(errors="backslashreplace"))
            stream.flush()
            os.fsync(stream.fileno())


def read_manifest(path: str | Path) -> dict[str, dict[str, Any]]:
    """Return the last line of each output, by the output."""
    with open(path, encoding="utf-8") as stream:
        return {line["output"]: line for line in map(json.loads, stream)}
