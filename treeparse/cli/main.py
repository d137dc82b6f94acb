"""The ``treeparse`` command: reads the arguments, runs one command, turns errors into sentences and exit codes.

A command's module is imported once the command is chosen, because torch and other libraries take seconds.
"""

import argparse
import io
import logging
import os
import re
import signal
import sys
import threading
import warnings
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from importlib import import_module
from types import ModuleType
from typing import Any

from tqdm import tqdm

from treeparse import terminal
from treeparse.cli.common import whole
from treeparse.errors import TreeparseError, did_you_mean, naming_missing_packages
from treeparse.progress import Console
from treeparse.shipped import installed_version

COMMANDS = {  # what each command does
    "train": "train a parser from CoNLL-U",
    "self-train": "train in rounds on few trees and much text without trees",
    "export": "write the parser of a run's best epoch so far",
    "calibrate": "fit a model's temperatures, so that its probabilities are calibrated",
    "evaluate": "score parses, or a model's parses, against gold trees",
    "predict": "parse CoNLL-U or text with a trained model",
    "kbest": "list the K best trees of the sentences of CoNLL-U or text",
    "sample": "draw random trees of the sentences of CoNLL-U or text",
    "rerank": "choose the best parse of each list by a reranker or the expected LAS",
    "crossparse": "train parsers on all folds of a treebank but one, and list parses of that one",
    "train-reranker": "train a reranker from lists and gold trees",
    "rank": "order the sentences of a corpus for annotation, the most uncertain first",
    "suspects": "list the arcs of a treebank that a model finds improbable",
    "check": "report the faults of CoNLL-U files, and figures about their trees",
    "config": "print a shipped configuration, rules or constraints, or list them all",
    "constraints": "extract constraints from trees, or report a model's distance from constraints",
    "weights": "print the strongest features by which a linear model scores the arcs of a sentence",
    "render": "draw trees, lists of trees or a system's errors as SVG or an HTML page",
    "serve": "parse over HTTP, with the interface of UDPipe's REST service",
    "card": "write the card of a run's model, with its scores on test files",
    "push": "put a model on the Hugging Face hub",
    "warm": "compile all kernels now, so that no later command waits for them",
}

DESCRIPTION = "Train dependency parsers, parse text and score parses, with exact distributions over trees."
EPILOG = """examples:
  treeparse config fast > fast.yaml
  treeparse train --config fast.yaml --output runs/english --data.train train.conllu --data.dev dev.conllu
  treeparse evaluate --model runs/english/model test.conllu
  treeparse predict runs/english/model text.conllu -o parsed.conllu
  treeparse kbest runs/english/model text.conllu -k 10 -o best.conllu
  treeparse sample runs/english/model text.conllu -k 10 --seed 1 -o samples.conllu
  treeparse render gold.conllu parsed.conllu -o errors.html
  treeparse COMMAND --help

exit codes:
  0 done    1 faults found (check)    2 bad usage or input
  130, 143, 129 interrupted, terminated, hung up (SIGINT, SIGTERM, SIGHUP); nothing is left half-written"""

USAGE_ERROR = 2
LESS_MEMORY = "memory ran out: take smaller batches (--batch-words; in training --data.batch_words) or shorter lists."
INTERRUPTED, BROKEN_PIPE = 128 + 2, 128 + 13  # as the shell reports SIGINT and SIGPIPE
SIGNALS = {"SIGTERM": "terminated", "SIGHUP": "hung up"}  # Windows has no SIGHUP
PATIENCE = 1.0  # seconds after which a signal whose exception was lost is sent again


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; errors of usage or input become one sentence on standard error."""
    try:
        with signals_exit(), _process_restored():
            _wait_passively()
            return _run(sys.argv[1:] if argv is None else argv)
    except KeyboardInterrupt:
        return _fail("interrupted", INTERRUPTED)
    except Stopped as stopped:
        return _fail(stopped.word, stopped.exit_code)
    except BrokenPipeError:
        # The reader has gone. Python flushes standard output once more at exit: discard that output.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except OSError as error:
        reason = error.strerror or str(error) or type(error).__name__
        return _fail(f"{reason}." if error.filename is None else f"{error.filename}: {reason}.", USAGE_ERROR)
    except (MemoryError, RuntimeError) as error:
        if not _is_out_of_memory(error):
            raise
        return _fail(LESS_MEMORY, USAGE_ERROR)
    except TreeparseError as error:
        return _fail(str(error), USAGE_ERROR)


def _run(arguments: Sequence[str]) -> int:
    name = next((word for word in arguments if not word.startswith("-")), "")
    what, is_quiet = f"treeparse {name}", not {"-q", "--quiet"}.isdisjoint(arguments)
    with naming_missing_packages(what), Console(quiet=is_quiet).during("loading PyTorch"):
        commands = _commands([name])
    args = _parse(_build_parser(commands), commands, arguments)
    in_torch = _torch_restored(args.threads) if "torch" in sys.modules or args.threads else nullcontext()
    with in_torch, _messages_of_kernels(quiet=args.quiet), naming_missing_packages(what):
        code = commands[args.command].run(args)
    sys.stdout.flush()
    return code


def _commands(names: Collection[str]) -> dict[str, ModuleType]:
    """Import the modules of the commands of these names."""
    modules = {name: f"treeparse.cli.commands.{name.replace('-', '_')}" for name in COMMANDS if name in names}
    return {name: import_module(module) for name, module in modules.items()}


def _build_parser(commands: dict[str, ModuleType]) -> argparse.ArgumentParser:
    """Return the parser of all commands, with the arguments of these."""
    style: dict[str, Any] = {"formatter_class": argparse.RawDescriptionHelpFormatter, "allow_abbrev": False}
    parser = argparse.ArgumentParser(prog="treeparse", description=DESCRIPTION, epilog=EPILOG, **style)
    parser.add_argument("--version", action="version", version=f"treeparse {installed_version()}")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, help in COMMANDS.items():
        subparser = subparsers.add_parser(name, help=help, description=f"{help[0].upper()}{help[1:]}.", **style)
        if name not in commands:
            continue
        commands[name].add_arguments(subparser)
        group = subparser.add_argument_group("common options")
        group.add_argument(
            "--threads",
            type=whole(1, 1024),
            metavar="N",
            help="CPU threads (default: as torch chooses); several processes at once are fastest with --threads 1 each",
        )
        device = "cpu, cuda, cuda:1, ... (default: the command's own choice)"
        group.add_argument("--device", metavar="DEVICE", help=device)
        group.add_argument("-q", "--quiet", action="store_true", help="no progress bars, no messages but errors")
        subparser.set_defaults(known_options=re.findall(r"--[a-z-]+", subparser.format_help()))
        subparser.epilog = getattr(commands[name], "EPILOG", None)
    return parser


def _parse(
    parser: argparse.ArgumentParser, commands: dict[str, ModuleType], arguments: Sequence[str]
) -> argparse.Namespace:
    """Parse arguments; ``overrides`` gets the unknown arguments of a command with ``TAKES_OVERRIDES``, in order."""
    if arguments and not arguments[0].startswith("-") and arguments[0] not in COMMANDS:
        problem = f"Unknown command {arguments[0]!r}. Commands: {', '.join(COMMANDS)}"
        parser.error(terminal.message(problem + (did_you_mean(arguments[0], COMMANDS) or ".")))
    args, unknown = parser.parse_known_args(arguments)
    command = commands[args.command]
    if getattr(command, "TAKES_OVERRIDES", False):
        args.overrides = unknown
    elif unknown:
        problem = f"unrecognized arguments: {' '.join(unknown)}; see treeparse {args.command} --help"
        parser.error(terminal.message(problem + did_you_mean(unknown[0].partition("=")[0], args.known_options)))
    return args


@contextmanager
def _process_restored() -> Iterator[None]:
    """Restore the environment, warning filters, loggers' levels and standard output, for a caller in this process."""
    environment, levels = dict(os.environ), {log: log.level for log in [logging.root, *_loggers()]}
    stdout, errors = sys.stdout, getattr(sys.stdout, "errors", None)
    if isinstance(stdout, io.TextIOWrapper):
        stdout.reconfigure(errors="backslashreplace")  # so that an ASCII terminal is no error
    try:
        with warnings.catch_warnings():
            yield
    finally:
        for name in os.environ.keys() - environment.keys():
            del os.environ[name]
        os.environ.update(environment)
        for log, level in levels.items():
            log.setLevel(level)
        if isinstance(stdout, io.TextIOWrapper):
            with suppress(OSError, ValueError):  # its reader may have gone, or it is closed
                stdout.reconfigure(errors=errors)


def _loggers() -> list[logging.Logger]:
    return [log for log in list(logging.root.manager.loggerDict.values()) if isinstance(log, logging.Logger)]


@contextmanager
def _torch_restored(threads: int | None) -> Iterator[None]:
    """Set torch's threads, unless None; afterwards restore them and torch's random numbers on the CPU."""
    import torch

    before = torch.get_num_threads()
    with torch.random.fork_rng(devices=[]):
        if threads is not None:
            torch.set_num_threads(threads)
        try:
            yield
        finally:
            torch.set_num_threads(before)


def _wait_passively() -> None:
    """Let torch's threads sleep, not spin, while they wait for each other; torch reads the variable when it loads.

    Otherwise spinning threads on a busy core take time from the threads that they wait for.
    """
    if "torch" not in sys.modules:
        os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


class _OnStandardError(logging.Handler):
    """Writes messages as lines on standard error, above a progress bar."""

    def emit(self, record: logging.LogRecord) -> None:
        tqdm.write(terminal.message(f"treeparse: {record.getMessage()}"), file=sys.stderr)


@contextmanager
def _messages_of_kernels(*, quiet: bool) -> Iterator[None]:
    """Report on standard error which kernels are compiled, because the user has to wait for them."""
    log, handler = logging.getLogger("treeparse.kernels"), _OnStandardError(logging.ERROR if quiet else logging.INFO)
    level = log.level
    log.setLevel(logging.INFO)
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(level)


def _is_out_of_memory(error: BaseException) -> bool:
    """Return whether numpy, torch's CPU allocator or a GPU's allocator ran out of memory."""
    return isinstance(error, MemoryError) or ("memory" in str(error) and "allocate" in str(error))


def _fail(sentence: str, code: int) -> int:
    with suppress(OSError):  # the terminal may be gone
        terminal.warn(f"treeparse: error: {sentence}")
    return code


class Stopped(SystemExit):
    """The exception for a signal to end, which lets files be closed and incomplete files be removed.

    Attributes:
        exit_code: the exit code of a process that the signal ended, 128 + its number.
        word: the event in one word, for messages.
    """

    def __init__(self, number: int) -> None:
        self.exit_code: int = 128 + number
        super().__init__(self.exit_code)
        self.word: str = SIGNALS[signal.Signals(number).name]


@contextmanager
def signals_exit() -> Iterator[None]:
    """Raise `Stopped` in the block at the first SIGTERM or SIGHUP; signals that the process ignores stay ignored.

    An error after the signal, such as the error of a worker process that got it too, also becomes `Stopped`. An
    exception that Python drops, because the signal came in a finalizer or a callback, is raised again.
    """
    if threading.current_thread() is not threading.main_thread():  # only the main thread may set handlers
        yield
        return
    received: list[int] = []
    is_over, repeating = threading.Event(), list[threading.Thread]()

    def end(number: int, *_: object) -> None:
        received.append(number)
        if len(received) == 1:
            repeating.append(threading.Thread(target=_repeat, args=(number, is_over)))
            repeating[0].start()
        if not _is_stopping():  # a closing terminal sends SIGHUP twice: the second signal must not stop the cleaning
            raise Stopped(received[0])

    numbers = [getattr(signal, name) for name in SIGNALS if hasattr(signal, name)]
    handlers = {number: handler for number in numbers if (handler := signal.getsignal(number)) is not signal.SIG_IGN}
    try:
        for number in handlers:
            signal.signal(number, end)
        yield
    except Exception as error:
        if received:
            raise Stopped(received[0]) from error
        raise
    finally:
        is_over.set()
        for thread in repeating:  # because without these handlers a signal would kill the process
            thread.join()
        for number, handler in handlers.items():
            signal.signal(number, handler or signal.SIG_DFL)


def _is_stopping() -> bool:
    """Whether the code that runs in this thread cleans up after `Stopped`."""
    error = sys.exc_info()[1]
    while error is not None and not isinstance(error, Stopped):
        error = error.__context__
    return error is not None


def _repeat(number: int, is_over: threading.Event) -> None:
    """Send a signal to the main thread again and again until the event."""
    main = threading.main_thread().ident
    while not is_over.wait(PATIENCE):
        if main is not None and hasattr(signal, "pthread_kill"):
            signal.pthread_kill(main, number)
