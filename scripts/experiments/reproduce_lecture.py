"""What McDonald and Nivre's lecture ([Lec]) says of each algorithm, shown on real treebanks.

    export TREEPARSE_TREEBANKS=...   # the folder that holds UD_English-EWT and UD_Latin-Perseus
    taskset -c 0 python -m scripts.experiments.reproduce_lecture --output FILE

Complexity is that of random scores; all else is of linear models, as the lecture describes them, with gold tags and
projective trees unless it says otherwise, on EWT; the search over all trees is on Latin, where 41% of the trees have
crossing arcs. It takes about half an hour.
"""

import argparse
import math
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import torch
from scripts.support.lecture import best_by_chart, derivations, marginals_by_determinants, new_chart
from scripts.support.reports.markdown import Opening, report
from scripts.support.reports.timing import Entry, race
from scripts.support.training.runs import train_and_score
from scripts.support.training.treebanks import EWT, LATIN, LATIN_FILES, Parts, Treebank, files_of, gold_sentences

from treeparse import NonProjectiveCRF, NonProjectiveSiblingCRF, Parser, ProjectiveCRF, SecondOrderCRF, SiblingCRF
from treeparse.data import load_treebank
from treeparse.feature_templates import ARCS
from treeparse.sentence import Sentence, nonprojective_words
from treeparse.training.run_directory import RunDirectory, best_record
from treeparse.trees.approximate import climb

SIZES = (10, 20, 40, 80, 160)
CELLS = 12_800  # of the score matrices of a batch, so that the time of a call itself is small
LONGEST_CHART = 40  # words for which O(n^5) is measured
ROUNDS = 5
TOLERANCE = 1e-9
OPENING = Opening(
    title="[Lec] shown: graph-based parsing of the first and the second order",
    measured="time and its growth with the length; what the chart of O(n^5) counts; what groups of features are worth; "
    "learning algorithms; decoding by marginals; parts of the second order; search over all trees.",
    on="random N(0, 1) scores; and linear models of EWT's training set, scored on its dev set, and of Latin-Perseus, "
    "scored on its test set, with gold tags.",
    read="an exponent is the slope of the logarithm of time between the two greatest lengths, so 3 is cubic; scores "
    "are percent.",
    repeat="taskset -c 0 python -m scripts.experiments.reproduce_lecture --output "
    "scripts/experiments/results/reproduce_lecture.md",
)
Call = Callable[[], object]


def complexity() -> Iterator[str]:
    """A row for each algorithm."""
    yield "\n## Complexity\n"
    yield "Milliseconds a sentence, one thread, one root except for O(n^5); short sentences in batches."
    yield "Sums with siblings over 160 words leave the range of float64 and take logarithms, which is slower.\n"
    yield f"| | [Lec] | {' | '.join(f'n = {n}' for n in SIZES)} | exponent |"
    yield "|:--|:--|" + "--:|" * (len(SIZES) + 1)
    rows = {name: bound for name, bound, _ in _algorithms(SIZES[0])}
    times: dict[str, dict[int, float]] = {name: {} for name in rows}
    for n in SIZES:
        entries = [Entry(call, name=name) for name, _, call in _algorithms(n) if call is not None]
        for name, entry in race(entries, ROUNDS).items():
            times[name][n] = 1e3 * entry.median / (1 if "O(n^5)" in rows[name] else batch_size(n))
    for name, bound in rows.items():
        measured = times[name]
        cells = (f"{measured[n]:.3f}" if n in measured else "" for n in SIZES)
        last, largest = sorted(measured)[-2:]
        slope = math.log(measured[largest] / measured[last]) / math.log(largest / last)
        yield f"| {name} | {bound} | {' | '.join(cells)} | {slope:.1f} |"


def batch_size(n: int) -> int:
    """The number of sentences of n words of a batch."""
    return max(1, CELLS // n**2)


def _algorithms(n: int) -> Iterator[tuple[str, str, Call | None]]:
    """The name, the lecture's bound and a call of each algorithm; None beyond the lengths it is measured for."""
    stream = torch.Generator().manual_seed(n)
    count = batch_size(n)
    arcs = torch.randn(count, n + 1, n + 1, generator=stream, dtype=torch.float64)
    siblings, grandparents = (torch.randn(count, n + 1, n + 1, n + 1, generator=stream) for _ in range(2))
    alone, chart = arcs[0].numpy(), new_chart(n + 1)
    is_short = n <= LONGEST_CHART
    yield "best tree, all trees", "O(n^2)", lambda: NonProjectiveCRF(arcs).mode
    yield "10 best, all trees", "O(K n^2)", lambda: NonProjectiveCRF(arcs).batched.k_best(10)
    yield "log partition, all trees", "O(n^3)", lambda: NonProjectiveCRF(arcs).log_partition
    yield "marginals, all trees", "O(n^3)", lambda: NonProjectiveCRF(arcs).marginals
    naive = "marginals, a determinant an arc"
    yield naive, "O(n^5)", (lambda: marginals_by_determinants(alone)) if is_short else None
    yield "best projective tree", "O(n^3)", lambda: ProjectiveCRF(arcs).mode
    chart_call = (lambda: best_by_chart(alone, chart)) if is_short else None
    yield "best projective tree, spans with inner heads", "O(n^5)", chart_call
    yield "log partition, projective", "O(n^3)", lambda: ProjectiveCRF(arcs).log_partition
    yield "marginals, projective", "O(n^3)", lambda: ProjectiveCRF(arcs).marginals
    yield "best projective tree, siblings", "O(n^3)", lambda: SiblingCRF(arcs, siblings).mode
    yield "log partition, siblings", "O(n^3)", lambda: SiblingCRF(arcs, siblings).log_partition
    yield "best projective tree, grandparents too", "", lambda: SecondOrderCRF(arcs, siblings, grandparents).mode


def chart_counts(sentences: Sequence[Sentence]) -> Iterator[str]:
    """What the chart of O(n^5) finds, and how often it counts the trees of a treebank."""
    yield "\n## The chart of O(n^5)\n"
    agree, stream = 0, torch.Generator().manual_seed(1)
    for n in (length for length in range(1, 21) for _ in range(5)):
        scores = torch.randn(1, n + 1, n + 1, generator=stream, dtype=torch.float64)
        p = ProjectiveCRF(scores, single_root=False)
        agree += abs(best_by_chart(scores[0].numpy(), new_chart(n + 1)) - float(p.score(p.mode))) < TOLERANCE * n
    yield f"Its best score is that of Eisner's algorithm on {agree} of 100 random sentences of 1 to 20 words. A"
    yield "head may take its dependents on both sides in any order, so that a tree has many derivations: sums over this"
    yield "chart count trees more than once. [Lec] gives partition functions by it; only Eisner's spans count each tree"
    yield "once.\n"
    yield "| words | trees of EWT's dev set | with one derivation | median derivations | most |"
    yield "|:--|--:|--:|--:|--:|"
    all_heads = [each.heads for each in sentences if each.heads and not nonprojective_words(each.heads)]
    trees = [torch.tensor([-1, *heads]) for heads in all_heads]
    for first, last in ((1, 10), (11, 20), (21, 40)):
        counts = np.exp([derivations(heads) for heads in trees if first <= len(heads) - 1 <= last])
        one = f"{100 * (counts < 1.5).mean():.0f}%"
        yield f"| {first} to {last} | {len(counts):,} | {one} | {np.median(counts):,.0f} | {counts.max():.2g} |"


def _without(*parts: str, lone: bool = False) -> list[str]:
    """The templates of arcs that read none of the attributes, or those that read more than one word if ``lone``."""
    if lone:
        return [each for each in ARCS if {"h", "d"} <= {part[0] for part in each.split() if "." in part}]
    return [each for each in ARCS if not any(part in each for part in parts)]


GROUPS: Mapping[str, list[str]] = {
    "all": list(ARCS),
    "no distance": list(dict.fromkeys(each.replace(" distance", "") for each in ARCS)),
    "no tags of words around": _without("+1", "-1"),
    "no tags of words between": _without("b."),
    "no features of one word": _without(lone=True),
    "no pairs of two forms": [each for each in ARCS if not {"h.form", "d.form"} <= set(each.split())],
    "no forms": _without("form"),
}


class Models:
    """Linear models of a treebank, trained when they are first read."""

    def __init__(self, treebanks: Path, work: Path) -> None:
        self.treebanks, self.work = treebanks, work

    def dev_uas(self, name: str, options: Mapping[str, object]) -> float:
        """Train on EWT and return the best UAS of its dev set, percent."""
        folder = self._train(Parts(EWT.train.removesuffix("train.conllu")), name, options)
        return 100 * (best_record(RunDirectory(folder).read_history()).dev_uas or 0.0)

    def ewt(self, name: str) -> Parser:
        """A model of EWT that `dev_uas` has trained."""
        return Parser.from_pretrained(self.work / name)

    def latin(self, name: str, options: Mapping[str, object]) -> Parser:
        """A model of Latin."""
        parts = Parts(LATIN_FILES, slice(-134), slice(-134, None), "train")
        return Parser.from_pretrained(self._train(parts, name, options))

    def _train(self, parts: Parts, name: str, options: Mapping[str, object]) -> Path:
        folder = self.work / name
        files = files_of(parts, self.treebanks, self.work / "data")
        train_and_score("linear", {**files, **options}, self.gold(EWT)[:1], folder)
        return folder

    def gold(self, treebank: Treebank) -> list[Sentence]:
        """The sentences of the test file."""
        return gold_sentences(treebank, self.treebanks)


def features(models: Models) -> Iterator[str]:
    """What each group of feature templates is worth."""
    yield "\n## Features\n"
    yield "MIRA; the features of [Lec], McDonald et al. (2005) and fewer.\n"
    yield "| templates | number | dev UAS | |"
    yield "|:--|--:|--:|--:|"
    whole = 0.0
    for name, arcs in GROUPS.items():
        uas = models.dev_uas(f"features-{name.replace(' ', '-')}", {"model.scorer.arcs": f"[{', '.join(arcs)}]"})
        whole = whole or uas
        yield f"| {name} | {len(arcs)} | {uas:.2f} | {uas - whole:+.2f} |"


LEARNERS: Mapping[str, Mapping[str, object]] = {
    "perceptron": {"learning.algorithm": "perceptron"},
    "perceptron, all trees": {"learning.algorithm": "perceptron", "model.trees": "nonprojective"},
    "MIRA": {},
    "log-linear": {"learning.algorithm": "log_linear"},
    "MIRA, siblings": {"model.trees": "siblings"},
    "MIRA, siblings and grandparents": {"model.trees": "second_order"},
}


def learning(models: Models) -> Iterator[str]:
    """Each learning algorithm, and decoding by marginals."""
    yield "\n## Learning, and parts of two arcs\n"
    yield "| model | dev UAS |"
    yield "|:--|--:|"
    for name, options in LEARNERS.items():
        yield f"| {name} | {models.dev_uas(_folder(name), options):.2f} |"
    yield "\n## Decoding by marginals\n"
    yield "The log-linear model. The tree of the greatest summed marginals has the highest expected UAS.\n"
    yield "| decoder | UAS of EWT's test set | whole trees |"
    yield "|:--|--:|--:|"
    parser, gold = models.ewt(_folder("log-linear")), models.gold(EWT)
    for decoder, of in (("best tree", lambda p: p.mode), ("highest expected UAS", lambda p: p.minimum_risk())):
        right = [*_right(parser, gold, of)]
        words = sum(count for count, _ in right) / sum(map(len, gold))
        yield f"| {decoder} | {100 * words:.2f} | {100 * np.mean([whole for _, whole in right]):.2f} |"


def _right(parser: Parser, gold: Sequence[Sentence], of: Callable[..., torch.Tensor]) -> Iterator[tuple[int, bool]]:
    """How many heads of each sentence are right in a tree of its distribution, and whether all are."""
    for sentence in gold:
        p = parser.distribution(parser.collate([sentence])).base
        heads = of(p)[0, 1:].tolist()
        right = sum(one == other for one, other in zip(heads, sentence.heads or (), strict=True))
        yield right, right == len(sentence)


def _folder(name: str) -> str:
    return name.replace(",", "").replace(" ", "-")


def search(models: Models) -> Iterator[str]:
    """Trees with siblings whose arcs may cross: the projective tree, climbing from it, and the best one."""
    yield "\n## Siblings over all trees\n"
    yield "NP-hard. [Lec] climbs from the best projective tree; the search of treeparse proves its tree the best.\n"
    gold = models.gold(LATIN)
    crossing = np.mean([bool(nonprojective_words(each.heads or ())) for each in gold])
    parser = models.latin("latin", {"model.trees": "nonprojective_siblings"})
    found = {name: [0, 0] for name in ("best projective tree", "climbed from it", "best tree")}
    certified = 0
    for sentence in gold:
        p = parser.distribution(parser.collate([sentence])).base
        assert isinstance(p, NonProjectiveSiblingCRF)
        best = p.mode_with_bound(limit=200)
        certified += int(best.certified)
        start = SiblingCRF(p.scores, p.parts.others[0], p.lengths).mode
        climbed = climb(partial(_scores_of, p), start).heads
        greatest = float(p.score(best.heads))
        for counts, heads in zip(found.values(), (start, climbed, best.heads), strict=True):
            counts[0] += float(p.score(heads)) >= greatest - TOLERANCE * (1 + abs(greatest))
            counts[1] += sum(a == b for a, b in zip(heads[0, 1:].tolist(), sentence.heads or (), strict=True))
    shown = f"{100 * crossing:.0f}% of the gold trees have crossing arcs"
    yield f"{shown}; {certified} of {len(gold)} best trees are certified.\n"
    yield "| tree | the best one, % of sentences | UAS |"
    yield "|:--|--:|--:|"
    for name, (best, right) in found.items():
        yield f"| {name} | {100 * best / len(gold):.1f} | {100 * right / sum(map(len, gold)):.2f} |"


def _scores_of(p: NonProjectiveSiblingCRF, trees: torch.Tensor) -> torch.Tensor:
    """The scores ``(T,)`` of trees ``(T, n+1)`` of the one sentence of a distribution."""
    return p.score(trees.unsqueeze(1)).squeeze(1)


def main(options: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = os.environ.get("TREEPARSE_TREEBANKS", ".")
    parser.add_argument("--treebanks", type=Path, default=default, metavar="DIR", help="default: the variable's")
    parser.add_argument("--work", type=Path, metavar="DIR", help="keep the models here (default: a temporary folder)")
    parser.add_argument("--output", type=Path, metavar="FILE", help="also write the tables here, as markdown")
    arguments = parser.parse_args(options)
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as temporary:
        models = Models(arguments.treebanks, arguments.work or Path(temporary))
        dev = [each.words for each in load_treebank([arguments.treebanks / EWT.dev])]
        parts = (complexity(), chart_counts(dev), features(models), learning(models), search(models))
        report([OPENING.text(), *(line for part in parts for line in part)], arguments.output)


if __name__ == "__main__":
    main()
