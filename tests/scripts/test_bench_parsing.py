"""The parsing benchmark times peers on the same sentences in turns, and their scorers within."""

from collections.abc import Callable, Iterable, Sequence

import torch
from scripts.support.peers.parser_race import peer_table
from scripts.support.peers.parsers import PeerParser, Tree

from treeparse.sentence import Sentence

SENTENCES = [Sentence(("a", "b", "c"), upos=("X", "Y", "Z")), Sentence(("d",))]
TREES: list[Tree] = [([2, 0, 2], ["x", "root", "y"]), ([0], ["root"])]


class Watch:
    """A clock that goes on only where a fake lets time pass."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Scorer(torch.nn.Module):
    """What takes these seconds of the watch, call by call."""

    def __init__(self, watch: Watch, seconds: Iterable[float]) -> None:
        super().__init__()
        self.watch, self.seconds = watch, iter(seconds)

    def forward(self) -> None:
        self.watch.now += next(self.seconds)


def peer(watch: Watch, seconds: Iterable[float], trees: Sequence[Tree] = TREES) -> PeerParser:
    """A peer that scores in two calls a pass, and takes a second more a pass."""
    scorer = Scorer(watch, seconds)

    def parse(sentences: Sequence[Sentence]) -> list[Tree]:
        for _ in range(2):
            scorer()
        watch.now += 1
        return list(trees)

    return PeerParser("fake", scorer, parse)


def ours(watch: Watch, seconds: Iterable[float]) -> Callable[[], None]:
    times = iter(seconds)

    def run() -> None:
        watch.now += next(times)

    return run


def test_the_table_by_hand() -> None:
    """Ours takes 0.5, 1 and 0.5 s a pass; the peer scores in 3, 1 and 2 s, and takes 4, 2 and 3: ratios 8, 2 and 6."""
    watch = Watch()
    scoring = [50, 50, 1, 2, 0.5, 0.5, 1, 1]  # the first pass is not timed
    lines = list(peer_table(ours(watch, [70, 0.5, 1, 0.5]), [peer(watch, scoring)], SENTENCES, 3, watch))
    table = [[cell.strip() for cell in line.split("|")[1:-1]] for text in lines for line in text.splitlines()]
    assert [len(row) for row in table] == [6] * 4
    assert table[2] == ["treeparse", "125000.00", "8", "", "", ""]
    assert table[3] == ["fake", "750000.00", "1", "6.0", "500000.00", "4.0"]
