"""Pages of the site that treeparse's own help fills in; read as plain files, they name the command that prints it."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import treeparse.cli.commands

ENVIRONMENT = {**os.environ, "COLUMNS": "100", "NO_COLOR": "1"}


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Append the help of every command to its page."""
    if page.file.src_uri != "reference/commands.md":
        return markdown
    folder = Path(next(iter(treeparse.cli.commands.__path__)))
    names = sorted(path.stem.replace("_", "-") for path in folder.glob("[a-z]*.py"))
    sections = [f"## {name}\n\n```text\n{_help(name)}```\n" for name in names]
    return "\n".join(
        [markdown, *sections, f"## Settings of a config\n\n```text\n{_help('train', '--help-config')}```\n"]
    )


def _help(command: str, option: str = "--help") -> str:
    arguments = [sys.executable, "-m", "treeparse", command, option]
    return subprocess.run(arguments, env=ENVIRONMENT, capture_output=True, text=True, check=True).stdout
