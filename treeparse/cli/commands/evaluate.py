"""``treeparse evaluate``: score parses, or a model's parses, against gold trees; compare two systems."""

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain
from typing import Any

from treeparse import terminal
from treeparse.cli.common import add_decoder_argument, add_overwrite_argument, output_file, percent, seed, whole
from treeparse.cli.models import (
    EXPECTED_TREE,
    SEVERAL,
    add_model_arguments,
    check_models,
    leading_models,
    load_models,
    warn_of_mean_treebank,
)
from treeparse.cli.score_reports import (
    ScoredSystem,
    Table,
    advantage_tables,
    calibration_of,
    calibration_tables,
    comparison_tables,
    lines_of,
    oracle_table,
    report_page,
    report_tables,
)
from treeparse.cli.systems import System, read_systems, tokenised
from treeparse.corpus.request import check_outputs
from treeparse.data.columns import titles_of
from treeparse.data.conllu import ConlluSentence
from treeparse.data.outputs import atomic_write
from treeparse.data.parses import with_parses
from treeparse.errors import TreeparseError
from treeparse.metrics import Comparison, attachment_scores, oracle_scores, paired_bootstrap, tag_scores
from treeparse.metrics.alignment import aligned_scores
from treeparse.metrics.counts import mean_of_known, without_nan
from treeparse.metrics.error_analysis import (
    Advantage,
    Direction,
    directions,
)
from treeparse.model import Ensemble, Parser
from treeparse.names import TAGS
from treeparse.progress import Console, parsing_bar
from treeparse.sentence import Sentence, missing_labels

MOST_RESAMPLES = 10**7  # all are in memory at once
ALIGNED = "Words or sentences differ from gold's: they are aligned as by the official scorer of CoNLL 2018."
OF_MODELS = {  # options that need a model, and what to do
    "decoder": "says how a model parses: name one by --model DIR.",
    "combine": "says how several models parse as one: name them by --model DIR DIR.",
    "calibration": "is of a model's probabilities: name one by --model DIR.",
    "treebank": "says as which treebank a model parses: name one by --model DIR.",
}
EPILOG = f"""examples:
  treeparse evaluate gold.conllu parsed.conllu
  treeparse evaluate --model runs/english/model test.conllu --by-label --output scores.json
  treeparse evaluate --model runs/english/model test.conllu --decoder projective
  treeparse evaluate gold.conllu baseline.conllu new.conllu
  treeparse evaluate --model runs/baseline/model --model runs/new/model test.conllu
  treeparse evaluate --model runs/one/model runs/two/model runs/three/model --combine marginals test.conllu
  treeparse evaluate --model runs/english/model test.conllu --html report.html
  treeparse evaluate --model runs/both/model --treebank ewt=ewt.conllu --treebank gum=gum.conllu
  treeparse evaluate gold.conllu best.jsonl    # as kbest or sample wrote it: oracle scores, too

UAS, LAS and CLAS are computed as by the official scorer of the CoNLL 2018 shared task: LAS compares universal labels,
and punctuation counts. Words without a label in GOLD (DEPREL is _) have no part in scores of labels: without any
label, these scores are -, and null in JSON. Punctuation is every word of gold UPOS PUNCT or, if UPOS is _, of
punctuation characters only.

With one --model, files that begin with other words than GOLD are gold files, too: each has a row of scores, and the
last row is the mean of these rows (a macro average). --treebank NAME=GOLD adds such a file, which a model that was
trained on several treebanks parses as NAME; --treebank NAME is for all files.

UPOS, XPOS, UFeats (universal features only) and AllTags are that scorer's scores of tags: of the tags that a model
predicts, and of those columns of a file that differ from GOLD.

If a SYSTEM has the text of GOLD, but other words or sentences, as a parse of raw text has, its words are aligned with
gold's as that scorer does, and the scores are its F1, precision and recall of tokens, sentences, words, tags, heads and
labels. Then there is no second system, no --by-label and no --html.

Two systems are compared by a paired bootstrap: p is the two-sided probability of such a difference if both parse
equally well. Two more tables list the words that A has right and B has wrong (head and universal label), and the
reverse: the most frequent mistakes, and the sentences in which one system is furthest ahead; --html draws these
sentences, --output lists every word.

Of a SYSTEM of lists, as kbest and sample write them (CoNLL-U with # rank, # log_prob and # score, and the rank at the
end of # sent_id; or a name in .jsonl), the first trees are scored. A table of oracle scores follows: of the first 1, 2,
4, ... trees of each list, the tree with the most right heads (UAS) and the tree with the most right heads and labels
(LAS), over all words; whether the gold tree is among them (complete match); the mean number of different trees, and the
mean of their summed probabilities (mass).

--html writes one self-contained page: the tables, the learning curves of a model whose folder is in a run's, scores by
length of sentence and of arc, by depth and by label, confusions of labels, the worst parses as drawings, and with
--calibration how often arcs and labels of a probability are right.

--calibration compares the exact probabilities that a --model gives its arcs, its labels (given right arcs) and both
together with how often these are right, full labels with subtypes: the expected calibration error (ECE) in points, by
15 bins of equal width and by 15 of equally many words, and a row for each bin of equal width. treeparse calibrate fits
a model's temperatures.

{SEVERAL}
{EXPECTED_TREE}"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument(
        "gold",
        nargs="?",
        action=_Files,
        metavar="GOLD",
        help="CoNLL-U with gold trees, plain or compressed; a glob; - for stdin",
    )
    parser.add_argument(
        "systems",
        nargs="*",
        action=_Files,
        default=[],
        metavar="SYSTEM",
        help="parses or n-best lists of the same sentences; two systems are compared",
    )
    parser.add_argument(
        "--model",
        nargs="+",
        action=_Models,
        default=[],
        metavar="DIR",
        help="the folder of a model, which parses GOLD; several in a row parse as one",
    )
    add_model_arguments(parser)
    add_decoder_argument(parser)
    parser.add_argument(
        "--treebank",
        action=_Treebanks,
        metavar="NAME[=GOLD]",
        help="parse as this treebank is annotated, all files or a gold file of its own",
    )
    parser.set_defaults(treebank_of={})
    parser.add_argument("--by-label", action="store_true", help="print precision, recall and F1 of every label too")
    parser.add_argument("--calibration", action="store_true", help="report how well probabilities are calibrated")
    parser.add_argument("--output", type=output_file, metavar="JSON", help="write all scores; - is standard output")
    parser.add_argument("--html", type=output_file, metavar="HTML", help="write a report; - is standard output")
    add_overwrite_argument(parser)
    parser.add_argument("--multi-root", action="store_true", help="allow trees of several roots")
    parser.add_argument("--skip-invalid", action="store_true", help="leave out sentences that are faulty in any file")
    parser.add_argument(
        "--resamples",
        type=whole(1, MOST_RESAMPLES),
        default=10_000,
        metavar="N",
        help="samples of the bootstrap, which compares two systems (default: 10000)",
    )
    parser.add_argument("--seed", type=seed, default=0, metavar="N", help="seed of the bootstrap (default: 0)")


class _Files(argparse.Action):
    """Stores files in the order of the command line: the first is GOLD, all others are SYSTEMs."""

    def __call__(self, parser: object, namespace: argparse.Namespace, values: Any, option: str | None = None) -> None:
        files = [values] if isinstance(values, str) else values or []
        known = [] if namespace.gold is None else [namespace.gold]
        namespace.gold, *namespace.systems = [*known, *namespace.systems, *files] or [None]


class _Models(_Files):
    """Stores folders of models that parse as one, and files after them, which argparse cannot tell apart."""

    def __call__(self, parser: object, namespace: argparse.Namespace, values: Any, option: str | None = None) -> None:
        models, files = leading_models(values)
        namespace.model = [*namespace.model, models]
        super().__call__(parser, namespace, files, option)


class _Treebanks(_Files):
    """Stores the name of a treebank for all files, or a gold file and the name of its treebank."""

    def __call__(self, parser: object, namespace: argparse.Namespace, values: Any, option: str | None = None) -> None:
        name, equals, file = values.partition("=")
        if not equals:
            namespace.treebank = name
            return
        if file in namespace.treebank_of:
            raise argparse.ArgumentError(self, f"{file} can have one treebank alone")
        namespace.treebank_of = {**namespace.treebank_of, file: name}
        super().__call__(parser, namespace, file, option)


def run(args: argparse.Namespace) -> int:
    """Print the scores as tables and, if asked, write them as JSON and as HTML."""
    models = [*chain.from_iterable(args.model)]
    outputs, inputs = [args.output, args.html], [args.gold, *args.systems]
    check_outputs(outputs, inputs=inputs, others=models, overwrite_input=args.overwrite_input)
    check_models(models, args)
    _check_systems(args)
    any_words = len(args.systems) == 1 and not (args.model or args.html or args.by_label)
    with Console(quiet=args.quiet).during("reading the files"):
        patterns = [args.gold, *args.systems]
        any_gold = len(args.model) == 1 and len(patterns) > 1
        options = {"any_words": any_words, "any_gold": any_gold, "all_gold": any_gold and bool(args.treebank_of)}
        files, indices, left_out = read_systems(patterns, args, has_gold=True, **options)
    if left_out and not args.quiet:
        terminal.warn(f"treeparse: {left_out} faulty sentences left out")
    if indices:
        _check_count(args)
    if not indices and args.model:
        _write_rows(patterns, files, left_out, args)
        return 0
    if not indices:
        _write_aligned(files[0], files[1], args)
        return 0
    evaluation = _evaluate(files, left_out, args)
    systems, tables = evaluation.systems, _tables(evaluation, args)
    named = [
        f"{system.name}, which reads {system.reads} of gold" if system.reads else system.name for system in systems
    ]
    heading = [f"gold    {args.gold}", f"system  {named[0]}"]
    if len(systems) > 1:
        heading = [f"gold  {args.gold}", *(f"{side}     {name}" for side, name in zip("AB", named, strict=True))]
    clause = missing_labels(sentence.words for sentence in evaluation.gold)
    if clause and not args.quiet:
        terminal.warn(f"treeparse: in {args.gold} {clause}: scores of labels leave these words out")
    if "-" not in (args.output, args.html) and not (args.quiet and args.output):
        of_systems = [(system.name, [oracle_table(system.oracle)]) for system in systems if system.oracle]
        of_systems += [
            (system.name, calibration_tables(system.calibration)) for system in systems if system.calibration
        ]
        more = [line for name, more_tables in of_systems for line in ("", name, *lines_of(more_tables))]
        terminal.write(*heading, "", *lines_of(tables), *more)
    if args.output is not None:
        atomic_write(args.output, json.dumps(_to_json(evaluation, args), ensure_ascii=False, indent=2) + "\n")
    if args.html is not None:
        atomic_write(args.html, report_page(heading, tables, evaluation.gold, systems, evaluation.directions))
    return 0


@dataclass(frozen=True, slots=True)
class _Evaluation:
    gold: list[ConlluSentence]
    systems: list[ScoredSystem]
    comparison: dict[str, Comparison]  # by score; empty for one system
    directions: list[Direction]  # the words that one of two systems alone has right
    left_out: int  # faulty sentences


def _check_systems(args: argparse.Namespace) -> None:
    """Raise unless there are gold trees, and one or two systems that the options fit."""
    if args.gold is None:
        raise TreeparseError("There are no gold trees to score against: name a file, GOLD.")
    if len(args.model) != 1:  # otherwise files may be gold of their own
        _check_count(args)
    for option, remedy in OF_MODELS.items():
        if getattr(args, option) and not args.model:
            raise TreeparseError(f"--{option} {remedy}")
    if args.treebank_of and len(args.model) != 1:
        raise TreeparseError("--treebank NAME=GOLD is for one model: name it by --model DIR.")


def _check_count(args: argparse.Namespace) -> None:
    count = len(args.model) + len(args.systems)
    if not 1 <= count <= 2:
        raise TreeparseError(f"There are {count} systems to score: name one or two, as SYSTEM or --model DIR.")


def _write_rows(patterns: Sequence[str], files: Sequence[System], left_out: int, args: argparse.Namespace) -> None:
    """Print the scores of a model on several gold files, and their means and, if asked, write them as JSON."""
    if args.html or args.by_label or args.calibration:
        raise TreeparseError("--html, --by-label and --calibration are of one gold file: name one.")
    (directories,) = args.model
    model, names = _load(directories, patterns, args), {"uas": "UAS", "las": "LAS", "clas": "CLAS"}
    reports = []
    for pattern, file in zip(patterns, files, strict=True):
        gold = [sentence.words for sentence in file.sentences]
        reports.append(_scored_models(model, directories, gold, pattern, args).report)
    means = {name: mean_of_known([getattr(report, name) for report in reports]) for name in names}
    if args.output != "-" and not (args.quiet and args.output):
        rows = [["gold", "sentences", "words", *names.values()]]
        for pattern, report in zip(patterns, reports, strict=True):
            scores = (percent(getattr(report, name)) for name in names)
            rows.append([pattern, f"{report.sentences:,}", f"{report.words:,}", *scores])
        rows.append(["mean", "", "", *map(percent, means.values())])
        terminal.write(f"system  {' + '.join(directories)}", "", *lines_of([rows]))
    if args.output is not None:
        scored = [
            {"gold": pattern, "treebank": _treebank(pattern, args), "scores": report.as_dict()}
            for pattern, report in zip(patterns, reports, strict=True)
        ]
        result = {"system": " + ".join(directories), "sentences_left_out": left_out, "files": scored}
        result["mean"] = without_nan(means.items())
        atomic_write(args.output, json.dumps(result, ensure_ascii=False, indent=2) + "\n")


def _treebank(pattern: str, args: argparse.Namespace) -> str | None:
    """Return the treebank as which a model parses a gold file."""
    return args.treebank_of.get(pattern, args.treebank)


def _load(directories: Sequence[str], patterns: Sequence[str], args: argparse.Namespace) -> Parser | Ensemble:
    """Return the models; say if they parse one of the gold files as the mean of several treebanks."""
    model, names = load_models(directories, args), [_treebank(pattern, args) for pattern in patterns]
    warn_of_mean_treebank(model, None if None in names else names[0], args)
    return model


def _write_aligned(gold: System, system: System, args: argparse.Namespace) -> None:
    """Print the scores of a file of other words or sentences than gold and, if asked, write them as JSON."""
    scores = aligned_scores(*([*map(tokenised, file.sentences)] for file in (gold, system)))
    if args.output != "-" and not (args.quiet and args.output):
        rows = [["", "F1", "precision", "recall", "gold", "system"]]
        for name, score in scores.items():
            shares = map(percent, (score.f1, score.precision, score.recall))
            rows.append([name, *shares, f"{score.gold:,}", f"{score.system:,}"])
        terminal.write(f"gold    {args.gold}", f"system  {args.systems[0]}", "", ALIGNED, "", *lines_of([rows]))
    if args.output is not None:
        aligned = {name: asdict(score) for name, score in scores.items()}
        result = {"gold": args.gold, "systems": [{"system": args.systems[0], "aligned": aligned}]}
        atomic_write(args.output, json.dumps(result, ensure_ascii=False, indent=2) + "\n")


def _evaluate(files: Sequence[System], left_out: int, args: argparse.Namespace) -> _Evaluation:
    gold_file, *systems_of_files = files
    gold = [sentence.words for sentence in gold_file.sentences]
    models = [(_load(directories, [args.gold], args), directories) for directories in args.model]
    systems = [_scored_models(*pair, gold, args.gold, args) for pair in models]
    systems += [_scored_file(path, file, gold) for path, file in zip(args.systems, systems_of_files, strict=True)]
    if len(systems) == 1:
        return _Evaluation(gold_file.sentences, systems, {}, [], left_out)
    pair = [system.parses for system in systems]
    comparison = paired_bootstrap(gold, *pair, resamples=args.resamples, seed=args.seed)
    return _Evaluation(gold_file.sentences, systems, comparison, directions(gold, *pair), left_out)


def _scored_models(
    model: Parser | Ensemble, directories: Sequence[str], gold: list[Sentence], pattern: str, args: argparse.Namespace
) -> ScoredSystem:
    """Parse the gold sentences of a file with models that parse as one, and score the parses."""
    options = {"decoder": args.decoder, "probabilities": args.calibration, "treebank": _treebank(pattern, args)}
    with parsing_bar(gold, hidden=args.quiet) as progress:
        parses = model.parse(gold, progress=progress, **options)
    trees, calibration = with_parses(gold, parses), calibration_of(gold, parses) if args.calibration else {}
    report, tags = attachment_scores(gold, trees), tag_scores(gold, trees)
    columns = dict.fromkeys(name for network in model.networks for name in network.indexer.features.tag_columns())
    name, reads = " + ".join(directories), titles_of(columns)
    return ScoredSystem(name, trees, report, tags, calibration=calibration, models=directories, reads=reads)


def _scored_file(path: str, file: System, gold: list[Sentence]) -> ScoredSystem:
    """Score the trees of a file; columns of tags equal to gold's have no scores, because parsers copy them."""
    pairs = [(words, sentence.words) for words, sentence in zip(gold, file.sentences, strict=True)]
    copied = [name for name in TAGS if all(getattr(a, name) == getattr(b, name) for a, b in pairs)]
    parses, oracle = [replace(words, **dict.fromkeys(copied)) for _, words in pairs], None
    if (lists := file.lists) is not None:
        trees = [[nbest.sentence.words.with_tree(p.heads, p.labels) for p in nbest.parses] for nbest in lists]
        oracle = oracle_scores(gold, trees, [[p.log_prob for p in nbest.parses] for nbest in lists])
    return ScoredSystem(path, parses, attachment_scores(gold, parses), tag_scores(gold, parses), oracle)


def _tables(evaluation: _Evaluation, args: argparse.Namespace) -> list[Table]:
    if not evaluation.comparison:
        return report_tables(evaluation.systems[0], by_label=args.by_label)
    first, second = evaluation.systems
    tables = comparison_tables(first, second, evaluation.comparison, by_label=args.by_label)
    return [*tables, *advantage_tables(evaluation.gold, evaluation.directions)]


def _to_json(evaluation: _Evaluation, args: argparse.Namespace) -> dict[str, Any]:
    """Return scores from 0 to 1; the comparison's differences are the second system's score minus the first's."""
    systems = []
    for system in evaluation.systems:
        values: dict[str, Any] = {"system": system.name, "scores": system.report.as_dict()}
        if system.reads:
            values["reads"] = system.reads
        if system.tags:
            values["tags"] = system.tags
        if system.oracle is not None:
            values["oracle"] = [scores.as_dict() for scores in system.oracle]
        if system.calibration:
            values["calibration"] = {part: figures.as_dict() for part, figures in system.calibration.items()}
        systems.append(values)
    result: dict[str, Any] = {"gold": args.gold, "sentences_left_out": evaluation.left_out, "systems": systems}
    if evaluation.comparison:
        scores = {name: asdict(comparison) for name, comparison in evaluation.comparison.items()}
        result["comparison"] = {"method": "paired bootstrap, shifted", "seed": args.seed, "scores": scores}
        result["right_alone"] = {
            direction.right: [_advantage(evaluation.gold, word) for word in direction.words]
            for direction in evaluation.directions
        }
    return result


def _advantage(gold: list[ConlluSentence], word: Advantage) -> dict[str, Any]:
    """Return a word that one system alone has right, with its sentence's name and its form."""
    sentence = gold[word.sentence]
    name, form = sentence.sent_id or str(word.sentence + 1), sentence.words.forms[word.word - 1]
    return {"sentence": name, "word": word.word, "form": form, "label": word.label, "other_label": word.other}
