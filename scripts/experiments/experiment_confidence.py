"""How far a parser's probabilities can be trusted: calibration, sets of heads, certain words, and annotation errors.

    export TREEPARSE_TREEBANKS=...   # the folder that holds UD_English-EWT
    python -m scripts.experiments.experiment_confidence --model runs/fast/model

The parser is trained on EWT by the config fast, unless the folder of one that was is named. Expected calibration errors
are of the test set, before and after the temperatures that are fitted on the dev set. Then so many words of the dev
set, drawn at random, get another head, drawn from those with which the sentence is still a tree; words are ordered by
the probability of their head and label, and those found are the changed ones among as many first ones. Sets of heads by
split conformal prediction, from the dev set too, should hold the head of 95% and of 90% of the test set's words; the
error of that share is over sentences. As dev and test sets may differ, the same is told of halves of both together,
drawn at random 100 times: one half in the place of the dev set, the other in that of the test set. So is that of the
words that --certain keeps, over 20 halves, and which share of the words they are. Another treebank has its own --files,
and folder of a --model:

    treeparse train --config fast --output runs/turkish --data.train ... --data.dev ...
    python -m scripts.experiments.experiment_confidence --files UD_Turkish-IMST/tr_imst-ud-{}.conllu
        --model runs/turkish/model

Each result appends a line to a file of JSON lines, and those that stand there are not repeated. In the end it prints
tables.
"""

import argparse
import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain, product
from pathlib import Path
from statistics import mean, stdev

from scripts.support.training.options import add_run_options, working_folder
from scripts.support.training.runs import Record, append_record, read_records, train_and_score

from treeparse.data import load_treebank
from treeparse.data.parses import with_parses
from treeparse.metrics import conformal_threshold, conformal_trees, parse_calibration
from treeparse.model import Parser
from treeparse.model.promises import HeldOut
from treeparse.sentence import Sentence, tree_problem

OUTPUT = Path(__file__).parent / "results" / "experiment_confidence.jsonl"
EWT = "UD_English-EWT/en_ewt-ud-{}.conllu"
TRAINED, CALIBRATED, SUSPECTS, HEAD_SETS, CERTAIN = SETTINGS = (
    *("as trained", "calibrated", "suspects", "head sets"),
    "certain words",
)
ALPHAS = (0.05, 0.1)
TEMPERATURES = ("temperature", "label_temperature")
RUN = ("treebank", "config", "setting")  # tell the results of a file apart
KINDS = {"arcs": "arcs", "labels": "labels given right arcs", "labeled_arcs": "arcs and labels"}


class Experiment:
    """The results, made where a file lacks them."""

    def __init__(self, arguments: argparse.Namespace, work: Path) -> None:
        self.files, self.output = str(arguments.treebanks / arguments.files), arguments.output
        self.model, self.config, self.work = arguments.model, arguments.config, work
        self.changed, self.seed = arguments.changed, arguments.seed
        self.name = (Path(arguments.files).parent.name, Path(arguments.config).stem)
        self.output.parent.mkdir(parents=True, exist_ok=True)

    def results(self) -> list[Record]:
        """The records, in order."""
        records = {tuple(each[name] for name in RUN): each for each in read_records(self.output)}
        runs = [(*self.name, setting) for setting in SETTINGS]
        for run in runs:
            if run not in records:
                print(run[-1], flush=True)
                records[run] = {**dict(zip(RUN, run, strict=True)), **self._figures(run[-1])}
                append_record(self.output, records[run])
        return [records[run] for run in runs]

    def _figures(self, setting: str) -> Record:
        parser = self._parser()
        if setting == SUSPECTS:
            return suspects(parser, self._sentences("dev"), self.changed, self.seed)
        if setting == HEAD_SETS:
            return head_sets(parser, self._sentences("dev"), self._sentences("test"))
        if setting == CERTAIN:
            return certain_words(parser, [*self._sentences("dev"), *self._sentences("test")])
        if setting == TRAINED:
            parser.config = replace(parser.config, **dict.fromkeys(TEMPERATURES, 1.0))
        return calibration_errors(parser, self._sentences("test"))

    def _parser(self) -> Parser:
        if self.model is None:
            data = {f"data.{part}": self.files.format(part) for part in ("train", "dev")}
            train_and_score(self.config, {**data, "seed": self.seed}, self._sentences("test"), self.work / "run")
            self.model = self.work / "run" / "model"
        return Parser.from_pretrained(self.model)

    def _sentences(self, part: str) -> list[Sentence]:
        return [sentence.words for sentence in load_treebank(self.files.format(part))]


def calibration_errors(parser: Parser, gold: Sequence[Sentence]) -> Record:
    """What ``treeparse evaluate --calibration`` says, and the temperatures."""
    parses = parser.parse(gold, probabilities=True)
    probs = [[parse.arc_probs or () for parse in parses], [parse.label_probs or () for parse in parses]]
    found = parse_calibration(gold, with_parses(gold, parses), *probs)
    names = ("confidence", "accuracy", "ece", "ece_mass", "brier")
    figures = {kind: {name: round(getattr(each, name), 6) for name in names} for kind, each in found.items()}
    temperatures = {name: round(getattr(parser.config, name), 4) for name in TEMPERATURES}
    return {**temperatures, **figures}


def suspects(parser: Parser, gold: Sequence[Sentence], count: int, seed: int) -> Record:
    """Of ``count`` words with a wrong head, how many are among as many least probable ones, and among twice as many."""
    sentences, changed = with_wrong_heads(gold, count, seed)
    probs = {
        (place, word): prob
        for place, parse in enumerate(parser.score_trees(sentences))
        for word, prob in enumerate(parse.label_probs or ())
    }
    order = sorted(probs, key=lambda place: (probs[place], place))
    found = {f"found_in_{times}": len(changed & {*order[: times * count]}) for times in (1, 2)}
    return {"words": len(probs), "changed": count, "seed": seed, **found}


def head_sets(parser: Parser, held_out: Sequence[Sentence], gold: Sequence[Sentence]) -> Record:
    """How often the sets hold the head, with the standard error over sentences, and how large they are, by alpha."""
    probs = [prob for parse in parser.score_trees(held_out) for prob in parse.arc_probs or ()]
    figures = {}
    for alpha in ALPHAS:
        parses = parser.parse(gold, head_threshold=conformal_threshold(probs, alpha))
        sets = [parse.head_sets or () for parse in parses]
        held = [
            [head in each for head, each in zip(sentence.heads or (), own, strict=True)]
            for sentence, own in zip(gold, sets, strict=True)
        ]
        words = sum(map(len, held))
        share = sum(map(sum, held)) / words
        error = math.sqrt(sum((sum(own) - share * len(own)) ** 2 for own in held)) / words
        size = sum(len(each) for own in sets for each in own) / words
        figures[str(alpha)] = {"held": round(share, 6), "error": round(error, 6), "size": round(size, 4)}
        figures[str(alpha)]["held_in_halves"] = round(held_in_halves(parser, [*held_out, *gold], alpha), 6)
    return figures


def held_in_halves(parser: Parser, gold: Sequence[Sentence], alpha: float, times: int = 100) -> float:
    """The mean share of words whose set holds the head, where sentences are exchangeable for sure."""
    stream, shares = random.Random(1), []
    own = zip(gold, parser.score_trees(gold), parser.parse(gold), strict=True)
    words = [
        [(prob, right == head) for prob, right, head in zip(g.arc_probs or (), s.heads or (), p.heads, strict=True)]
        for s, g, p in own
    ]
    for _ in range(times):
        stream.shuffle(words)
        first, second = (list(chain.from_iterable(words[half::2])) for half in (0, 1))
        threshold = conformal_threshold([prob for prob, _ in first], alpha)
        shares.append(sum(is_parse or prob >= threshold for prob, is_parse in second) / len(second))
    return sum(shares) / times


def certain_words(parser: Parser, gold: Sequence[Sentence], times: int = 20) -> Record:
    """What --certain keeps of one half of the sentences, by the other half, and how right it is: mean and deviation."""
    found = HeldOut(parser, gold)
    pairs, stream, figures = list(zip(found.certainties, found.right, strict=True)), random.Random(1), {}
    for of, alpha in product(("sentences", "words"), ALPHAS):
        rows = []
        for _ in range(times):
            stream.shuffle(pairs)
            first, second = pairs[::2], pairs[1::2]
            certainties, right = zip(*first, strict=True)
            least = conformal_trees(certainties, right, alpha, of=of)
            kept = [
                [is_right for certainty, is_right in zip(*pair, strict=True) if certainty >= least] for pair in second
            ]
            sums = sum(map(all, kept)) if of == "sentences" else sum(sum(own) / len(own) if own else 1 for own in kept)
            rows.append((sums / len(second), sum(map(len, kept)) / sum(len(own) for _, own in second)))
        columns = zip(*rows, strict=True)
        names = ("right", "kept")
        figures[f"{of} {alpha}"] = {
            name: [round(mean(column), 6), round(stdev(column), 6)] for name, column in zip(names, columns, strict=True)
        }
    return figures


def with_wrong_heads(gold: Sequence[Sentence], count: int, seed: int) -> tuple[list[Sentence], set[tuple[int, int]]]:
    """The sentences with another head for so many words, and which these are: sentence and word, from 0.

    Words that hang from the root keep their head, and no other gets it.
    """
    stream, sentences, changed = random.Random(seed), list(gold), set()
    words = [(place, word) for place, each in enumerate(gold) for word in range(len(each))]
    stream.shuffle(words)
    for place, word in words:
        if len(changed) == count:
            break
        heads = sentences[place].heads or ()
        possible = [head for head in range(1, len(heads) + 1) if head != heads[word]] if heads[word] else []
        trees = [(*heads[:word], head, *heads[word + 1 :]) for head in possible]
        if trees := [tree for tree in trees if tree_problem(tree) is None]:
            sentences[place] = replace(sentences[place], heads=stream.choice(trees))
            changed.add((place, word))
    return sentences, changed


def tables(records: Sequence[Record]) -> Iterator[str]:
    """Markdown: the calibration before and after, and what was found."""
    *calibrated, found, sets, certain = records
    yield "| test set | temperature | probability | right | ECE | ECE, equal mass | Brier score |"
    yield "|:--|--:|--:|--:|--:|--:|--:|"
    for kind, title in KINDS.items():
        for record in calibrated:
            each = record[kind]
            figures = " | ".join(f"{100 * each[name]:.2f}" for name in ("confidence", "accuracy", "ece", "ece_mass"))
            yield f"| {title}, {record['setting']} | {_temperatures(record, kind)} | {figures} | {each['brier']:.4f} |"
    yield ""
    count, words = found["changed"], found["words"]
    for times in (1, 2):
        first, number = times * count, found[f"found_in_{times}"]
        yield (
            f"Of {count:,} changed heads {number:,} ({number / count:.1%}) are among the {first:,} least probable of "
            f"{words:,}; by chance {first / words:.1%}."
        )
    yield from ("", "| sets of heads | hold the head | heads a word | random halves |", "|:--|--:|--:|--:|")
    for alpha in ALPHAS:
        each = sets[str(alpha)]
        held = f"{100 * each['held']:.2f} ± {100 * each['error']:.2f} | {each['size']:.2f}"
        yield f"| {1 - alpha:.0%} | {held} | {100 * each['held_in_halves']:.2f} |"
    yield from ("", "| certain words, right for | right | words kept |", "|:--|--:|--:|")
    for of, alpha in product(("sentences", "words"), ALPHAS):
        cells = (f"{100 * share:.2f} ± {100 * deviation:.2f}" for share, deviation in certain[f"{of} {alpha}"].values())
        yield f"| {1 - alpha:.0%} of {of} | {' | '.join(cells)} |"


def _temperatures(record: Record, kind: str) -> str:
    """The temperatures that probabilities of a kind depend on."""
    arcs, labels = record["temperature"], record.get("label_temperature", record["temperature"])
    used = {"arcs": (arcs,), "labels": (labels,), "labeled_arcs": dict.fromkeys((arcs, labels))}
    return ", ".join(f"{each:.2f}" for each in used[kind])


def main(options: Sequence[str] | None = None) -> None:
    """Make what is missing and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_run_options(parser, OUTPUT)
    parser.add_argument("--model", type=Path, metavar="DIR", help="the config's parser (default: train it)")
    parser.add_argument("--files", default=EWT, metavar="PATTERN", help=f"the treebank's (default: {EWT})")
    parser.add_argument("--config", default="fast", help="a YAML file, or a name from treeparse config (default: fast)")
    parser.add_argument("--changed", type=int, default=200, metavar="N", help="words with a wrong head (default: 200)")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of training and of the words (default: 1)")
    arguments = parser.parse_args(options)
    with working_folder(arguments, "experiment_confidence") as work:
        records = Experiment(arguments, work).results()
    print("\n".join(tables(records)))


if __name__ == "__main__":
    main()
