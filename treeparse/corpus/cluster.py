"""A corpus parsed by a Ray cluster: an actor holds the model and parses whole files, one at a time.

Actors that die with their nodes are replaced, and their files are parsed by others.
"""

import json
import os
import time
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from treeparse.corpus.cluster_files import (
    UNFINISHED,
    FailedFile,
    FileParser,
    FileTask,
    FinishedFile,
    Loader,
    file_tasks,
    unfinished_files,
)
from treeparse.corpus.request import CorpusRequest
from treeparse.corpus.sentences import CorpusObserver, CorpusSummary
from treeparse.errors import DataError, TreeparseError

MOST_DEATHS = 5  # of actors, by the same file
POLL = 5.0  # seconds, after which it is asked again how many actors the cluster can have
SHOWN = 5  # problems of files in the last error


def add_to_manifest(path: Path, line: Mapping[str, Any]) -> None:
    """Append a line to a manifest, which is on the disk before the output has its name.

    An output without a line is therefore one that this program did not write. A line may be followed by another one for
    the same output, where the program was killed between the two steps: the last one counts.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as stream:
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


@dataclass(frozen=True, slots=True)
class RayCluster:
    """A Ray cluster, and what an actor takes of it.

    Attributes:
        address: of the cluster; ``auto`` is the one that this machine belongs to, ``local`` is started for the work.
        actors: how many parse at once; None has as many as fit.
        threads: of torch, and CPUs, of an actor.
        gpus: of an actor.
    """

    address: str = "auto"
    actors: int | None = None
    threads: int = 1
    gpus: float = 0


def parse_on_ray(
    load: Loader,
    request: CorpusRequest,
    cluster: RayCluster,
    *,
    manifest: str | Path,
    models: Mapping[str, str],
    observer: CorpusObserver | None = None,
) -> CorpusSummary:
    """Parse each file of a request into a file of its own on a cluster; outputs that exist stay as they are.

    Trees are those of `treeparse.corpus.corpus_parsing`; the last digits of probabilities depend on the sentences that
    are parsed at once, here those of a file. If some files are faulty, the others are parsed before the error is
    raised. One program at a time may write a folder.

    Args:
        load: returns the model on each node; it must pickle.
        request: paths must mean the same files on all nodes, as URLs do; the output is a folder, or a URL ending in /.
        cluster: the cluster.
        manifest: a file that gets a line for each output, see `treeparse.corpus.cluster`.
        models: names of the model with digests, for the manifest.
        observer: receives reports, of files.

    Raises:
        TreeparseError: inputs are faulty, or actors die again and again of a file; or Ray is not installed, or there is
            no cluster at the address.
    """
    summary, observer = CorpusSummary(), observer or CorpusObserver()
    started, tasks = time.perf_counter(), file_tasks(request)
    waiting = [task for task in tasks if not task.target.exists()]
    summary.existing_outputs = len(tasks) - len(waiting)
    observer.start(sum(task.source.size for task in waiting))
    failures: list[FailedFile] = []
    with _connected(cluster) as ray:
        actors = _Actors(ray, cluster, (load, request, dict(models), cluster.threads))
        try:
            with closing(actors.results(waiting)) as results:
                for result in results:
                    if isinstance(result, FailedFile):
                        failures.append(result)
                        continue
                    add_to_manifest(Path(manifest), result.line)
                    result.publish()
                    summary.merge(result.summary)
                    observer.advance(result.summary.sentences, result.summary.words, result.task.source.size)
                    observer.start_output(summary.outputs, len(waiting))
        finally:
            for folder in filter(None, (request.output, request.faults)):
                for file in unfinished_files(str(folder), UNFINISHED):  # of actors that died
                    file.remove()
    summary.seconds = time.perf_counter() - started
    if failures:
        observer.fail(summary.outputs, len(waiting))
        problems = "; ".join(failure.problem for failure in failures[:SHOWN])
        raise TreeparseError(f"{len(failures)} of {len(waiting)} files have no output: {problems}")
    return summary


class _Actors:
    """Actors that hold the model, as many as the cluster has room for."""

    def __init__(self, ray: Any, cluster: RayCluster, arguments: tuple[Any, ...]) -> None:
        self._ray, self._cluster, self._arguments = ray, cluster, arguments
        options = {"num_cpus": cluster.threads, "num_gpus": cluster.gpus, "scheduling_strategy": "SPREAD"}
        self._kind = ray.remote(FileParser).options(**options)
        self._running: dict[Any, _Call] = {}
        self._idle: list[Any] = []

    def results(self, tasks: Iterable[FileTask]) -> Generator[FinishedFile | FailedFile]:
        """Yield what becomes of each task, in any order."""
        waiting = deque((task, 0) for task in tasks)
        try:
            while waiting or any(call.task is not None for call in self._running.values()):
                self._start()
                while self._idle and waiting:
                    actor, (task, deaths) = self._idle.pop(), waiting.popleft()
                    self._running[actor.parse.remote(task)] = _Call(actor, task, deaths)
                ready, _ = self._ray.wait([*self._running], timeout=POLL)
                for reference in ready:
                    call = self._running.pop(reference)
                    try:
                        result = self._ray.get(reference)
                    except self._ray.exceptions.RayActorError as error:  # the actor has died or cannot be reached
                        if call.task is not None and call.deaths + 1 < MOST_DEATHS:
                            waiting.appendleft((call.task, call.deaths + 1))
                        elif call.task is not None:
                            cause = " ".join(str(error).split())[:300]
                            problem = f"{MOST_DEATHS} processes died of {call.task.source}: {cause}"
                            yield FailedFile(call.task, problem)
                        continue
                    self._idle.append(call.actor)
                    if call.task is not None:
                        yield result
                    elif result is not None:
                        raise TreeparseError(result)
        finally:
            for actor in [*self._idle, *(call.actor for call in self._running.values())]:
                self._ray.kill(actor)

    def _start(self) -> None:
        """Start actors that load the model, where there is room for more."""
        for _ in range(self._room() - len(self._idle) - len(self._running)):
            actor = self._kind.remote(*self._arguments)
            self._running[actor.load.remote()] = _Call(actor, None, 0)

    def _room(self) -> int:
        """Return how many actors there should be: at least one, which waits until the cluster has room."""
        if self._cluster.actors is not None:
            return self._cluster.actors
        resources, cluster = self._ray.cluster_resources(), self._cluster
        room = resources.get("CPU", 0) / cluster.threads
        return max(1, int(min(room, resources.get("GPU", 0) / cluster.gpus) if cluster.gpus else room))


class _Call(NamedTuple):
    """A call of an actor: to parse a task that so many actors have died of before, or to load the model."""

    actor: Any
    task: FileTask | None
    deaths: int


@contextmanager
def _connected(cluster: RayCluster) -> Iterator[Any]:
    """Yield the library, connected to the cluster; a connection that was there before stays."""
    try:
        import ray  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise TreeparseError("A cluster needs Ray, which is not installed: pip install treeparse[ray].") from error
    if ray.is_initialized():
        yield ray
        return
    local: dict[str, Any] = {"include_dashboard": False} if cluster.address == "local" else {}
    try:
        ray.init(cluster.address, log_to_driver=False, logging_level="ERROR", **local)
    except (ConnectionError, ValueError) as error:
        problem = f"There is no Ray cluster at {cluster.address!r} ({error})"
        raise TreeparseError(f"{problem}: start one by ray start --head, or give --ray local.") from error
    try:
        yield ray
    finally:
        ray.shutdown()
