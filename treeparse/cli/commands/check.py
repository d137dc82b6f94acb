"""``treeparse check``: every fault of CoNLL-U files, and what they hold."""

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from treeparse.cli.common import output_file
from treeparse.cli.outputs import add_overwrite_argument, check_outputs
from treeparse.cli.tables import aligned
from treeparse.errors import DataError

if TYPE_CHECKING:
    from treeparse.data.statistics import TreebankStatistics

NAME = "check"
HELP = "report the faults of CoNLL-U files and what they hold"
EPILOG = """examples:
  treeparse check train.conllu dev.conllu
  treeparse check --no-trees parsed.conllu.gz
  treeparse check -q --output faults.json 'treebanks/**/*.conllu'

Faults go to standard output, one a line, as FILE:LINE: sentence SENT_ID: PROBLEM.
The figures leave faulty sentences out. The exit code is 0 for clean files, 1 if there are faults."""

MOST_COLUMNS = 4  # of a table; more files than that show their sum alone


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument(
        "files", nargs="+", metavar="FILE", help="CoNLL-U, plain or compressed; a glob; - for standard input"
    )
    parser.add_argument("--multi-root", action="store_true", help="allow trees of several roots")
    parser.add_argument("--no-trees", action="store_true", help="check the lines only: HEAD need not hold a tree")
    parser.add_argument(
        "--output", type=output_file, metavar="JSON", help="write faults and figures there; - prints them instead"
    )
    add_overwrite_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Check the files; the exit code is 1 if there are faults."""
    from treeparse.data.files import expand_paths
    from treeparse.data.outputs import atomic_write

    check_outputs(args, [args.output], inputs=args.files)
    printed = args.output != "-"
    reports = [_check(path, args, print if printed else _ignore) for path in expand_paths(args.files)]
    if printed and not args.quiet and any(report.statistics.sentences for report in reports):
        blank = [""] if any(report.faults for report in reports) else []
        print("\n".join([*blank, *_table(reports)]))
    if args.output is not None:
        atomic_write(args.output, json.dumps(_to_json(reports), ensure_ascii=False, indent=2) + "\n")
    return int(any(report.faults for report in reports))


@dataclass(slots=True)
class _Report:
    """What was found in one file."""

    path: str
    statistics: "TreebankStatistics"
    faults: list["DataError"] = field(default_factory=list)
    left_out: int = 0  # sentences with faults


def _check(path: Path, args: argparse.Namespace, tell: Callable[["DataError"], object]) -> _Report:
    from treeparse.data.conllu import ConlluSentence, scan_conllu
    from treeparse.data.formats import WrongFormatError
    from treeparse.data.statistics import TreebankStatistics

    faults: list[DataError] = []
    left_out = 0

    def sound_sentences() -> Iterator[ConlluSentence]:
        nonlocal left_out
        for result in scan_conllu(path, require_trees=not args.no_trees, single_root=not args.multi_root):
            if isinstance(result, ConlluSentence):
                yield result
                continue
            for fault in result:
                tell(fault)
            faults.extend(result)
            left_out += result[0].line is not None  # an empty file has a fault but no sentence

    statistics = TreebankStatistics.of(sound_sentences())
    if faults and isinstance(faults[-1], WrongFormatError):
        statistics = TreebankStatistics()  # the few sentences that could be read say nothing of the file
    return _Report(str(path), statistics, faults, left_out)


def _ignore(fault: "DataError") -> None:
    pass


def _to_json(reports: Sequence[_Report]) -> dict[str, Any]:
    return {"files": [_file_to_json(report) for report in reports], "all": _total(reports).statistics.to_json()}


def _file_to_json(report: _Report) -> dict[str, Any]:
    return {
        "file": report.path,
        "faults": [{"line": fault.line, "sent_id": fault.sent_id, "problem": fault.problem} for fault in report.faults],
        "sentences_left_out": report.left_out,
        "statistics": report.statistics.to_json(),
    }


def _total(reports: Sequence[_Report]) -> _Report:
    total = _Report("all", reports[0].statistics, list(reports[0].faults), reports[0].left_out)
    for report in reports[1:]:
        total.statistics += report.statistics
        total.faults += report.faults
        total.left_out += report.left_out
    return total


def _table(reports: Sequence[_Report]) -> list[str]:
    """The figures as lines: a column a file, and their sum where there are several."""
    total = _total(reports)
    own_columns = reports if len(reports) <= MOST_COLUMNS else []
    columns = [*own_columns, total] if len(reports) > 1 else list(reports)
    head = ["", *(_short_name(column.path) for column in columns)]
    figures = [_figures(column) for column in columns]
    rows = [[name, *(figure[name] for figure in figures)] for name in figures[-1]]
    labels = total.statistics.labels
    label_rows = [
        [label, *(f"{column.statistics.labels[label]:,}" for column in columns), _share(count, labels.total())]
        for label, count in labels.most_common()
    ]
    return [*aligned([head, *rows]), "", *aligned([["label", *["words"] * len(columns), "share"], *label_rows])]


def _figures(report: _Report) -> dict[str, str]:
    """One column of the table, by the names of its rows."""
    counted = report.statistics
    lengths = counted.length_summary
    return {
        "faults": f"{len(report.faults):,}",
        "sentences left out": f"{report.left_out:,}",
        "sentences": f"{counted.sentences:,}",
        "words": f"{counted.words:,}",
        "multiword tokens": f"{counted.multiword_tokens:,}",
        "empty nodes": f"{counted.empty_nodes:,}",
        "sentence length: min": f"{lengths.get('min', 0):,}",
        "                 median": f"{lengths.get('median', 0):g}",
        "                 mean": f"{lengths.get('mean', 0):.1f}",
        "                 max": f"{lengths.get('max', 0):,}",
        "trees": f"{counted.trees:,}",
        "roots": f"{counted.roots:,}",
        "non-projective trees": _with_share(counted.nonprojective_sentences, counted.trees),
        "non-projective arcs": _with_share(counted.nonprojective_arcs, counted.arcs),
        "labels": f"{len(counted.labels):,}",
    }


def _short_name(path: str) -> str:
    from treeparse.data.compression import plain_name

    return "<stdin>" if path == "-" else Path(plain_name(path)).name.removesuffix(".conllu")


def _with_share(part: int, whole: int) -> str:
    return f"{part:,} ({_share(part, whole)})" if part else "0"


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.2f}%" if whole else "-"
