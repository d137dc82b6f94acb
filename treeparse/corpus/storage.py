"""Files by their paths or by URLs, such as ``s3://bucket/part-1.conllu.gz``, of the storages that fsspec knows."""

import hashlib
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from treeparse.data.files import STANDARD_STREAM, expand_paths
from treeparse.errors import TreeparseError


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
        if pattern == STANDARD_STREAM:
            raise TreeparseError("Standard input is no file that others can read: name files.")
        if not is_url(pattern):
            files += [StoredFile(os.path.abspath(path)) for path in expand_paths([pattern])]
            continue
        system, path = _system_of(pattern)
        found = sorted(system.glob(path))
        if not found:
            raise TreeparseError(f"no file matches {pattern!r}")
        files += [StoredFile(system.unstrip_protocol(each)) for each in found]
    return files


def unfinished_files(folder: str, mark: str) -> list[StoredFile]:
    """Return the files below a folder whose names contain a mark."""
    system, path = _system_of(folder)
    if not system.exists(path):
        return []
    found = [each for each in system.find(path) if mark in each.rpartition("/")[2]]
    return [StoredFile(system.unstrip_protocol(each) if is_url(folder) else each) for each in found]
