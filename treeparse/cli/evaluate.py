"""``treeparse evaluate``: score parses, or a model's parses, against gold trees; compare two systems."""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from treeparse.cli.common import add_decoder_argument, output_file, resamples, seed
from treeparse.cli.scores import comparison_tables, report_tables

if TYPE_CHECKING:
    from treeparse.core import Sentence
    from treeparse.data.conllu import ConlluSentence
    from treeparse.metrics import AttachmentReport, Comparison

NAME = "evaluate"
HELP = "score parses, or a model's parses, against gold trees"
EPILOG = """examples:
  treeparse evaluate gold.conllu parsed.conllu
  treeparse evaluate --model runs/english/model test.conllu --by-label --output scores.json
  treeparse evaluate --model runs/english/model test.conllu --decoder projective
  treeparse evaluate gold.conllu baseline.conllu new.conllu
  treeparse evaluate --model runs/baseline/model --model runs/new/model test.conllu

UAS, LAS and CLAS are those of the official scorer of the CoNLL 2018 shared task: LAS compares universal labels, and
punctuation counts. Punctuation is what has gold UPOS PUNCT or, where UPOS is _, consists of punctuation characters.
p says how likely a difference like that of two systems is if they parse equally well (paired bootstrap, two-sided)."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("gold", metavar="GOLD", help="CoNLL-U with gold trees, plain or .gz; a glob; - for stdin")
    parser.add_argument("systems", nargs="*", metavar="SYSTEM", help="parses of the same sentences; two are compared")
    parser.add_argument("--model", action="append", default=[], metavar="DIR", help="parse GOLD with this model")
    add_decoder_argument(parser)
    parser.add_argument("--by-label", action="store_true", help="print precision, recall and F1 of every label too")
    parser.add_argument(
        "--output", type=output_file, metavar="JSON", help="write all scores there; - prints them instead of the tables"
    )
    parser.add_argument("--multi-root", action="store_true", help="allow trees of several roots")
    parser.add_argument("--skip-invalid", action="store_true", help="leave out sentences that are faulty in any file")
    parser.add_argument(
        "--resamples", type=resamples, default=10_000, metavar="N", help="of the bootstrap (default: 10000)"
    )
    parser.add_argument("--seed", type=seed, default=0, metavar="N", help="of the bootstrap (default: 0)")


def run(args: argparse.Namespace) -> int:
    """Print the scores as tables and, if asked, write them as JSON."""
    from treeparse.data.files import atomic_write

    evaluation = _evaluate(args)
    if evaluation.skipped and not args.quiet:
        print(f"treeparse: {evaluation.skipped} faulty sentences left out", file=sys.stderr)
    if args.output != "-" and not (args.quiet and args.output):
        print("\n".join(_tables(evaluation, args)))
    if args.output is not None:
        atomic_write(args.output, json.dumps(_to_json(evaluation, args), ensure_ascii=False, indent=2) + "\n")
    return 0


@dataclass(frozen=True, slots=True)
class _Evaluation:
    names: "list[str]"  # of the systems, as given
    reports: "list[AttachmentReport]"  # one a system
    comparison: "dict[str, Comparison]"  # by score; empty for one system
    skipped: int  # sentences


def _evaluate(args: argparse.Namespace) -> _Evaluation:
    from treeparse.core import TreeparseError
    from treeparse.metrics import attachment_scores, paired_bootstrap

    names = [*args.model, *args.systems]
    if not 1 <= len(names) <= 2:
        raise TreeparseError(f"There are {len(names)} systems to score: name one or two, as SYSTEM or --model DIR.")
    if args.decoder is not None and not args.model:
        raise TreeparseError("--decoder says how a model parses: name one by --model DIR.")
    files = [_read_file(path, args) for path in (args.gold, *args.systems)]
    gold, *parses = _sound_together(files, [args.gold, *args.systems])
    systems = [_parse(directory, gold, args) for directory in args.model] + parses
    comparison = paired_bootstrap(gold, *systems, resamples=args.resamples, seed=args.seed) if len(names) > 1 else {}
    reports = [attachment_scores(gold, system) for system in systems]
    return _Evaluation(names, reports, comparison, skipped=len(files[0]) - len(gold))


def _read_file(pattern: str, args: argparse.Namespace) -> "list[ConlluSentence | None]":
    """Every sentence of a file, or of several that a glob names; None in the place of one to skip."""
    from treeparse.data.conllu import ConlluSentence, scan_conllu
    from treeparse.data.files import expand_paths

    sentences: list[ConlluSentence | None] = []
    for path in expand_paths([pattern]):
        for result in scan_conllu(path, require_trees=True, single_root=not args.multi_root):
            sound = isinstance(result, ConlluSentence)
            if not sound and (result[0].line is None or not args.skip_invalid):  # no line: the file holds no sentence
                raise result[0]
            sentences.append(result if sound else None)
    return sentences


def _sound_together(files: "list[list[ConlluSentence | None]]", paths: Sequence[str]) -> "list[list[Sentence]]":
    """The sentences of each file that are sound in every file, after a check that all have the same words."""
    from treeparse.core import DataError, TreeparseError
    from treeparse.metrics import REMEDY, word_mismatch

    kept: list[list[Sentence]] = [[] for _ in files]
    for same in zip(*files, strict=False):
        sound = [sentence for sentence in same if sentence is not None]
        if len(sound) < len(files):
            continue
        for place, sentence in enumerate(sound):
            if problem := word_mismatch(sound[0].words, sentence.words):
                source, line, sent_id = sentence.source, sentence.line, sentence.sent_id
                raise DataError(f"{problem}; {REMEDY}", source=source, line=line, sent_id=sent_id)
            kept[place].append(sentence.words)
    if len(set(map(len, files))) > 1:
        sizes = ", ".join(f"{len(file):,} in {path}" for path, file in zip(paths, files, strict=True))
        raise TreeparseError(f"The files differ in their number of sentences: {sizes}; {REMEDY}.")
    if not kept[0]:
        raise TreeparseError(f"No sentence is sound in all of: {', '.join(paths)}.")
    return kept


def _parse(directory: str, gold: "Sequence[Sentence]", args: argparse.Namespace) -> "list[Sentence]":
    from treeparse.core import pick_device
    from treeparse.model import Parser

    parser = Parser.from_pretrained(directory).to(pick_device(args.device))
    parses = parser.parse(gold, decoder=args.decoder)
    return [sentence.with_tree(parse.heads, parse.labels) for sentence, parse in zip(gold, parses, strict=True)]


def _tables(evaluation: _Evaluation, args: argparse.Namespace) -> list[str]:
    if not evaluation.comparison:
        [name], [report] = evaluation.names, evaluation.reports
        return [f"gold    {args.gold}", f"system  {name}", "", *report_tables(report, by_label=args.by_label)]
    first, second = evaluation.reports
    tables = comparison_tables(first, second, evaluation.comparison, by_label=args.by_label)
    return [f"gold  {args.gold}", *map("{}     {}".format, "AB", evaluation.names), "", *tables]


def _to_json(evaluation: _Evaluation, args: argparse.Namespace) -> dict[str, Any]:
    """Scores are in [0, 1]; the comparison's differences are the second system's score less the first's."""
    scored = zip(evaluation.names, evaluation.reports, strict=True)
    result = {
        "gold": args.gold,
        "sentences_left_out": evaluation.skipped,
        "systems": [{"system": name, "scores": report.as_dict()} for name, report in scored],
    }
    if evaluation.comparison:
        scores = {name: asdict(comparison) for name, comparison in evaluation.comparison.items()}
        result["comparison"] = {"method": "paired bootstrap, shifted", "seed": args.seed, "scores": scores}
    return result
