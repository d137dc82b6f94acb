"""What the commands that train share: reading the settings, and the message that says how to resume after a signal."""

import argparse
import os
import shlex
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from treeparse import terminal
from treeparse.cli.main import INTERRUPTED, Stopped, signals_exit
from treeparse.corpus.request import check_new_folder
from treeparse.data.files import is_stream
from treeparse.training.reading import check_inputs, load_config
from treeparse.training.run_directory import RunDirectory
from treeparse.training.train_config import TrainConfig
from treeparse.training.treebanks import data_files


def add_config_arguments(parser: argparse.ArgumentParser, *, default: str) -> None:
    """Declare ``--config`` and ``--output`` of a command that trains several parsers."""
    parser.add_argument(
        "--config",
        default=default,
        metavar="FILE",
        help=f"a YAML file of settings, or a name from treeparse config (default: {default})",
    )
    parser.add_argument("--output", metavar="DIR", help="the folder, instead of the config's")


def read_config(
    path: Path, args: argparse.Namespace, *, is_of_run: bool = False, **settings: str | None
) -> TrainConfig:
    """Read a config with its dotted options; raise for an impossible file or folder.

    Args:
        path: the file.
        args: the arguments of the command, with ``overrides``.
        is_of_run: whether the file is the config of a run.
        settings: further settings, by key; those that are None are left out.
    """
    if args.device is not None:
        kind, _, index = args.device.partition(":")
        settings |= {"trainer.accelerator": kind, "trainer.devices": f"[{index}]" if index else None}
    options = [f"--{key}={value}" for key, value in settings.items() if value is not None]
    config = load_config(path, [*options, *args.overrides], of_run=is_of_run)
    check_new_folder(config.output)
    check_inputs(config)
    return config


def is_further_process() -> bool:
    """Return whether another process, which speaks for all, started this one to train together with it."""
    return os.environ.get("LOCAL_RANK", "0") != "0"


def stoppable(work: Callable[[], object], remedy: Callable[[], str] = lambda: "the same command resumes") -> int:
    """Do work that can be resumed, and return the exit code; if a signal stops it, a message says how to resume."""
    try:
        with signals_exit():
            work()
    except KeyboardInterrupt:
        word, code = "interrupted", INTERRUPTED
    except Stopped as stopped:
        word, code = stopped.word, stopped.exit_code
    else:
        return 0
    if is_further_process():
        return code
    with suppress(OSError):  # the terminal may be gone
        terminal.warn(f"{word}; {remedy()}")
    return code


def how_to_resume(config: TrainConfig | None) -> str:
    """Return how to resume a run after a stop; ``config`` has its settings, None if they are unknown."""
    if config is None or not (run := RunDirectory(config.output)).config.exists():
        return "no run had begun: give the same command again"
    path = shlex.quote(str(run.path))
    if any(map(is_stream, data_files(config.data))):
        return f"this run read a pipe and cannot be resumed: remove {path} to train again"
    if not run.state.exists():
        return f"no epoch was complete; start again with: treeparse train --resume {path}"
    return f"go on with: treeparse train --resume {path} (the parser so far: treeparse export {path})"
