"""What is shown on a terminal: bars of any width, what parsers report, and nothing raw that a command quotes."""

import ast
import sys
import time
from collections.abc import Callable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import torch
from helpers.commands import Capture
from helpers.parsers import random_parser
from helpers.sentences import learnable_sentences
from helpers.terminal import terminal

from treeparse import terminal as escapes
from treeparse.cli.main import main
from treeparse.model import Ensemble
from treeparse.progress import Bar, Console

PACKAGE = Path(escapes.__file__).parent
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
    assert escapes.line(text) == expected
    assert escapes.message(text) == expected


def test_long_messages_lose_their_middle() -> None:
    shown = escapes.message("begin " + 10_000 * "x" + " end")
    assert len(shown) <= escapes.LONGEST
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
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Capture
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
    assert all(len(each) <= escapes.LONGEST for each in err.splitlines())


SENTENCES = learnable_sentences(9, seed=3)


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    "parse",
    [
        lambda parser, **options: parser.parse(SENTENCES, **options),
        lambda parser, **options: parser.kbest(SENTENCES, 2, **options),
        lambda parser, **options: parser.sample(SENTENCES, 2, **options),
        lambda parser, **options: parser.score_trees(SENTENCES, **options),
        lambda parser, **options: list(parser.stream(SENTENCES, ahead=4, **options)),
    ],
    ids=["parse", "kbest", "sample", "score_trees", "stream"],
)
def test_each_batch_is_reported_by_the_indices_of_its_sentences(parse: Callable[..., Any], threads: int) -> None:
    torch.set_num_threads(threads)
    parser, reported = random_parser(), list[Sequence[int]]()
    for model in (parser, Ensemble([parser, parser])):
        reported.clear()
        parse(model, batch_words=10, progress=reported.append)
        assert len(reported) > 3
        assert sorted(chain.from_iterable(reported)) == list(range(9))


@pytest.mark.parametrize(("columns", "widest"), [(0, 79), (40, 39), (80, 79)])
def test_a_bar_fits_a_terminal_of_any_width(columns: int, widest: int, monkeypatch: pytest.MonkeyPatch) -> None:
    with terminal(monkeypatch, "stderr", columns) as screen, Bar(3, stream=sys.stderr, hidden=False) as bar:
        for _ in range(3):
            bar.update()
    assert [line.split("%")[0] for line in screen.lines] == ["0", "33", "67", "100"]
    assert max(map(len, screen.lines)) == widest


def test_work_that_takes_long_is_announced_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with terminal(monkeypatch, "stderr", silence=0) as screen:
        console = Console(quiet=False)
        for work in ("reading", "loading"):
            with console.during(work):
                screen.wait_for(f"{work} ...")
    assert screen.lines == ["treeparse: reading ...", "treeparse: loading ..."]


def test_short_work_and_quiet_commands_are_not_announced(monkeypatch: pytest.MonkeyPatch) -> None:
    with terminal(monkeypatch, "stderr", silence=3600) as screen, Console(quiet=False).during("reading"):
        pass
    assert screen.text == ""
    with terminal(monkeypatch, "stderr", silence=0) as screen, Console(quiet=True).during("reading"):
        time.sleep(0.05)  # in which it would be announced
    assert screen.text == ""


def test_nothing_is_announced_where_nobody_looks(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setattr("treeparse.progress.SILENCE", 0)
    monkeypatch.setattr("treeparse.progress.SHORT", 0)
    with Console(quiet=False).during("reading"):
        time.sleep(0.05)
    assert capsys.readouterr() == ("", "")
