#!/usr/bin/env python
"""Run the code blocks of the guide, and compare what they print with what its pages show.

    scripts/guide/blocks.py                  # all that takes seconds
    scripts/guide/blocks.py --all            # what takes minutes, too
    scripts/guide/blocks.py --write PAGE...  # and replace what the pages show

A `text` block right below a `python` or `sh` block is what that one prints; `...` at the end of a line stands for the
rest of the line and any lines after it. The blocks of a page run in order, in one Python session and one folder, which
has the repository's `data`. A line `<!-- long -->` above a block leaves it to `--all`; `<!-- not run: WHY -->` leaves
it out.
"""

import argparse
import contextlib
import io
import os
import re
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

GUIDE = Path(__file__).parent
PAGES = GUIDE / "pages"
DATA = GUIDE.parents[1] / "data"
BLOCK = re.compile(
    r"^(?:<!-- (?P<note>long|not run: [^\n]+) -->\n)?```(?P<language>python|sh)\n(?P<code>.*?)^```\n"
    r"(?:\n```text\n(?P<shown>.*?)^```$)?",
    re.DOTALL | re.MULTILINE,
)
ANY_LINES = "...\n"


@dataclass(frozen=True)
class Block:
    """A block of code, what its page shows below it, and where that lies in the page."""

    language: str
    code: str
    shown: str | None
    place: tuple[int, int]
    line: int
    is_long: bool

    def shows(self, printed: str) -> bool:
        """Whether the page shows what was printed; without a text block, anything may be."""
        if self.shown is None:
            return True
        pieces = [re.escape(piece) for piece in _stripped(self.shown).split(ANY_LINES)]
        return re.fullmatch("(?:.*\n)*?".join(pieces), _stripped(printed)) is not None


def blocks_of(text: str) -> Iterator[Block]:
    """Read the blocks of a page that are run."""
    for match in BLOCK.finditer(text):
        note = match["note"] or ""
        if not note.startswith("not run"):
            line = text.count("\n", 0, match.start("code"))
            yield Block(match["language"], match["code"], match["shown"], match.span("shown"), line, note == "long")


def run_page(path: Path, *, with_long: bool = False, write: bool = False) -> list[str]:
    """Run the blocks of a page; return its faults, each a line that names the block."""
    text, faults, session = path.read_text(encoding="utf-8"), [], {"__name__": "__main__"}
    changes: list[tuple[Block, str]] = []
    with _own_folder():
        for block in blocks_of(text):
            if block.is_long and not with_long:
                continue
            try:
                printed = _run(block, session)
            except Exception:
                faults.append(f"{path.name}:{block.line}: {traceback.format_exc()}")
                break
            if not block.shows(printed):
                if write and ANY_LINES not in (block.shown or ""):
                    changes.append((block, printed))
                else:
                    faults.append(f"{path.name}:{block.line}: shows\n{block.shown}\nbut the code prints\n{printed}")
    for block, printed in reversed(changes):
        text = text[: block.place[0]] + _stripped(printed) + text[block.place[1] :]
    if changes:
        path.write_text(text, encoding="utf-8")
    return faults


@contextlib.contextmanager
def _own_folder() -> Iterator[None]:
    """Work in a new folder with ``data``; modules imported from it are forgotten at the end."""
    search_path = [*sys.path]
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        Path("data").symlink_to(DATA)
        sys.path_importer_cache.pop(".", None)  # of another folder
        try:
            yield
        finally:
            sys.path[:] = search_path
            files = {name: getattr(module, "__file__", None) for name, module in sys.modules.items()}
            for name, file in files.items():
                if file is not None and Path(file).resolve().is_relative_to(Path(folder).resolve()):
                    del sys.modules[name]


def _run(block: Block, session: dict[str, Any]) -> str:
    """Run a block; return what it prints."""
    if block.language == "python":
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(block.code, "the guide", "exec"), session)
        return printed.getvalue()
    tools = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-eu", "-c", block.code],
        env={**os.environ, "PATH": tools},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{block.code}ended with {done.returncode}:\n{done.stdout}")
    return done.stdout


def _stripped(text: str) -> str:
    """Lines without white space at their ends."""
    return "".join(f"{line.rstrip()}\n" for line in text.splitlines())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the pages' blocks; print the faults."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="*", type=Path, default=sorted(PAGES.rglob("*.md")), metavar="PAGE")
    parser.add_argument("--all", action="store_true", help="also run what takes minutes")
    parser.add_argument("--write", action="store_true", help="replace what the pages show, where no line is ...")
    options = parser.parse_args(arguments)
    runs = (run_page(page.resolve(), with_long=options.all, write=options.write) for page in options.pages)
    faults = [fault for run in runs for fault in run]
    print("\n".join(faults) or f"{len(options.pages)} pages: every block runs and prints what is shown.")
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
