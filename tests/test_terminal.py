"""Nothing that a command quotes from a file moves the cursor, turns text round or hides it."""

import ast
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from treeparse import terminal
from treeparse.cli.main import main

PACKAGE = Path(terminal.__file__).parent
ESCAPE = "\x1b[2J\x1b]0;title\x07\u202ereversed\x9b31m"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        ("two\nlines\tand\r", "two lines and "),
        ("\x1b[31mred\x07", r"\x1b[31mred\x07"),
        ("\x9b\x7f\x00", r"\x9b\x7f\x00"),
        ("a\u202eb\u2069", r"a\u202eb\u2069"),
        ("line\u2028end", r"line\u2028end"),
        ("lone\ud800", r"lone\ud800"),
        ("می‌خواهم 👩‍👩‍👧 naïve", "می‌خواهم 👩‍👩‍👧 naïve"),
    ],
)
def test_a_line(text: str, expected: str) -> None:
    assert terminal.line(text) == expected
    assert terminal.message(text) == expected


def test_long_messages_lose_their_middle() -> None:
    shown = terminal.message("begin " + 10_000 * "x" + " end")
    assert len(shown) <= terminal.LONGEST
    assert shown.startswith("begin x")
    assert shown.endswith("x end")


def test_one_module_alone_writes() -> None:
    """``print`` and its like pass by the escapes; bars, which move the cursor themselves, and bytes may."""
    for path in PACKAGE.rglob("*.py"):
        if path.name in ("terminal.py", "__main__.py"):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                called = ast.unparse(node.func)
                assert called not in ("print", "sys.stdout.write", "sys.stderr.write"), f"{path}:{node.lineno}"
                if called == "tqdm.write":
                    assert ast.unparse(node.args[0]).startswith("terminal."), f"{path}:{node.lineno}"


def faulty_conllu(folder: Path) -> list[str]:
    path = folder / "faulty.conllu"
    path.write_text(f"# sent_id = {ESCAPE}\n1\ta\t_\tX\t_\t_\t1\tdep\t_\t_\n\n", encoding="utf-8")
    return ["check", str(path)]


def label_in_a_table(folder: Path) -> list[str]:
    path = folder / "gold.conllu"
    path.write_text(f"1\ta\t_\tX\t_\t_\t0\troot{ESCAPE}\t_\t_\n\n", encoding="utf-8")
    return ["evaluate", str(path), str(path), "--by-label"]


def missing_file(folder: Path) -> list[str]:
    return ["check", str(folder / f"{ESCAPE}.conllu")]


def config_key(folder: Path) -> list[str]:
    path = folder / "run.yaml"
    path.write_text('"\\x1b[2J\\u202ekey": 1\n', encoding="utf-8")
    return ["train", "--config", str(path), "--output", str(folder / "run")]


def unknown_option(folder: Path) -> list[str]:
    return ["check", f"--{ESCAPE}", str(folder)]


@pytest.mark.parametrize("command", [faulty_conllu, label_in_a_table, missing_file, config_key, unknown_option])
def test_commands_quote_nothing_raw(
    command: Callable[[Path], list[str]], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    try:
        main(command(tmp_path))
    except SystemExit as stop:
        assert stop.code == 2
    out, err = capfd.readouterr()
    assert r"\x1b" in out + err
    assert not {*out, *err} & {*ESCAPE} - {*map(chr, range(32, 127))}
    assert all(len(each) <= terminal.LONGEST for each in err.splitlines())


def test_nothing_is_imported_by_it() -> None:
    code = "import sys, treeparse.terminal; print({'torch', 'tqdm'} & {*sys.modules})"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown == "set()\n"
