"""``treeparse train``: train a parser with the settings of a config file, or resume a run."""

import argparse
import ctypes
import sys
from pathlib import Path

from treeparse import terminal
from treeparse.cli.common import modules_of_current_folder
from treeparse.cli.training import how_to_resume, read_config, stoppable
from treeparse.errors import TreeparseError
from treeparse.shipped import file_or_shipped, shipped_file
from treeparse.training.reading import describe_settings
from treeparse.training.run import train

TAKES_OVERRIDES = True
EPILOG = """Every key of the config can also be a dotted option, which overrides the file.

examples:
  treeparse train --output runs/turkish --data.train tr-train.conllu --data.dev tr-dev.conllu
  treeparse train --output runs/latin --data.train la-train.conllu --data.dev_share 0.1
  treeparse train --config fast --output runs/both --data.train tr-train.conllu more.conllu --data.dev tr-dev.conllu
  treeparse train --output runs/both --data.treebanks.ewt.train ewt.conllu --data.treebanks.gum.train gum.conllu
  treeparse train --config my.yaml --output runs/english
  treeparse train --config my.yaml --output runs/short --optimization.epochs 3 --model.encoder.layers 1
  treeparse train --config my.yaml --output runs/own --objective mymodule.MyLoss
  treeparse train --config my.yaml --output runs/own --model.encoder mymodule.MyEncoderConfig
  treeparse train --resume runs/english
  treeparse train --help-config
  treeparse train --config fast --output runs/mine --print_config > my.yaml

mymodule.MyLoss and mymodule.MyEncoderConfig are your own classes, in an installed module or one in the current folder.
Other commands need --import mymodule to load a model with such an encoder. A config that names a module runs its code:
read a stranger's config, and the config.yaml of a stranger's run, before you train with it. The run's folder holds
model/ (the parser), metrics.csv, tensorboard/, config.yaml and checkpoints/."""
TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3  # parameters of glibc's mallopt
KEPT = 2**29  # bytes that may be free at the end of the heap
LARGEST = 2**25  # bytes of an array on the heap: the most that mallopt takes


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument(
        "--config",
        metavar="FILE",
        help="YAML file of settings (see --help-config), or a name from treeparse config (default: default)",
    )
    parser.add_argument("--output", metavar="DIR", help="folder of the run, instead of the config's")
    parser.add_argument(
        "--resume",
        metavar="DIR",
        help="continue the run in DIR after its last measurement, or from its start; its patience may be raised, and "
        "with a constant schedule its epochs and steps",
    )
    parser.add_argument("--init-from", metavar="DIR", help="start from the weights and vocabularies of a model")
    parser.add_argument("--help-config", action="store_true", help="list every key with its type and default, and exit")


@modules_of_current_folder()
def run(args: argparse.Namespace) -> int:
    """Train; if a signal stops the training, a message says how to resume."""
    if args.help_config:
        terminal.write(*describe_settings().splitlines())
        return 0

    config = None

    def work() -> None:
        nonlocal config
        if args.resume is not None and args.output is not None and Path(args.resume) != Path(args.output):
            raise TreeparseError("--resume continues in the folder of the run itself: leave out --output.")
        is_of_run, folder = args.resume is not None and args.config is None, args.resume or args.output
        path = _config_path(args)
        config = read_config(path, args, is_of_run=is_of_run, output=folder, init_from=args.init_from)
        keep_freed_memory()
        train(config, resume=args.resume is not None, quiet=args.quiet)

    return stoppable(work, lambda: how_to_resume(config))


def _config_path(args: argparse.Namespace) -> Path:
    """Return the config file, for a run to resume the run's own."""
    if args.config is not None:
        return file_or_shipped(args.config)
    if args.resume is None:
        return shipped_file("default")
    path = Path(args.resume) / "config.yaml"
    if not path.is_file():
        raise TreeparseError(f"There is no run to resume in {args.resume} (no config.yaml): give --config FILE too.")
    return path


def keep_freed_memory() -> bool:
    """Let glibc keep the memory of freed arrays for the next ones; return whether it does. Elsewhere do nothing.

    Otherwise glibc returns the memory of large arrays to the system, and the system clears it before it lends it again:
    this took a twentieth of a training step, and a tenth where trees score parts of three words.
    """
    if not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # other C libraries have none, or one that does nothing
    return mallopt is not None and mallopt(MMAP_THRESHOLD, LARGEST) == mallopt(TRIM_THRESHOLD, KEPT) == 1
