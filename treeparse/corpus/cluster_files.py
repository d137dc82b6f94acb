"""A corpus file by file, for clusters: an input of any storage becomes an output that has its name once it is whole.

Files have paths or URLs, such as ``s3://bucket/part-1.conllu.gz``, of the storages that fsspec knows. Who parses a file
leaves its output under another name; who distributes the files enters it into the manifest and gives it its name. So an
output is never seen unfinished, and a finished one is never parsed again.
"""

import hashlib
import os
import secrets
import shutil
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from treeparse.corpus.corpus_parsing import parse_parts
from treeparse.corpus.request import CorpusInput, CorpusPart, CorpusRequest, targets_of
from treeparse.corpus.sentences import CorpusSummary
from treeparse.data.files import check_rereadable, expand_paths
from treeparse.errors import TreeparseError
from treeparse.model import Ensemble, Parser
from treeparse.shipped import installed_version

UNFINISHED = ".unfinished-"  # in the names of outputs that are not entered in the manifest

Loader = Callable[[], Parser | Ensemble]


def is_url(path: str) -> bool:
    """Return whether a path is a URL."""
    return "://" in path


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file by its path or URL; its folder need not exist until it is written."""

    url: str

    def __str__(self) -> str:
        return self.url

    @property
    def size(self) -> int:
        """The number of bytes."""
        return int(self._system.size(self._path))

    def exists(self) -> bool:
        """Return whether the file exists."""
        return bool(self._system.isfile(self._path))

    @contextmanager
    def as_local(self, folder: Path) -> Iterator[Path]:
        """Yield the path of the file or, for a URL, of a copy in a folder; the copy is removed at the end."""
        if not is_url(self.url):
            yield Path(self.url)
            return
        copy = folder / self.url.rpartition("/")[2]
        self._system.get_file(self._path, str(copy))
        try:
            yield copy
        finally:
            copy.unlink()

    def receive(self, path: Path) -> None:
        """Move a local file to this place, which it may take some time to reach."""
        self._system.makedirs(self._system._parent(self._path), exist_ok=True)
        if is_url(self.url):
            self._system.put_file(str(path), self._path)
            path.unlink()
        else:
            shutil.move(path, self.url)

    def rename(self, target: "StoredFile") -> None:
        """Give the file its name at once; an object store copies it."""
        self._system.mv(self._path, target._path)

    def remove(self) -> None:
        """Remove the file, if it exists."""
        if self.exists():
            self._system.rm_file(self._path)

    def digest(self) -> str:
        """Return the SHA-256 digest of the bytes."""
        with self._system.open(self._path, "rb") as stream:
            return "sha256:" + hashlib.file_digest(stream, "sha256").hexdigest()

    @property
    def _system(self) -> Any:
        return _system_of(self.url)[0]

    @property
    def _path(self) -> str:
        return _system_of(self.url)[1]


def _system_of(url: str) -> tuple[Any, str]:
    """Return the file system of a URL and the path in it."""
    from fsspec.core import url_to_fs

    try:
        return url_to_fs(url)
    except (ImportError, ValueError) as error:  # a storage whose library is missing, or that nobody knows
        raise TreeparseError(f"{url} cannot be opened: {error}.") from error


def stored_files(patterns: Sequence[str | Path]) -> list[StoredFile]:
    """Return the files that paths, URLs and globs name; the files of a glob are sorted.

    Raises:
        TreeparseError: a pattern matches no file, or its storage is unknown.
    """
    files: list[StoredFile] = []
    for pattern in map(str, patterns):
        if not is_url(pattern):
            for path in expand_paths([pattern]):
                check_rereadable(path, "a cluster reads files by their names")
                files.append(StoredFile(os.path.abspath(path)))
            continue
        system, path = _system_of(pattern)
        matches = sorted(system.glob(path))
        if not matches:
            raise TreeparseError(f"no file matches {pattern!r}")
        files += [StoredFile(system.unstrip_protocol(match)) for match in matches]
    return files


def unfinished_files(folder: str, mark: str) -> list[StoredFile]:
    """Return the files below a folder whose names contain a mark."""
    system, path = _system_of(folder)
    if not system.exists(path):
        return []
    files = [file for file in system.find(path) if mark in file.rpartition("/")[2]]
    return [StoredFile(system.unstrip_protocol(file) if is_url(folder) else file) for file in files]


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
            inputs, outputs = Path(name, "in"), Path(name, "out")
            inputs.mkdir()
            outputs.mkdir()
            try:
                with task.source.as_local(inputs) as source:
                    return self._parsed(task, source, outputs, started)
            except (TreeparseError, OSError) as error:
                return FailedFile(task, str(error))

    def _parsed(self, task: FileTask, source: Path, folder: Path, started: float) -> FinishedFile:
        assert self._model is not None
        places = [place for place in (task.faults, task.target) if place is not None]
        paths = {place: folder / f"{number}-{Path(place.url).name}" for number, place in enumerate(places)}
        faults = None if task.faults is None else str(paths[task.faults])
        part = CorpusPart(str(paths[task.target]), faults, (CorpusInput(source, task.number, name=task.source.url),))
        request = replace(self._request, inputs=[source], output=f"{folder}/", faults=None)
        summary = parse_parts(self._model, request, [part])
        digests = {"input_sha256": StoredFile(str(source)).digest(), "output_sha256": StoredFile(part.target).digest()}
        renames = []
        for place, path in paths.items():
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
