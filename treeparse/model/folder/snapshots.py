"""Files of a repository of the Hugging Face hub, in that library's cache on this machine."""

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
    """The folder of a repository's files: a whole copy that is there is taken without a look at the network.

    Args:
        name: ``organisation/name``.
        revision: a branch, tag or commit; none for the main branch.
        patterns: which files are wanted; no other is fetched.
        is_whole: whether the folder of a copy holds all that is needed.
        error_of: makes the error of what is wrong with a repository that cannot be had.
    """
    from huggingface_hub import snapshot_download  # slow to import

    options: dict[str, Any] = {"revision": revision or None, "allow_patterns": [*patterns]}
    try:
        found = Path(snapshot_download(name, local_files_only=True, **options))
        if is_whole(found):
            return found
    except Exception:  # nothing of it is there, for which there are many kinds of error
        pass
    try:
        return Path(snapshot_download(name, local_files_only=False, **options))
    except Exception as error:
        raise error_of(first_line(error)) from error


def first_line(error: Exception) -> str:
    """What the hub says is wrong, without what it adds on further lines."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")[:300]
