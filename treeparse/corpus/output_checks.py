"""Checks of outputs before any work: every output can be written, and none is an input."""

import errno
import os
import stat
from collections.abc import Iterable
from itertools import pairwise, product
from pathlib import Path

from treeparse.data.files import STANDARD_STREAM, expand_paths
from treeparse.data.outputs import check_output
from treeparse.errors import TreeparseError
from treeparse.model.folder import FILES, RUN_MODEL


def check_outputs(
    outputs: Iterable[str | None],
    *,
    inputs: Iterable[str | None] = (),
    others: Iterable[str | None] = (),
    makes_folders: bool = False,
    overwrite_input: bool = False,
) -> None:
    """Raise for outputs that cannot be written or are inputs.

    Args:
        outputs: files; None and ``-`` are skipped.
        inputs: files, globs and ``-``; None is skipped.
        others: further files, and folders of models or runs, which need not exist; None is skipped.
        makes_folders: whether missing folders of outputs will be made.
        overwrite_input: whether an output may replace an input.

    Raises:
        TreeparseError: an input is missing; no file can be written there; an output is an input or another output.
        OSError: the folder of an output may not be written to.
    """
    names = [(), *product(FILES), *product([RUN_MODEL], FILES)]  # of a file, and of the files in a model or a run
    sources = expand_paths([path for path in inputs if path is not None])
    sources += [Path(path, *name) for path in others if path is not None for name in names]
    files = [path for path in outputs if path is not None and path != STANDARD_STREAM]
    for path in files:
        if makes_folders and not os.path.isdir(folder := os.path.dirname(path)):
            check_new_folder(folder)
        else:
            check_output(path)
    known = {} if overwrite_input else {_identity(path): path for path in sources}
    for path in files:
        if (identity := _identity(path)) is not None and identity in known:
            raise TreeparseError(
                f"The output {path} would replace the input {known[identity]}: name another file, or allow "
                "it with --overwrite-input."
            )
    files = [path for path in files if os.path.isfile(path) or not os.path.exists(path)]  # not pipes and devices
    for one, other in pairwise(sorted(files, key=os.path.realpath)):
        if os.path.realpath(one) == os.path.realpath(other):
            raise TreeparseError(f"The outputs {one} and {other} are one file: name two.")


def check_new_folder(path: str | Path) -> None:
    """Raise if a folder does not exist and cannot be made with its parents."""
    above = next(folder for folder in (Path(path).absolute(), *Path(path).absolute().parents) if folder.exists())
    if not above.is_dir():
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(above))
    if not os.access(above, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(above))


def _identity(path: str | Path) -> tuple[int, int] | None:
    """Return the device and inode of a regular file, the same under all its names; None for anything else."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return (status.st_dev, status.st_ino) if stat.S_ISREG(status.st_mode) else None
