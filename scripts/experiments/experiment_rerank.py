"""What reranking is worth: how good the best trees of lists are, and which trees rerankers choose.

    export TREEPARSE_TREEBANKS=...   # the folder that holds UD_English-EWT
    python -m scripts.experiments.experiment_rerank --work runs/rerank

The parsers of a config are cross-trained on folds of EWT's training sentences (treeparse.rerank.crossparsing), which
makes the lists that rerankers learn from: of the best trees, of samples, and of samples without replacement. Lists of
the test set are made in the same three ways by the base parsers: that of the config, trained on all sentences, or those
whose folders are named by --model. Of these it measures the oracle scores, and the scores of the parser's own parse, of
the tree of the highest expected LAS, and of the reranker's choices; the same with the choice of the highest expected
LAS under the reranker. The base weight of a reranker is fitted to lists of the dev set by the same
base parser. No reranker reads tags.

Each result appends a line to a file of JSON lines, and those that stand there are not repeated. In the end it prints
tables.
"""

import argparse
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from statistics import mean

from scripts.support.training.options import add_run_options, working_folder
from scripts.support.training.runs import SCORES, Record, append_record, read_records

from treeparse.data import NBestList, load_treebank, read_nbest, write_nbest
from treeparse.data.parses import with_parses
from treeparse.metrics import attachment_scores, oracle_scores
from treeparse.model import Parser
from treeparse.rerank import (
    ExpectedAccuracy,
    LearningConfig,
    LogLinearConfig,
    Reranker,
    Scorer,
    rerank,
)
from treeparse.rerank.crossparsing import METHODS, Listing, Method, crossparse, listed
from treeparse.sentence import Sentence
from treeparse.shipped import file_or_shipped
from treeparse.training import load_config, train

OUTPUT = Path(__file__).parent / "results" / "experiment_rerank.jsonl"
EWT = "UD_English-EWT/en_ewt-ud-{}.conllu"
RERANKER = "global"  # its name in the results
RUN = ("treebank", "folds", "base", "lists", "chosen_by", "seed")  # tell the results of a file apart
TITLES = {"best": "K best", "samples": "samples", "different_samples": "samples without replacement"}


class Experiment:
    """The results, made where a file lacks them."""

    def __init__(self, arguments: argparse.Namespace, work: Path) -> None:
        self.arguments, self.work, self.output = arguments, work, arguments.output
        self.files = str(arguments.treebanks / arguments.files)
        self.gold = {part: self._sentences(part) for part in ("dev", "test")}
        self.bases = {path.resolve().parent.name: path for path in arguments.model}
        self.output.parent.mkdir(parents=True, exist_ok=True)
        self.records = {tuple(each[name] for name in RUN): each for each in read_records(self.output)}

    def results(self) -> list[Record]:
        """All records of this treebank and these folds."""
        self.bases = self.bases or {self._config_name(): self._trained()}
        for method in self.arguments.lists:
            for base in self.bases:
                self._measure_lists(base, method)
            for seed in self.arguments.seeds:
                self._measure_reranker(method, seed)
        return [each for run, each in self.records.items() if run[:2] == self._run("", "", "", 0)[:2]]

    def _measure_lists(self, base: str, method: Method) -> None:
        """What needs no training."""
        test, k = self.gold["test"], self.arguments.k
        if (run := self._run(base, method, "oracle", 0)) not in self.records:
            lists = self._lists(base, method, "test")
            trees = [[s.with_tree(p.heads, p.labels) for p in each.parses] for s, each in zip(test, lists, strict=True)]
            log_probs = [[parse.log_prob for parse in each.parses] for each in lists]
            found = [scores.as_dict() for scores in oracle_scores(test, trees, log_probs)]
            self._add(run, {"k": k, "oracle": [rounded(each) for each in found]})
        if (run := self._run(base, method, "expected las", 0)) not in self.records:
            self._add(run, {"k": k, **self._scores(self._lists(base, method, "test"), ExpectedAccuracy())})
        if method == "best" and (run := self._run(base, method, "parser", 0)) not in self.records:
            self._add(run, {"k": k, **self._scores(self._lists(base, method, "test"), parsers_own)})

    def _measure_reranker(self, method: Method, seed: int) -> None:
        missing = [base for base in self.bases if self._run(base, method, RERANKER, seed) not in self.records]
        if not missing:
            return
        for base in missing:
            tuned = self._reranker(method, seed).tuned(self.gold["dev"], self._lists(base, method, "dev"))
            lists = self._lists(base, method, "test")
            figures = {"k": self.arguments.k, "base_weight": round(tuned.base_weight, 4)}
            self._add(self._run(base, method, RERANKER, seed), {**figures, **self._scores(lists, tuned)})
            both = self._scores(lists, ExpectedAccuracy(scorer=tuned))
            self._add(self._run(base, method, f"{RERANKER}, expected las", seed), {**figures, **both})

    def _reranker(self, method: Method, seed: int) -> Reranker:
        """A trained reranker, the same for all base parsers."""
        folder = self.work / f"{RERANKER}-{method}-{self.arguments.train_k}-seed{seed}"
        if not folder.is_dir():
            print(f"training {folder.name}", flush=True)
            gold, lists = self._sentences("train"), self._crossparsed(method)
            learning, say = LearningConfig(seed=seed), lambda line: print(line, flush=True)
            Reranker.train(LogLinearConfig(), gold, read_nbest(lists), learning, say=say).save_pretrained(folder)
        return Reranker.from_pretrained(folder)

    def _crossparsed(self, method: Method) -> Path:
        config = load_config(file_or_shipped(self.arguments.config), self._options("folds"))
        return crossparse(config, self.arguments.folds, Listing(self.arguments.train_k, method))

    def _trained(self) -> Path:
        if not (model := self.work / "base" / "model").is_dir():
            train(load_config(file_or_shipped(self.arguments.config), self._options("base")), resume=True)
        return model

    def _options(self, folder: str) -> list[str]:
        paths = {f"data.{part}": self.files.format(part) for part in ("train", "dev")}
        return [f"--{key}={value}" for key, value in {**paths, "output": self.work / folder}.items()]

    def _lists(self, base: str, method: Method, part: str) -> list[NBestList]:
        """The base parser's lists of the dev or test set, made once."""
        listing = Listing(self.arguments.k, method)
        path = self.work / "lists" / f"{base}-{part}-{listing.file}"
        if not path.is_file():
            print(f"listing {path.name}", flush=True)
            path.parent.mkdir(parents=True, exist_ok=True)
            sentences = load_treebank(self.files.format(part))
            parser = Parser.from_pretrained(self.bases[base])
            write_nbest(path, listed(parser, sentences, range(len(sentences)), listing))
        return list(read_nbest(path))

    def _scores(self, lists: Iterable[NBestList], scorer: Scorer) -> Record:
        test = self.gold["test"]
        scores = attachment_scores(test, with_parses(test, [each.parses[0] for each in rerank(lists, scorer)]))
        return {name: round(getattr(scores, name), 6) for name in SCORES}

    def _sentences(self, part: str) -> list[Sentence]:
        return [sentence.words for sentence in load_treebank(self.files.format(part))]

    def _config_name(self) -> str:
        return Path(self.arguments.config).stem

    def _run(self, base: str, method: str, chosen_by: str, seed: int) -> tuple[str | int, ...]:
        folds = f"{self._config_name()}, {self.arguments.folds} folds, {self.arguments.train_k} trees"
        return (Path(self.arguments.files).parent.name, folds, base, method, chosen_by, seed)

    def _add(self, run: tuple[str | int, ...], figures: Record) -> None:
        self.records[run] = {**dict(zip(RUN, run, strict=True)), **figures}
        append_record(self.output, self.records[run])
        print(" ".join(map(str, run[2:])), figures.get("las", ""), flush=True)


def parsers_own(nbest: NBestList) -> list[float]:
    """The order of the lists as they are."""
    return [-float(place) for place in range(len(nbest.parses))]


def rounded(figures: Record) -> Record:
    """The figures with six digits."""
    return {name: round(value, 6) if isinstance(value, float) else value for name, value in figures.items()}


def tables(records: Sequence[Record]) -> Iterator[str]:
    """Markdown: oracle scores by list size, and the scores of what is chosen."""
    for base in dict.fromkeys(each["base"] for each in records):
        own = [each for each in records if each["base"] == base]
        yield from ("", f"Base parser {base}: oracle LAS, and the trees' summed probability", "")
        yield from oracle_table([each for each in own if each["chosen_by"] == "oracle"])
        yield from ("", f"Base parser {base}: what is chosen from the lists", "")
        yield from choice_table([each for each in own if each["chosen_by"] != "oracle"])


def oracle_table(records: Sequence[Record]) -> Iterator[str]:
    """A row a size."""
    yield "| first K | " + " | ".join(f"{TITLES[each['lists']]}, LAS | mass" for each in records) + " |"
    yield "|--:|" + "--:|--:|" * len(records)
    for rows in zip(*(each["oracle"] for each in records), strict=False):
        cells = (f"{100 * row['las']:.2f} | {row['mass']:.3f}" for row in rows)
        yield f"| {rows[0]['size']} | {' | '.join(cells)} |"


def choice_table(records: Sequence[Record]) -> Iterator[str]:
    """A row for each way of listing and choosing: means over seeds."""
    yield "| lists | chosen by | seeds | UAS | LAS | complete |"
    yield "|:--|:--|--:|--:|--:|--:|"
    for lists, chosen in dict.fromkeys((each["lists"], each["chosen_by"]) for each in records):
        own = [each for each in records if (each["lists"], each["chosen_by"]) == (lists, chosen)]
        figures = (f"{100 * mean(each[name] for each in own):.2f}" for name in ("uas", "las", "complete_match"))
        yield f"| {TITLES[lists]} | {chosen} | {len(own)} | {' | '.join(figures)} |"


def main(options: Sequence[str] | None = None) -> None:
    """Make what is missing and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_run_options(parser, OUTPUT)
    parser.add_argument("--model", type=Path, nargs="*", default=[], metavar="DIR", help="base parsers, as RUN/model")
    parser.add_argument("--files", default=EWT, metavar="PATTERN", help=f"the treebank's (default: {EWT})")
    parser.add_argument("--config", default="fast", help="of the parsers of the folds (default: fast)")
    parser.add_argument("--folds", type=int, default=4, metavar="N", help="(default: 4)")
    parser.add_argument("--train-k", type=int, default=32, metavar="K", help="parses of a training list (default: 32)")
    parser.add_argument("-k", type=int, default=64, metavar="K", help="parses of a test list (default: 64)")
    parser.add_argument("--lists", nargs="+", choices=METHODS, default=METHODS, help="(default: all)")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3], help="of the reranker (default: 1 2 3)")
    arguments = parser.parse_args(options)
    with working_folder(arguments, "experiment_rerank") as work:
        records = Experiment(arguments, work).results()
    print("\n".join(tables(records)))


if __name__ == "__main__":
    main()
