"""``python -m treeparse`` is the ``treeparse`` command."""

import sys

from treeparse.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
