"""``treeparse config``: print a file that ships with treeparse: a configuration, rules or constraints."""

import argparse

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
    """Print one file, or every name with the first sentences of its file."""
    if args.name is not None:
        terminal.write(*shipped_file(args.name).read_text(encoding="utf-8").splitlines())
        return 0
    names = every_name()
    width = max(map(len, names))
    for name in names:
        terminal.write(f"{name:<{width}}  {_description(shipped_file(name).read_text(encoding='utf-8'))}")
    return 0


def _description(text: str) -> str:
    """Return the first comment of a file, up to the first of its lines that ends a sentence."""
    comments = (line.removeprefix("# ") for line in text.splitlines())
    description = next(comments)
    while not description.endswith("."):
        description += f" {next(comments)}"
    return description
