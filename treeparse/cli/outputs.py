"""The outputs of a command, checked before its work: they can be written, and none is one of its own inputs."""

import argparse
import errno
import os
import stat
from collections.abc import Iterable
from itertools import pairwise, product
from pathlib import Path

from treeparse.errors import TreeparseError
from treeparse.model.folders import FILES, RUN_MODEL

STANDARD_STREAM = "-"


def add_overwrite_argument(parser: argparse.ArgumentParser) -> None:
    """Declare ``--overwrite-input``."""
    parser.add_argument(
        "--overwrite-input", action="store_true", help="let an output take the place of an input, once it is whole"
    )


def check_outputs(
    args: argparse.Namespace,
    outputs: Iterable[str | None],
    *,
    inputs: Iterable[str | None] = (),
    others: Iterable[str | None] = (),
    makes_folders: bool = False,
) -> None:
    """Raise for outputs that cannot be written or are inputs, and remove what killed processes left of the others.

    Args:
        args: the command's arguments, ``--overwrite-input`` among them.
        outputs: files; None and ``-`` count for nothing.
        inputs: files, globs and ``-``, as the command was given them.
        others: what else is read: files, and folders of models or of runs; what does not exist counts for nothing.
        makes_folders: whether the command makes the outputs' folders where there are none.

    Raises:
        TreeparseError: an input is missing; no file can be written there; an output is an input or another output.
        OSError: the folder of an output may not be written to.
    """
    from treeparse.data.files import expand_paths
    from treeparse.data.leftovers import remove_leftovers

    sources = [*expand_paths([path for path in inputs if path is not None]), *_files_of(filter(None, others))]
    files = [path for path in outputs if path is not None and path != STANDARD_STREAM]
    for path in files:
        _check_output(path, makes_folders=makes_folders)
    if not args.overwrite_input:
        _check_none_is_input(files, sources)
    files = [path for path in files if os.path.isfile(path) or not os.path.exists(path)]  # not pipes and devices
    for one, other in pairwise(sorted(files, key=os.path.realpath)):
        if os.path.realpath(one) == os.path.realpath(other):
            raise TreeparseError(f"The outputs {one} and {other} are one file: name two.")
    remove_leftovers(files)


def check_new_folder(path: str | Path) -> None:
    """Raise where a folder neither exists nor can be made, with those above it."""
    above = next(folder for folder in (Path(path).absolute(), *Path(path).absolute().parents) if folder.exists())
    if not above.is_dir():
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(above))
    if not os.access(above, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(above))


def check_model_folder(path: str, kind: str, *others: str) -> None:
    """Raise where no model can be written to a folder, or where that holds something else.

    Args:
        path: the folder.
        kind: of model, as messages call it.
        others: names that the folder may hold beside those of a model.
    """
    from treeparse.data.leftovers import remove_all_leftovers
    from treeparse.data.outputs import check_output_folder

    check_output_folder(path)
    remove_all_leftovers(Path(path))
    strange = sorted(set(os.listdir(path)).difference(FILES, others)) if os.path.isdir(path) else []
    if strange:
        raise TreeparseError(f"{path} holds other things than a {kind}, {strange[0]} is one: name a new folder.")


def _check_output(path: str, *, makes_folders: bool) -> None:
    from treeparse.data.outputs import check_output

    folder = os.path.dirname(path)
    if makes_folders and not os.path.isdir(folder):
        check_new_folder(folder)
    else:
        check_output(path)


def _check_none_is_input(outputs: Iterable[str], inputs: Iterable[Path]) -> None:
    known = {_identity(path): path for path in inputs}
    for output in outputs:
        if (identity := _identity(output)) is not None and identity in known:
            raise TreeparseError(
                f"The output {output} would take the place of the input {known[identity]}: name another file, or let "
                "it by --overwrite-input."
            )


def _identity(path: str | Path) -> tuple[int, int] | None:
    """What tells a regular file from others, whatever its names; None for anything else."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return (found.st_dev, found.st_ino) if stat.S_ISREG(found.st_mode) else None


def _files_of(paths: Iterable[str]) -> list[Path]:
    """Files, or those of the models in folders, of which runs have one below."""
    names = [(), *product(FILES), *product([RUN_MODEL], FILES)]
    return [Path(path, *name) for path in paths for name in names]
