"""A corpus file by file, for clusters: an input of any storage becomes an output that has its name once it is whole.

Who parses a file leaves its output under another name; who distributes the files enters it into the manifest and gives
it its name. So an output is never seen unfinished, and a finished one is never parsed again.
"""

import os
import secrets
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from treeparse.corpus.corpus_parsing import parse_parts
from treeparse.corpus.corpus_progress import CorpusSummary
from treeparse.corpus.request import CorpusInput, CorpusPart, CorpusRequest, targets_of
from treeparse.corpus.storage import StoredFile, is_url, stored_files
from treeparse.errors import TreeparseError
from treeparse.model import Ensemble, Parser
from treeparse.shipped import installed_version

UNFINISHED = ".unfinished-"  # in the names of outputs that are not entered in the manifest

Loader = Callable[[], Parser | Ensemble]


@dataclass(frozen=True, slots=True)
class FileTask:
    """An input and its output.

    Attributes:
        number: of the input among all, from 0.
        source: the input.
        target: the output.
        faults: the list of the sentences that are left out, if it is asked for.
    """

    number: int
    source: StoredFile
    target: StoredFile
    faults: StoredFile | None


@dataclass(frozen=True, slots=True)
class FinishedFile:
    """What became of a task.

    Attributes:
        task: the task.
        summary: the counts.
        renames: the files that were written, and the places where they belong, the output last.
        line: of the manifest.
    """

    task: FileTask
    summary: CorpusSummary
    renames: tuple[tuple[StoredFile, StoredFile], ...]
    line: Mapping[str, Any]

    def publish(self) -> None:
        """Give the files their names."""
        for written, target in self.renames:
            written.rename(target)


@dataclass(frozen=True, slots=True)
class FailedFile:
    """A task whose input is faulty, or whose output cannot be written, and the reason."""

    task: FileTask
    problem: str


def file_tasks(request: CorpusRequest) -> list[FileTask]:
    """Return the tasks of a request.

    Raises:
        TreeparseError: the output is no folder, two inputs have one output, an output is an input, or an input does not
            exist.
    """
    if not request.has_folder:
        raise TreeparseError(
            f"A cluster writes a file for each input, but the output {request.output} is one file: name a folder, or a "
            "URL, that ends in /."
        )
    if request.shard is not None:
        raise TreeparseError("A cluster shares all inputs among its processes: leave out --shard.")
    sources = stored_files(request.inputs)
    urls, tasks = {source.url for source in sources}, []
    for number, (source, places) in enumerate(zip(sources, targets_of([*map(str, sources)], request), strict=True)):
        target, faults = (place and (place if is_url(place) else os.path.abspath(place)) for place in places)
        if target in urls:
            raise TreeparseError(f"The output {target} would replace an input: name another folder.")
        tasks.append(FileTask(number, source, StoredFile(str(target)), StoredFile(faults) if faults else None))
    return tasks


class FileParser:
    """Parses files in one process of a cluster.

    Args:
        load: returns the model.
        request: what to do with each file.
        models: names of the model with digests, for the manifest.
        threads: of torch.
    """

    def __init__(self, load: Loader, request: CorpusRequest, models: Mapping[str, str], threads: int) -> None:
        torch.set_num_threads(threads)
        self._load, self._request, self._models = load, request, models
        self._model: Parser | Ensemble | None = None

    def load(self) -> str | None:
        """Load the model; return what is wrong with it, if anything."""
        try:
            self._model = self._load()
        except (TreeparseError, OSError) as error:
            return str(error)
        return None

    def parse(self, task: FileTask) -> FinishedFile | FailedFile:
        """Parse a file; its output and its faults stay under other names."""
        started = time.perf_counter()
        with TemporaryDirectory(prefix="treeparse-") as name:
            folders = [Path(name, each) for each in ("in", "out")]
            for folder in folders:
                folder.mkdir()
            try:
                with task.source.as_local(folders[0]) as source:
                    return self._parsed(task, source, folders[1], started)
            except (TreeparseError, OSError) as error:
                return FailedFile(task, str(error))

    def _parsed(self, task: FileTask, source: Path, folder: Path, started: float) -> FinishedFile:
        assert self._model is not None
        places = [place for place in (task.faults, task.target) if place is not None]
        own = {place: folder / f"{number}-{Path(place.url).name}" for number, place in enumerate(places)}
        faults = None if task.faults is None else str(own[task.faults])
        part = CorpusPart(str(own[task.target]), faults, (CorpusInput(source, task.number, name=task.source.url),))
        request = replace(self._request, inputs=[source], output=f"{folder}/", faults=None)
        summary = parse_parts(self._model, request, [part])
        digests = {"input_sha256": StoredFile(str(source)).digest(), "output_sha256": StoredFile(part.target).digest()}
        renames = []
        for place, path in own.items():
            written = StoredFile(f"{place.url}{UNFINISHED}{secrets.token_hex(6)}")
            written.receive(path)
            renames.append((written, place))
        line = {
            "input": task.source.url,
            "output": task.target.url,
            **{name: value for name, value in asdict(summary).items() if name not in ("outputs", "existing_outputs")},
            **digests,
            "seconds": round(time.perf_counter() - started, 3),
            "models": dict(self._models),
            "treeparse": installed_version(),
            "node": socket.gethostname(),
        }
        return FinishedFile(task, summary, tuple(renames), line)
