"""``python -m treeparse`` is the ``treeparse`` command."""

import sys

from treeparse.errors import missing_package


def main() -> int:
    """Run the command; say in a sentence which package it lacks, if one is not installed."""
    try:
        from treeparse.cli.main import main as command
    except ModuleNotFoundError as error:
        missing = missing_package(error, "The command treeparse")
        if missing is error:
            raise
        print(f"treeparse: error: {missing}", file=sys.stderr)
        return 2
    return command()


if __name__ == "__main__":
    sys.exit(main())
