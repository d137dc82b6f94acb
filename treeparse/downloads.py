"""Downloads of files from the Hugging Face hub."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from treeparse.errors import TreeparseError


def snapshot(
    name: str,
    revision: str | None,
    patterns: Sequence[str],
    is_whole: Callable[[Path], bool],
    error_of: Callable[[str], TreeparseError],
) -> Path:
    """Return the folder of a repository's files; a complete copy in the cache is used without network access.

    Args:
        name: ``organisation/name``.
        revision: a branch, tag or commit; None for the main branch.
        patterns: names of the files to download.
        is_whole: whether a folder has all files that are needed.
        error_of: makes the error from the hub's message if the download fails.
    """
    from huggingface_hub import snapshot_download  # slow to import

    options: dict[str, Any] = {"revision": revision or None, "allow_patterns": [*patterns]}
    try:
        cached = Path(snapshot_download(name, local_files_only=True, **options))
        if is_whole(cached):
            return cached
    except Exception:  # no copy in the cache, which the library reports by several errors
        pass
    try:
        return Path(snapshot_download(name, local_files_only=False, **options))
    except Exception as error:
        raise error_of(first_line(error)) from error


def first_line(error: Exception) -> str:
    """The first line of the hub's message."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")[:300]
