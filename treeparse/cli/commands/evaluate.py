"""``treeparse evaluate``: score parses, or a model's parses, against gold trees; compare two systems."""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any

from treeparse.cli.common import (
    add_decoder_argument,
    add_import_argument,
    add_overwrite_argument,
    output_file,
    resamples,
    seed,
)
from treeparse.cli.models import (
    EXPECTED_TREE,
    SEVERAL,
    add_combine_argument,
    add_precision_argument,
    check_models,
    leading_models,
    load_models,
)
from treeparse.cli.reliability import calibration_of, calibration_tables
from treeparse.cli.scores import Table, advantage_tables, comparison_tables, lines_of, oracle_table, report_tables
from treeparse.cli.systems import System, read_system, sound_places
from treeparse.corpus.output_checks import check_outputs
from treeparse.data.conllu import ConlluSentence
from treeparse.data.outputs import atomic_write
from treeparse.data.parses import with_parses
from treeparse.errors import TreeparseError
from treeparse.names import TAGS
from treeparse.progress import Announcer, parsing_bar
from treeparse.sentence import Sentence

if TYPE_CHECKING:
    from treeparse.metrics import AttachmentReport, Calibration, Comparison, OracleScores
    from treeparse.metrics.advantages import Advantage, Direction
    from treeparse.model import Parse

HELP = "score parses, or a model's parses, against gold trees"
EPILOG = f"""examples:
  treeparse evaluate gold.conllu parsed.conllu
  treeparse evaluate --model runs/english/model test.conllu --by-label --output scores.json
  treeparse evaluate --model runs/english/model test.conllu --decoder projective
  treeparse evaluate gold.conllu baseline.conllu new.conllu
  treeparse evaluate --model runs/baseline/model --model runs/new/model test.conllu
  treeparse evaluate --model runs/one/model runs/two/model runs/three/model --combine marginals test.conllu
  treeparse evaluate --model runs/english/model test.conllu --html report.html
  treeparse evaluate gold.conllu best.jsonl    # as kbest or sample wrote it: oracle scores, too

UAS, LAS and CLAS are those of the official scorer of the CoNLL 2018 shared task: LAS compares universal labels, and
punctuation counts. Punctuation is what has gold UPOS PUNCT or, where UPOS is _, consists of punctuation characters.
UPOS, XPOS, UFeats (universal features alone) and AllTags are its scores of tags, where the system has its own: those
that a model predicts, and those columns of a file in which some word has another tag than in GOLD.
p says how likely a difference like that of two systems is if they parse equally well (paired bootstrap, two-sided).
Of two systems tables follow of the words that A has right and B has not (head and universal label), and the other way
round: the most frequent mistakes, and the sentences in which one is furthest ahead of the other; --html draws these,
--output has every word.

A SYSTEM that kbest or sample wrote (CoNLL-U with # rank, or a name in .jsonl) counts by its first trees. A
table of oracle scores follows: of the first 1, 2, 4, ... trees of each list, that with the most right heads (UAS) and
that with the most right heads and labels (LAS), over all words; whether the gold tree is among them (complete match);
the mean number of different trees, and the mean of their summed probabilities (mass).

--html writes one page that needs no other file: the tables, the learning curves of a model in its run's folder, scores
by length of sentence and of arc and by label, which labels are taken for which, and the worst parses, drawn; with
--calibration how often what has a probability is right.

--calibration compares the exact probabilities that a --model gives its arcs, its labels (given their arcs, where these
are right) and both together with how often they are right, full labels with subtypes: the expected calibration error
(ECE) in points, by 15 bins of equal width and by 15 of equally many words, and a row for each bin of equal width.
treeparse calibrate fits a model's temperatures.

{SEVERAL}
{EXPECTED_TREE}"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    gold = "CoNLL-U with gold trees, plain or compressed; a glob; - for stdin"
    parser.add_argument("gold", nargs="?", action=_Files, metavar="GOLD", help=gold)
    systems = "parses, or n-best lists, of the same sentences; two are compared"
    parser.add_argument("systems", nargs="*", action=_Files, default=[], metavar="SYSTEM", help=systems)
    model = "parse GOLD with this model; several in a row parse as one"
    parser.add_argument("--model", nargs="+", action=_Models, default=[], metavar="DIR", help=model)
    add_combine_argument(parser)
    add_precision_argument(parser)
    add_decoder_argument(parser)
    add_import_argument(parser)
    parser.add_argument("--by-label", action="store_true", help="print precision, recall and F1 of every label too")
    parser.add_argument(
        "--calibration", action="store_true", help="print whether models' probabilities come true, see below"
    )
    parser.add_argument(
        "--output", type=output_file, metavar="JSON", help="write all scores there; - prints them instead of the tables"
    )
    parser.add_argument(
        "--html", type=output_file, metavar="HTML", help="write a report there; - prints it instead of the tables"
    )
    add_overwrite_argument(parser)
    parser.add_argument("--multi-root", action="store_true", help="allow trees of several roots")
    parser.add_argument("--skip-invalid", action="store_true", help="leave out sentences that are faulty in any file")
    parser.add_argument(
        "--resamples", type=resamples, default=10_000, metavar="N", help="of the bootstrap (default: 10000)"
    )
    parser.add_argument("--seed", type=seed, default=0, metavar="N", help="of the bootstrap (default: 0)")


class _Files(argparse.Action):
    """Takes files in the order of the command line: the first is GOLD, all others are SYSTEMs."""

    def __call__(self, parser: object, namespace: argparse.Namespace, values: Any, option: str | None = None) -> None:
        _take_files(namespace, [values] if isinstance(values, str) else values or [])


class _Models(argparse.Action):
    """Takes folders that parse as one; what follows them are files, which argparse cannot tell apart."""

    def __call__(self, parser: object, namespace: argparse.Namespace, values: Any, option: str | None = None) -> None:
        models, files = leading_models(values)
        namespace.model = [*namespace.model, models]
        _take_files(namespace, files)


def _take_files(namespace: argparse.Namespace, files: Sequence[str]) -> None:
    known = [] if namespace.gold is None else [namespace.gold]
    namespace.gold, *namespace.systems = [*known, *namespace.systems, *files] or [None]


def run(args: argparse.Namespace) -> int:
    """Print the scores as tables and, if asked, write them as JSON."""
    models = [*chain.from_iterable(args.model)]
    check_outputs(
        [args.output, args.html], inputs=[args.gold, *args.systems], others=models, overwrite_input=args.overwrite_input
    )
    check_models(models, args)
    evaluation = _evaluate(args)
    if evaluation.skipped and not args.quiet:
        print(f"treeparse: {evaluation.skipped} faulty sentences left out", file=sys.stderr)
    if "-" not in (args.output, args.html) and not (args.quiet and args.output):
        scores = [*_heading(evaluation, args), "", *lines_of(_tables(evaluation, args))]
        print("\n".join([*scores, *_advantages(evaluation), *_oracles(evaluation), *_calibrations(evaluation)]))
    if args.output is not None:
        atomic_write(args.output, json.dumps(_to_json(evaluation, args), ensure_ascii=False, indent=2) + "\n")
    if args.html is not None:
        atomic_write(args.html, _report(evaluation, args))
    return 0


@dataclass(frozen=True, slots=True)
class _Evaluation:
    names: "list[str]"  # of the systems, as given
    reports: "list[AttachmentReport]"  # one a system
    tags: "list[dict[str, float]]"  # scores by name
    oracles: "list[list[OracleScores] | None]"  # of n-best files
    calibrations: "list[dict[str, Calibration]]"  # of models if asked, else empty
    comparison: "dict[str, Comparison]"  # by score; empty for one system
    skipped: int  # sentences
    gold: "list[ConlluSentence]"
    systems: "list[list[Sentence]]"  # their parses


def _evaluate(args: argparse.Namespace) -> _Evaluation:
    from treeparse.metrics import attachment_scores, paired_bootstrap, tag_scores

    if args.gold is None:
        raise TreeparseError("There are no gold trees to score against: name a file, GOLD.")
    names = [*map(" + ".join, args.model), *args.systems]
    if not 1 <= len(names) <= 2:
        raise TreeparseError(f"There are {len(names)} systems to score: name one or two, as SYSTEM or --model DIR.")
    if args.decoder is not None and not args.model:
        raise TreeparseError("--decoder says how a model parses: name one by --model DIR.")
    if args.combine is not None and not args.model:
        raise TreeparseError("--combine says how several models parse as one: name them by --model DIR DIR.")
    if args.calibration and not args.model:
        raise TreeparseError("--calibration is of a model's probabilities: name one by --model DIR.")
    paths = [args.gold, *args.systems]
    with Announcer(quiet=args.quiet).during("reading the files"):
        files = [read_system(path, args, may_be_nbest=path is not args.gold) for path in paths]
    places = sound_places(files, paths)
    gold, *parses = [[sentence.words for sentence in _sound(file, places)] for file in files]
    parsed = [_parse(directories, gold, args) for directories in args.model]
    systems = [with_parses(gold, found) for found in parsed]
    calibrations = [calibration_of(gold, found) if args.calibration else {} for found in parsed]
    calibrations += [{} for _ in args.systems]
    systems += [_without_copied_tags(gold, words) for words in parses]
    comparison = paired_bootstrap(gold, *systems, resamples=args.resamples, seed=args.seed) if len(names) > 1 else {}
    reports = [attachment_scores(gold, system) for system in systems]
    tags = [tag_scores(gold, system) for system in systems]
    oracles = [None] * len(args.model) + [_oracle(gold, file, places) for file in files[1:]]
    skipped = len(files[0].sentences) - len(gold)
    sentences = _sound(files[0], places)
    return _Evaluation(names, reports, tags, oracles, calibrations, comparison, skipped, sentences, systems)


def _sound(system: System, places: list[int]) -> "list[ConlluSentence]":
    """The sentences in some places, which are sound."""
    chosen = (system.sentences[place] for place in places)
    return [sentence for sentence in chosen if sentence is not None]


def _without_copied_tags(gold: "list[Sentence]", system: "list[Sentence]") -> "list[Sentence]":
    """A file's sentences without the columns of tags that are gold's own: a parser copies what it does not predict."""
    pairs = list(zip(gold, system, strict=True))
    copied = [name for name in TAGS if all(getattr(a, name) == getattr(b, name) for a, b in pairs)]
    return [replace(sentence, **dict.fromkeys(copied)) for sentence in system]


def _oracle(gold: "list[Sentence]", system: System, places: list[int]) -> "list[OracleScores] | None":
    from treeparse.metrics import oracle_scores

    return None if system.lists is None else oracle_scores(gold, system.trees(places), system.log_probs(places))


def _parse(directories: Sequence[str], gold: "list[Sentence]", args: argparse.Namespace) -> "list[Parse]":

    model = load_models(directories, args)
    with parsing_bar(gold, hidden=args.quiet) as progress:
        return model.parse(gold, decoder=args.decoder, probabilities=args.calibration, progress=progress)


def _heading(evaluation: _Evaluation, args: argparse.Namespace) -> list[str]:
    if not evaluation.comparison:
        return [f"gold    {args.gold}", f"system  {evaluation.names[0]}"]
    return [f"gold  {args.gold}", *map("{}     {}".format, "AB", evaluation.names)]


def _tables(evaluation: _Evaluation, args: argparse.Namespace) -> list[Table]:
    if not evaluation.comparison:
        return report_tables(evaluation.reports[0], evaluation.tags[0], by_label=args.by_label)
    first, second = evaluation.reports
    return comparison_tables(first, second, evaluation.comparison, evaluation.tags, by_label=args.by_label)


def _directions(evaluation: _Evaluation) -> "list[Direction]":
    """What one of two systems alone has right."""
    from treeparse.metrics.advantages import directions

    if not evaluation.comparison:
        return []
    return directions([sentence.words for sentence in evaluation.gold], *evaluation.systems)


def _advantages(evaluation: _Evaluation) -> list[str]:
    tables = advantage_tables(evaluation.gold, _directions(evaluation))
    return ["", *lines_of(tables)] if tables else []


def _oracles(evaluation: _Evaluation) -> list[str]:
    named = zip(evaluation.names, evaluation.oracles, strict=True)
    return [line for name, scores in named if scores for line in ("", name, *lines_of([oracle_table(scores)]))]


def _calibrations(evaluation: _Evaluation) -> list[str]:
    named = [pair for pair in zip(evaluation.names, evaluation.calibrations, strict=True) if pair[1]]
    return [line for name, found in named for line in ("", name, *lines_of(calibration_tables(found)))]


def _report(evaluation: _Evaluation, args: argparse.Namespace) -> str:
    from treeparse.cli.report import Judged, report_page, run_history

    histories = [*map(run_history, args.model), *(None for _ in args.systems)]
    columns = (evaluation.names, evaluation.systems, evaluation.reports, evaluation.oracles, evaluation.calibrations)
    systems = [
        Judged(name, words, report, None if oracle is None else oracle_table(oracle), calibrated, history or [])
        for name, words, report, oracle, calibrated, history in zip(*columns, histories, strict=True)
    ]
    found = _directions(evaluation)
    tables = [*_tables(evaluation, args), *advantage_tables(evaluation.gold, found)]
    return report_page(_heading(evaluation, args), tables, evaluation.gold, systems, found)


def _to_json(evaluation: _Evaluation, args: argparse.Namespace) -> dict[str, Any]:
    """Scores are in [0, 1]; the comparison's differences are the second system's score less the first's."""
    systems = []
    columns = (evaluation.names, evaluation.reports, evaluation.tags, evaluation.oracles, evaluation.calibrations)
    for name, report, tags, oracle, calibrated in zip(*columns, strict=True):
        more: dict[str, Any] = {"tags": tags} if tags else {}
        if oracle is not None:
            more["oracle"] = [scores.as_dict() for scores in oracle]
        if calibrated:
            more["calibration"] = {part: values.as_dict() for part, values in calibrated.items()}
        systems.append({"system": name, "scores": report.as_dict(), **more})
    result: dict[str, Any] = {
        "gold": args.gold,
        "sentences_left_out": evaluation.skipped,
        "systems": systems,
    }
    if evaluation.comparison:
        scores = {name: asdict(comparison) for name, comparison in evaluation.comparison.items()}
        result["comparison"] = {"method": "paired bootstrap, shifted", "seed": args.seed, "scores": scores}
        words = {each.right: [_named(evaluation.gold, word) for word in each.words] for each in _directions(evaluation)}
        result["right_alone"] = words
    return result


def _named(gold: "list[ConlluSentence]", found: "Advantage") -> dict[str, Any]:
    """A word that one system alone has right, with its sentence's name and its form."""
    sentence = gold[found.sentence]
    name, form = sentence.sent_id or str(found.sentence + 1), sentence.words.forms[found.word - 1]
    return {"sentence": name, "word": found.word, "form": form, "label": found.label, "other_label": found.other}
