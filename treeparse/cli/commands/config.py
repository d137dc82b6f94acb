"""``treeparse config``: print a file that ships with treeparse: a configuration, rules or constraints."""

import argparse
from pathlib import Path

from treeparse import terminal
from treeparse.shipped import every_name, shipped_file

EPILOG = """examples:
  treeparse config                        list all shipped configurations, rules and constraints
  treeparse config fast > my.yaml         start your own configuration from fast
  treeparse config rules/ud > my.yaml     start from the rules of --rules ud
  treeparse config constraints/ud         print the constraints of --config ge"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("name", nargs="?", metavar="NAME", help="such as fast or rules/ud; without it, list all names")


def run(args: argparse.Namespace) -> int:
    """Print one file, or every name with the first comment of its file."""
    if args.name is None:
        names = every_name()
        width = max(map(len, names), default=0)
        for name in names:
            terminal.write(f"{name:<{width}}  {_summary(shipped_file(name))}".rstrip())
    else:
        terminal.write(*shipped_file(args.name).read_text(encoding="utf-8").splitlines())
    return 0


def _summary(path: Path) -> str:
    first = path.read_text(encoding="utf-8").partition("\n")[0]
    return first.removeprefix("#").strip() if first.startswith("#") else ""
