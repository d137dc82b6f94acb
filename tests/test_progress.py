"""What parsers report while they parse, and bars on terminals of any width."""

import sys
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

import pytest
from helpers.parsers import random_parser
from helpers.sentences import learnable_sentences
from helpers.terminal import terminal

from treeparse.model import Ensemble
from treeparse.progress import Bar

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
