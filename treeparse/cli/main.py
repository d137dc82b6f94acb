"""The ``treeparse`` command: reads the arguments, calls one command, turns errors into sentences and exit codes.

Command modules are light: what is slow to import, they import inside their functions.
"""

import argparse
import io
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import version
from types import ModuleType

from treeparse.cli.common import INTERRUPTED, positive

COMMANDS = ("train", "export", "evaluate", "predict", "kbest", "sample", "check", "config")

DESCRIPTION = "Train dependency parsers, parse text and score parses, with exact distributions over trees."
EPILOG = """examples:
  treeparse config fast > fast.yaml
  treeparse train --config fast.yaml --output runs/english
  treeparse evaluate --model runs/english/model test.conllu
  treeparse predict runs/english/model text.conllu -o parsed.conllu
  treeparse kbest runs/english/model text.conllu -k 10 -o best.conllu
  treeparse sample runs/english/model text.conllu -k 10 --seed 1 -o samples.conllu
  treeparse COMMAND --help

exit codes:
  0 done    1 faults found (check)    2 bad usage or input    130 interrupted
  143 terminated"""

USAGE_ERROR = 2
BROKEN_PIPE = 128 + 13  # as the shell reports SIGPIPE


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; faults of usage or input become one sentence on standard error."""
    commands = _commands()
    parser = _build_parser(commands)
    args = _parse(parser, commands, argv)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a terminal that knows only ASCII is no reason to fail
    try:
        _set_threads(args.threads)
        code = commands[args.command].run(args)
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        return _fail("interrupted", INTERRUPTED)
    except BrokenPipeError:
        # The reader has gone. Python flushes standard output once more at exit: let that go nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except OSError as error:
        return _fail(_os_sentence(error), USAGE_ERROR)
    except ValueError as error:
        from treeparse.core import TreeparseError  # here, because it brings torch

        if not isinstance(error, TreeparseError):
            raise
        return _fail(str(error), USAGE_ERROR)


def _commands() -> dict[str, ModuleType]:
    return {name: import_module(f"treeparse.cli.{name}") for name in COMMANDS}


def _build_parser(commands: dict[str, ModuleType]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="treeparse",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"treeparse {version('treeparse')}")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, command in commands.items():
        subparser = subparsers.add_parser(
            name,
            help=command.HELP,
            description=command.HELP[0].upper() + command.HELP[1:] + ".",
            epilog=getattr(command, "EPILOG", None),
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        command.add_arguments(subparser)
        _add_common_arguments(subparser)
    return parser


def _add_common_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("common options")
    group.add_argument("--threads", type=positive, metavar="N", help="CPU threads (default: as torch chooses)")
    group.add_argument("--device", metavar="DEVICE", help="cpu, cuda, cuda:1, ... (default: the command's own choice)")
    group.add_argument("-q", "--quiet", action="store_true", help="no progress bars, no messages but errors")


def _parse(
    parser: argparse.ArgumentParser, commands: dict[str, ModuleType], argv: Sequence[str] | None
) -> argparse.Namespace:
    """Parse; what a command with ``TAKES_OVERRIDES`` does not know is kept for it, in order, in ``overrides``."""
    args, unknown = parser.parse_known_args(argv)
    if getattr(commands[args.command], "TAKES_OVERRIDES", False):
        args.overrides = unknown
    elif unknown:
        parser.error(f"unrecognized arguments: {' '.join(unknown)}; see treeparse {args.command} --help")
    return args


def _set_threads(threads: int | None) -> None:
    if threads is not None:
        import torch

        torch.set_num_threads(threads)


def _os_sentence(error: OSError) -> str:
    reason = error.strerror or str(error) or type(error).__name__
    return f"{error.filename}: {reason}." if error.filename is not None else f"{reason}."


def _fail(sentence: str, code: int) -> int:
    print(f"treeparse: error: {sentence}", file=sys.stderr)
    return code
