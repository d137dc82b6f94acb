#!/usr/bin/env python
"""Draw the pictures of the guide into its pages/pictures."""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch

from treeparse import NonProjectiveCRF
from treeparse.pictures import Tree, draw_tree
from treeparse.pictures.plots import ShareBar, draw_bars, draw_marginals
from treeparse.pictures.svg import Drawing, document, stacked

FOLDER = Path(__file__).parent / "pages" / "pictures"
WORDS = ("She", "saw", "her", "duck")
SCORES = (  # of the pages' example
    (0.0, -2.0, 4.0, -3.0, 0.5),
    (0.0, 0.0, 0.5, -2.0, -1.0),
    (0.0, 3.0, 0.0, 1.2, 2.5),
    (0.0, -2.0, 0.0, 0.0, 0.8),
    (0.0, 0.5, 1.0, 1.6, 0.0),
)
LABELS, LABEL_SCORES = ("root", "nsubj", "obj", "nmod:poss", "xcomp"), (0.0, 0.0, 2.0, 0.0, 1.5)  # of saw -> duck
BIRD = Tree(WORDS, (2, 0, 4, 2), ("nsubj", "root", "nmod:poss", "obj"))
DIVE = Tree(WORDS, (2, 0, 2, 2), ("nsubj", "root", "obj", "xcomp"))
CROSSING = Tree(
    ("A", "hearing", "is", "scheduled", "on", "the", "issue", "today"),
    (2, 4, 4, 0, 7, 7, 2, 4),
    ("det", "nsubj:pass", "aux:pass", "root", "case", "det", "nmod", "obl:tmod"),
)


def pictures() -> Iterator[tuple[str, Drawing]]:
    """Names and drawings."""
    p = NonProjectiveCRF(torch.tensor(SCORES))
    heads, _, log_probs = p.topk(5)
    probs = log_probs.exp().tolist()
    yield "tree", draw_tree(BIRD)
    yield "crossing", draw_tree(CROSSING)
    yield "marginals", draw_marginals(WORDS, p.marginals.tolist(), BIRD.heads)
    captions = [f"{prob:.0%}" for prob in probs[:2]]
    yield "readings", stacked([draw_tree(BIRD), draw_tree(DIVE)], captions, "The two most probable trees")
    names = [" ".join(map(str, tree[1:])) for tree in heads.tolist()]
    bars = [ShareBar(name, prob) for name, prob in zip(names, probs, strict=True)]
    yield "best", draw_bars(bars, "The probabilities of the five best trees, by their heads")
    draws = p.sample((1000,), generator=torch.Generator().manual_seed(1))[:, 1:].tolist()
    counts = [draws.count(tree[1:]) for tree in heads.tolist()]
    shares = [ShareBar(name, count / len(draws)) for name, count in zip(names, counts, strict=True)]
    yield "samples", draw_bars(shares, "The shares of the same trees among a thousand samples")
    cold, hot = (draw_marginals(WORDS, p.tempered(t).marginals.tolist()) for t in (0.5, 3.0))
    yield "tempered", stacked([cold, hot], ["temperature 0.5", "temperature 3"], "Sharper and flatter marginals")
    shares = torch.tensor(LABEL_SCORES).softmax(0).tolist()
    bars = [ShareBar(name, share) for name, share in zip(LABELS, shares, strict=True)]
    yield "labels", draw_bars(bars, "The probabilities of the labels of saw -> duck, given that arc")
    yield "siblings", draw_tree(DIVE)


def main(arguments: Sequence[str] | None = None) -> None:
    """Draw them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=FOLDER, metavar="DIR", help="default: the guide's")
    options = parser.parse_args(arguments)
    options.output.mkdir(parents=True, exist_ok=True)
    for name, drawing in pictures():
        (options.output / f"{name}.svg").write_text(document(drawing), encoding="utf-8")


if __name__ == "__main__":
    main()
