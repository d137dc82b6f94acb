"""The command line: one module a command, each with ``HELP``, ``add_arguments`` and ``run``."""
