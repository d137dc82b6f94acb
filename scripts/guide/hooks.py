"""Pages of the site that treeparse's own help and docstrings fill in; as plain files, they say where these are read."""

import importlib
import os
import re
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import treeparse.cli.commands

PACKAGES = ("data", "metrics", "training", "objectives", "corpus")  # a page each, of their public names
ENVIRONMENT = {**os.environ, "COLUMNS": "100", "NO_COLOR": "1"}


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Append the help of every command, every config, or the docstrings of a package to the page that is for them.

    A comment for jupytext at the top goes, because a page has its title only if that comes first.
    """
    markdown = re.sub(r"\A<!--.*?-->\s*", "", markdown, flags=re.DOTALL)
    fills = {"commands": _commands, "configs": _configs, **{name: partial(_docstrings, name) for name in PACKAGES}}
    fill = {f"reference/{name}.md": fill for name, fill in fills.items()}.get(page.file.src_uri)
    return markdown if fill is None else "\n".join([markdown, *fill()])


def _docstrings(package: str) -> list[str]:
    module = importlib.import_module(f"treeparse.{package}")
    values = [(name, getattr(module, name)) for name in module.__all__]
    homes = [(getattr(value, "__module__", ""), name) for name, value in values if value.__doc__]
    return [f"::: {home}.{name}\n" for home, name in homes if home.startswith("treeparse.")]


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
