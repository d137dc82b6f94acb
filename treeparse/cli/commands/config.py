"""``treeparse config``: print a configuration that ships with treeparse."""

import argparse
import sys
from pathlib import Path

from treeparse.cli.configs import shipped_config, shipped_configs

NAME = "config"
HELP = "print a shipped configuration, or list them"
EPILOG = """examples:
  treeparse config                    list the shipped configurations
  treeparse config fast > my.yaml     take one as the start of your own"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("name", nargs="?", metavar="NAME", help="a configuration's name; none lists them all")


def run(args: argparse.Namespace) -> int:
    """Print one configuration as it stands in its file, or every name with its file's first comment."""
    configs = shipped_configs()
    if args.name is None:
        width = max(map(len, configs), default=0)
        for name, path in configs.items():
            print(f"{name:<{width}}  {_summary(path)}".rstrip())
    else:
        sys.stdout.write(shipped_config(args.name).read_text(encoding="utf-8"))
    return 0


def _summary(path: Path) -> str:
    first = path.read_text(encoding="utf-8").partition("\n")[0]
    return first.removeprefix("#").strip() if first.startswith("#") else ""
