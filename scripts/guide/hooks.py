"""Pages of the site that treeparse's own help fills in; read as plain files, they name the command that prints it."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import treeparse.cli.commands

ENVIRONMENT = {**os.environ, "COLUMNS": "100", "NO_COLOR": "1"}


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Append the help of every command, or every config, to the page that is for them."""
    fill = {"reference/commands.md": _commands, "reference/configs.md": _configs}.get(page.file.src_uri)
    return markdown if fill is None else "\n".join([markdown, *fill()])


def _commands() -> list[str]:
    folder = Path(next(iter(treeparse.cli.commands.__path__)))
    names = sorted(path.stem.replace("_", "-") for path in folder.glob("[a-z]*.py"))
    sections = [_section(name, "text", _printed(name, "--help")) for name in names]
    return [*sections, _section("Settings of a config", "text", _printed("train", "--help-config"))]


def _configs() -> list[str]:
    names = [line.split()[0] for line in _printed("config").splitlines() if "/" not in line.split()[0]]
    return [_section(name, "yaml", _printed("config", name)) for name in names]


def _section(title: str, language: str, text: str) -> str:
    return f"## {title}\n\n```{language}\n{text}```\n"


def _printed(*arguments: str) -> str:
    command = [sys.executable, "-m", "treeparse", *arguments]
    return subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, check=True).stdout
