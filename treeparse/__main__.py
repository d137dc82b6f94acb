"""``python -m treeparse`` is the ``treeparse`` command."""

import sys

from treeparse.errors import MissingPackageError, naming_missing_packages


def main() -> int:
    """Run the command; say in a sentence which package it lacks, if one is not installed."""
    try:
        with naming_missing_packages("The command treeparse"):
            from treeparse.cli.main import main as command
    except MissingPackageError as error:
        print(f"treeparse: error: {error}", file=sys.stderr)
        return 2
    return command()


if __name__ == "__main__":
    sys.exit(main())
