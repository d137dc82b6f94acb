"""``treeparse check``: report every fault of CoNLL-U files, and figures about their trees."""

import argparse
import io
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from heapq import nlargest
from itertools import chain, islice, permutations
from pathlib import Path
from typing import Any

from treeparse import terminal
from treeparse.cli.common import add_overwrite_argument, counted, output_file
from treeparse.cli.score_reports import Table, lines_of
from treeparse.cli.systems import figure_of, section_of, tree_of
from treeparse.corpus.request import check_outputs
from treeparse.data.conllu import ConlluSentence, scan_conllu
from treeparse.data.features.root_label import RootLabelUse
from treeparse.data.files import check_rereadable, expand_paths, open_input, plain_name
from treeparse.data.outputs import atomic_write
from treeparse.data.statistics import Doubts, SentenceIndex, TreebankStatistics
from treeparse.data.validation import CONVERT, NO_HEADS, NO_LABELS, NO_UTF8, TreeCheck
from treeparse.errors import DataError, TreeparseError
from treeparse.pictures.page import Figure, Section, figure, html_page, part, sections_html, table
from treeparse.pictures.plots import ShareBar, draw_bars
from treeparse.sentence import EMPTY, Sentence, nonprojective_words

MOST_BARS = 25  # labels or tags
MOST_DRAWN = 20  # trees of a kind
LENGTHS = ((1, 5), (6, 10), (11, 15), (16, 20), (21, 30), (31, 40), (41, 60))  # words of a sentence

Sentences = Callable[[], Iterator[ConlluSentence]]
"""Reads the sound sentences of all files, each time anew."""
EPILOG = """examples:
  treeparse check train.conllu dev.conllu
  treeparse check --no-trees parsed.conllu.gz
  treeparse check --ud train.conllu
  treeparse check -q --output faults.json 'treebanks/**/*.conllu'

Standard output gets each fault as a line, FILE:LINE: sentence SENT_ID: PROBLEM, of a kind the first ten and then their
number, and after them figures, which leave faulty sentences out. The exit code is 0 for clean files, 1 if there are
faults. Notes are no faults. They say where the label root and the arcs from the root disagree, where words have no form
(FORM is _), where a sent_id is repeated, # text differs from the words, or characters are not composed (NFC). Of
several files they name the sentences (of the same words) that two files share, and the labels, UPOS tags and features
that one file has and another lacks.

--ud asks the official validator of Universal Dependencies about files without faults: its levels 1 and 2, which hold
for all languages. It refuses what other commands read, such as line ends of Windows or a sentence without its text.

--html draws figures, the first trees with non-projective arcs, and the trees with the most arcs of a kind (tag of the
head, label, tag of the dependent) that occurs once in all files: some of these are errors of annotation."""
MOST_ALIKE = 10  # faults that are printed; more are counted
VARIABLE = re.compile(r"'[^']*'|[\d,]+|: .*")  # of a problem: quoted texts, numbers and words of a cycle
MOST_COLUMNS = 4  # of a table; of more files it has only the sum
MOST_NAMED = 10  # labels, features or pairs of files that notes name
KINDS = {"labels": "label", "upos": "UPOS tag", "features": "feature"}  # compared items, by the field of their counts
WITHOUT_HEADS = "check files to parse with --no-trees; training takes such sentences with data.partial true"
WITHOUT_LABELS = "with --no-trees, the lines alone are checked"
TOGETHER = {NO_HEADS: WITHOUT_HEADS, NO_LABELS: WITHOUT_LABELS, NO_UTF8: CONVERT}  # problems, remedies


def treebank_page(title: str, tables: Sequence[Table], counts: TreebankStatistics, read: Sentences) -> str:
    """Return the HTML page of a treebank with these tables and counts; ``read`` is called twice."""
    first, *others = map(table, tables)
    charts = f'<div class="tp-figures">{"".join(map(figure, _bars(counts)))}</div>\n'
    body = [part("figures", "".join([first, charts, *others]))]
    kinds = Counter(kind for sentence in read() for kind in _kinds(sentence.words))
    rare, crossing = _worth_a_look(read(), kinds)
    for anchor, heading, sections in (
        ("rare", "Trees with arcs of a kind that occurs once (tag of the head, label, tag of the dependent)", rare),
        ("crossing", "Trees with non-projective arcs", crossing),
    ):
        if sections:
            body += [part(anchor, f"<h2>{heading}</h2>\n"), sections_html(sections, prefix=f"{anchor}-")]
    return html_page(title, "".join(body))


def _bars(counts: TreebankStatistics) -> Iterator[Figure]:
    """Draw the shares of sentences by length, of labels, and of tags."""
    longest = LENGTHS[-1][1]
    spans = {f"{first}-{last}": sum(counts.lengths[n] for n in range(first, last + 1)) for first, last in LENGTHS}
    spans[f"{longest + 1}+"] = sum(number for length, number in counts.lengths.items() if length > longest)
    yield from _shares("sentences by words, % (sentences)", spans)
    yield from _shares("words by label, % (words)", dict(counts.labels.most_common(MOST_BARS)), counts.labels.total())
    yield from _shares("words by UPOS, % (words)", dict(counts.upos.most_common(MOST_BARS)), counts.upos.total())


def _shares(caption: str, numbers: Mapping[str, int], total: int | None = None) -> Iterator[Figure]:
    """Draw numbers as shares of their total; nothing if all are 0."""
    total = sum(numbers.values()) if total is None else total
    if total:
        bars = [ShareBar(name, number / total, f"({number:,})") for name, number in numbers.items() if number]
        yield Figure(draw_bars(bars, caption), caption)


def _kinds(words: Sentence) -> Iterator[tuple[str, str, str]]:
    """Yield the kind of every arc: the tag of the head, the label, the tag of the dependent."""
    tags = words.upos or (EMPTY,) * len(words.forms)
    for head, label, tag in zip(words.heads or (), words.labels or (), tags, strict=False):
        if head >= 0:
            yield ("root" if head == 0 else tags[head - 1]), label, tag


def _worth_a_look(
    sentences: Iterator[ConlluSentence], kinds: Mapping[tuple[str, str, str], int]
) -> tuple[list[Section], list[Section]]:
    """Draw the trees with the most arcs of a kind that occurs once, and the first with non-projective arcs."""
    found: list[tuple[int, int, Section]] = []
    crossing: list[Section] = []
    for index, sentence in enumerate(sentences):
        words = sentence.words
        try:
            dependents = nonprojective_words(words.heads or ())
        except TreeparseError:  # no tree
            continue
        if once := [" ".join(kind) for kind in _kinds(words) if kinds[kind] == 1]:
            rank = len(once), -index
            if len(found) < MOST_DRAWN or rank > found[-1][:2]:
                section = _drawn(sentence, index, "; ".join(once))
                found = nlargest(MOST_DRAWN, [*found, (*rank, section)], key=lambda ranked: ranked[:2])
        if dependents and len(crossing) < MOST_DRAWN:
            names = ", ".join(words.forms[word - 1] for word in dependents)
            crossing.append(_drawn(sentence, index, f"heads of: {names}"))
    return [section for *_, section in found], crossing


def _drawn(sentence: ConlluSentence, index: int, caption: str) -> Section:
    return section_of(sentence, index, [figure_of(tree_of(sentence), None, caption)])


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("files", nargs="+", metavar="FILE", help="CoNLL-U, plain or compressed; a glob; - for stdin")
    parser.add_argument("--multi-root", action="store_true", help="allow trees of several roots")
    parser.add_argument("--no-trees", action="store_true", help="check the lines only: HEAD need not hold a tree")
    parser.add_argument("--partial", action="store_true", help="allow unknown heads, as training by data.partial does")
    parser.add_argument("--ud", action="store_true", help="also run the official validator of UD, up to its level 2")
    parser.add_argument("--output", type=output_file, metavar="JSON", help="write faults and figures; - prints them")
    parser.add_argument(
        "--html",
        type=output_file,
        metavar="HTML",
        help="write a page of the figures, with drawings of non-projective trees and of trees with unique kinds of "
        "arcs",
    )
    add_overwrite_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Check the files; the exit code is 1 if there are faults."""
    check_outputs([args.output, args.html], inputs=args.files, overwrite_input=args.overwrite_input)
    paths = expand_paths(args.files)
    for path in paths if args.ud or args.html is not None else ():
        check_rereadable(path, f"{'--ud' if args.ud else '--html'} reads the files again")
    validator = None
    if args.ud:
        from udtools import Validator  # an extra; if it is missing, `cli.main` names it

        validator = Validator(lang="ud", level=2, output=None)  # the levels 1 and 2 know no language
    index = SentenceIndex() if len(paths) > 1 else None
    reports = [_check(path, number, args, index, validator) for number, path in enumerate(paths)]
    notes = _notes(reports, index)
    total = _total(reports)
    if "-" not in (args.output, args.html) and not args.quiet and total.statistics.sentences:
        blank = [""] if total.faults else []
        terminal.write(*blank, *lines_of(_tables(reports, total)), *(["", *notes] if notes else []))
    if args.output is not None:
        atomic_write(args.output, json.dumps(_to_json(reports, total, notes), ensure_ascii=False, indent=2) + "\n")
    if args.html is not None:
        tables, sentences = _tables(reports, total), partial(_sound_sentences, paths, args)
        atomic_write(args.html, treebank_page(" ".join(args.files), tables, total.statistics, sentences))
    return int(bool(total.faults))


@dataclass(slots=True)
class _Report:
    """The faults and figures of one file, or of all files."""

    path: str
    statistics: TreebankStatistics
    faults: list[DataError]
    left_out: int  # sentences with faults
    roots: RootLabelUse = field(default_factory=RootLabelUse)  # of one file
    doubts: Doubts = field(default_factory=Doubts)  # about one file


class _Faults:
    """The faults of a file, which prints the first ones of each kind and then the number of the others."""

    def __init__(self, path: Path, *, is_printed: bool) -> None:
        self.all: list[DataError] = []
        self._path, self._is_printed = path, is_printed
        self._alike: dict[str, list[DataError]] = {}  # by problems without numbers and quoted texts

    def add(self, faults: Sequence[DataError]) -> None:
        """Add faults, and print the first ``MOST_ALIKE`` of each kind."""
        self.all += faults
        for fault in faults:
            alike = self._alike.setdefault(VARIABLE.sub("", fault.problem), [])
            alike.append(fault)
            if len(alike) <= MOST_ALIKE:
                self._print(str(fault))

    def count_others(self) -> None:
        """Print the number of the faults that `add` has not printed."""
        for alike in self._alike.values():
            if more := alike[MOST_ALIKE:]:
                line, problem = more[0].line, more[0].problem
                self._print(f"{self._path}: {len(more):,} more such faults, from line {line} on: {problem}")

    def _print(self, text: str) -> None:
        if self._is_printed:
            terminal.write(terminal.message(text))


def _check(path: Path, number: int, args: argparse.Namespace, index: SentenceIndex | None, validator: Any) -> _Report:
    """Check a file, print its faults unless standard output has a report, and index the sound sentences."""
    faults = _Faults(path, is_printed="-" not in (args.output, args.html))
    together: dict[str, list[DataError]] = {problem: [] for problem in TOGETHER}  # reported at the end
    sentences, left_out, roots, doubts = 0, 0, RootLabelUse(), Doubts()
    results = _scanned(path, args)

    def sound_sentences() -> Iterator[ConlluSentence]:
        nonlocal sentences, left_out
        for result in results:
            if isinstance(result, ConlluSentence):
                sentences += 1
                roots.add(result.words, result)
                doubts.add(result)
                if index is not None:
                    index.add(number, result)
                yield result
                continue
            left_out += result[0].line is not None  # otherwise the fault is of the file
            problem = NO_UTF8 if result[0].problem.endswith(CONVERT) else result[0].problem
            if problem in together:
                together[problem].append(result[0])
            else:
                faults.add(result)

    statistics = TreebankStatistics.of(sound_sentences())
    for problem, same in together.items():
        if same:
            faults.add([same[0] if len(same) == 1 else _joined(same, problem, sentences + left_out)])
    if validator is not None and not faults.all:
        faults.add([*_faults_by(validator, path)])
    faults.count_others()
    return _Report(str(path), statistics, faults.all, left_out, roots, doubts)


def _faults_by(validator: Any, path: Path) -> Iterator[DataError]:
    """Yield the errors that the official validator finds in a file."""
    with open_input(path) as stream, io.TextIOWrapper(stream, encoding="utf-8") as text:
        incidents = validator.validate_file_handle(text).error_tracker
    for incident in incidents:
        if incident.is_error():
            yield DataError(incident.message, source=str(path), line=incident.lineno, sent_id=incident.sentid)


def _joined(faults: Sequence[DataError], problem: str, sentences: int) -> DataError:
    """Join the same fault of several sentences of a file to one fault of the file."""
    if len(faults) == sentences:
        where = f"in all {sentences:,} sentences {problem}"
    else:
        lines = ", ".join(str(fault.line) for fault in faults[:3])
        where = f"in {len(faults):,} of {sentences:,} sentences {problem}, first in lines {lines}"
    return DataError(f"{where}: {TOGETHER[problem]}", source=faults[0].source)


def _notes(reports: Sequence[_Report], index: SentenceIndex | None) -> list[str]:
    """Return notes on doubts, on the labels of roots, on what several files share, and on what one lacks."""
    names, notes = _short_names([report.path for report in reports]), []
    for name, report in zip(names, reports, strict=True):
        use = report.roots.note(reserved=report.roots.is_reserved)
        notes += [f"note: in {name} {clause}" for clause in (*report.doubts.clauses(), use) if clause]
    if index is None:
        return notes
    read = {name: file.statistics for name, file in zip(names, reports, strict=True) if file.statistics.sentences}
    return [*notes, *_shared_notes(names, index), *_missing_notes([*read], [*read.values()])]


def _shared_notes(names: Sequence[str], index: SentenceIndex) -> Iterator[str]:
    """Yield the sentences that pairs of files share, the pairs with most of them first."""
    pairs = sorted(index.shared(), key=lambda pair: -pair[1])
    for files, count, examples in pairs[:MOST_NAMED]:
        first, second = (names[file] for file in files)
        lines = ", ".join(f"{first}:{line} and {second}:{other_line}" for line, other_line in examples)
        longest = ", the longest" if count > len(examples) else ""
        yield f"note: {first} and {second} share {counted(count, 'sentence')}{longest}: {lines}"
    if len(pairs) > MOST_NAMED:
        yield f"note: {len(pairs) - MOST_NAMED:,} more pairs of files share sentences"


def _missing_notes(names: Sequence[str], statistics: Sequence[TreebankStatistics]) -> Iterator[str]:
    """Yield the labels, tags and features that one file has and another lacks, or with many files all others lack."""
    for kind, noun in KINDS.items():
        items = [[item for item, _ in getattr(file, kind).most_common() if item != EMPTY] for file in statistics]
        files, named = Counter(chain.from_iterable(items)), zip(names, items, strict=True)
        if len(names) > MOST_COLUMNS:
            notes = ((name, "no other file has", [item for item in has if files[item] == 1]) for name, has in named)
        else:
            notes = (
                (name, f"{second} lacks", [item for item in has if item not in second_has])
                for (name, has), (second, second_has) in permutations(named, 2)
            )
        for name, relation, missing in islice((note for note in notes if note[-1]), MOST_NAMED):
            more = ", ..." if len(missing) > MOST_NAMED else ""
            shown = ", ".join(missing[:MOST_NAMED])
            yield f"note: {name} has {counted(len(missing), noun)} that {relation}: {shown}{more}"


def _to_json(reports: Sequence[_Report], total: _Report, notes: Sequence[str]) -> dict[str, Any]:
    files = [
        {
            "file": report.path,
            "faults": [
                {name: getattr(fault, name) for name in ("line", "sent_id", "problem")} for fault in report.faults
            ],
            "sentences_left_out": report.left_out,
            "statistics": report.statistics.to_json(),
        }
        for report in reports
    ]
    return {"files": files, "all": total.statistics.to_json(), "notes": notes}


def _total(reports: Sequence[_Report]) -> _Report:
    statistics = sum((report.statistics for report in reports), TreebankStatistics())
    faults = [fault for report in reports for fault in report.faults]
    return _Report("all", statistics, faults, sum(report.left_out for report in reports))


def _sound_sentences(paths: Sequence[Path], args: argparse.Namespace) -> Iterator[ConlluSentence]:
    """Read the sentences without faults."""
    for path in paths:
        yield from (result for result in _scanned(path, args) if isinstance(result, ConlluSentence))


def _scanned(path: Path, args: argparse.Namespace) -> Iterator[ConlluSentence | tuple[DataError, ...]]:
    """Read the sentences of a file, or their faults by the command's options."""
    check = TreeCheck(single_root=not args.multi_root, partial=args.partial, labels=not args.partial)
    return scan_conllu(path, None if args.no_trees else check)


def _tables(reports: Sequence[_Report], total: _Report) -> list[Table]:
    """Return the tables of figures and of labels: a column for each file and, for several, a column for all."""
    own_columns = reports if len(reports) <= MOST_COLUMNS else []
    columns = [*own_columns, total] if len(reports) > 1 else list(reports)
    head = ["", *_short_names([column.path for column in own_columns]), *["all"] * (len(reports) > 1)]
    figures = [_figures(column) for column in columns]
    rows = [[name, *(figure[name] for figure in figures)] for name in figures[-1]]
    labels = total.statistics.labels
    label_rows = [
        [label, *(f"{column.statistics.labels[label]:,}" for column in columns), _share(count, labels.total())]
        for label, count in labels.most_common()
    ]
    return [[head, *rows], [["label", *["words"] * len(columns), "share"], *label_rows]]


def _figures(report: _Report) -> dict[str, str]:
    """Return one column of the table, by the names of its rows."""
    statistics = report.statistics
    lengths = statistics.length_summary
    return {
        "faults": f"{len(report.faults):,}",
        "sentences left out": f"{report.left_out:,}",
        "sentences": f"{statistics.sentences:,}",
        "words": f"{statistics.words:,}",
        "multiword tokens": f"{statistics.multiword_tokens:,}",
        "empty nodes": f"{statistics.empty_nodes:,}",
        "sentence length: min": f"{lengths.get('min', 0):,}",
        "                 median": f"{lengths.get('median', 0):g}",
        "                 mean": f"{lengths.get('mean', 0):.1f}",
        "                 max": f"{lengths.get('max', 0):,}",
        "trees": f"{statistics.trees:,}",
        "roots": f"{statistics.roots:,}",
        "non-projective trees": _with_share(statistics.nonprojective_sentences, statistics.trees),
        "non-projective arcs": _with_share(statistics.nonprojective_arcs, statistics.arcs),
        "labels": f"{len(statistics.labels):,}",
    }


def _short_names(paths: Sequence[str]) -> list[str]:
    """Return names without folders, suffixes and the start that all share: beside train, en_ewt-ud-dev is dev."""
    names = ["<stdin>" if path == "-" else Path(plain_name(path)).name.removesuffix(".conllu") for path in paths]
    if len(set(names)) < len(names):
        return names if len(set(paths)) < len(paths) else list(paths)
    parts = [name.split("-") for name in names]
    while len(names) > 1 and min(map(len, parts)) > 1 and len({first for first, *_ in parts}) == 1:
        parts = [others for _, *others in parts]
    return [*map("-".join, parts)]


def _with_share(part: int, whole: int) -> str:
    return f"{part:,} ({_share(part, whole)})" if part else "0"


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.2f}%" if whole else "-"
