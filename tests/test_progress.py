"""What parsers report while they parse, and bars on terminals of any width."""

import sys
import time
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

import pytest
from helpers.parsers import random_parser
from helpers.sentences import learnable_sentences
from helpers.terminal import terminal

from treeparse.model import Ensemble
from treeparse.progress import Bar, Console

SENTENCES = learnable_sentences(9, seed=3)


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
def test_each_batch_is_reported_by_the_indices_of_its_sentences(
    parse: Callable[..., Any], threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torch.get_num_threads", lambda: threads)
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


def test_nothing_is_announced_where_nobody_looks(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("treeparse.progress.SILENCE", 0)
    monkeypatch.setattr("treeparse.progress.SHORT", 0)
    with Console(quiet=False).during("reading"):
        time.sleep(0.05)
    assert capsys.readouterr() == ("", "")
