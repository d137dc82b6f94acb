"""``treeparse push``: put a model on the Hugging Face hub."""

import argparse

from treeparse import terminal
from treeparse.model.folder import push

EPILOG = """examples:
  treeparse push runs/english organisation/english-parser
  treeparse push runs/english organisation/english-parser --private --revision trial

The command uploads only the files of the model: settings, vocabularies, weights, and its card (treeparse card). It
needs the token of hf auth login, or of the variable HF_TOKEN. Commands and Parser.from_pretrained accept
organisation/english-parser instead of the folder of a model."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("model", metavar="MODEL", help="a model's folder, or a run's")
    parser.add_argument("name", metavar="NAME", help="organisation/name on the hub, created if absent")
    parser.add_argument("--private", action="store_true", help="create a private repository")
    parser.add_argument("--revision", metavar="BRANCH", help="the branch to push to (default: main)")


def run(args: argparse.Namespace) -> int:
    """Push, and print the address."""
    address = push(args.model, args.name, private=args.private, revision=args.revision)
    if not args.quiet:
        terminal.write(address)
    return 0
