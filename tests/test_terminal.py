"""Nothing that a command quotes from a file moves the cursor, turns text round or hides it."""

import ast
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


TREE = f"1\ta\t_\tX\t_\t_\t0\troot{ESCAPE}\t_\t_\n\n"
# What the file ``{file}`` of a command holds.
QUOTED = {
    "check {file}": TREE.replace("\t0\t", "\t1\t").replace("1\ta", f"# sent_id = {ESCAPE}\n1\ta"),
    "evaluate {file} {file} --by-label": TREE,
    f"check no{ESCAPE}.conllu": "",
    "train --config {file} --output run": '"\\x1b[2J\\u202ekey": 1\n',
    f"check --{ESCAPE} {{file}}": "",
}


@pytest.mark.parametrize("command", QUOTED)
def test_commands_quote_nothing_raw(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file").write_text(QUOTED[command], encoding="utf-8")
    try:
        main(command.format(file="file").split(" "))
    except SystemExit as stop:
        assert stop.code == 2
    out, err = capfd.readouterr()
    assert r"\x1b" in out + err
    assert not {*out, *err} & {*ESCAPE} - {*map(chr, range(32, 127))}
    assert all(len(each) <= terminal.LONGEST for each in err.splitlines())
