"""The tables that ``treeparse evaluate`` prints."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from treeparse.cli.common import counted
from treeparse.cli.tables import aligned, percent
from treeparse.data.conllu import ConlluSentence

if TYPE_CHECKING:
    from treeparse.metrics import AttachmentReport, Comparison, GroupScores, OracleScores, Scores
    from treeparse.metrics.advantages import Direction

ROWS = {
    "UAS": "uas",
    "LAS": "las",
    "LAS with subtypes": "las_subtypes",
    "CLAS": "clas",
    "label accuracy": "label_accuracy",
    "root accuracy": "root_accuracy",
    "complete match, heads": "complete_match_unlabeled",
    "complete match": "complete_match",
}
Table = list[list[str]]  # its rows; the first has the names of columns
NOTHING = "-"  # in the place of a score of no words
MISTAKES = 10  # kinds of mistakes in a table
AHEAD = 10  # sentences, those in which one system is furthest ahead of the other
NAMED = 3  # words of a sentence


def report_tables(
    report: "AttachmentReport", tags: "Mapping[str, float] | None" = None, *, by_label: bool = False
) -> list[Table]:
    """One system's scores: overall, of tags, by kind of sentence and, if asked, by label."""
    sides = (report, report.nopunct)
    overall = [["", "all words", "no punctuation"]]
    overall += [[row, *(_score(side, name) for side in sides)] for row, name in ROWS.items()]
    overall += [[name, *(f"{getattr(side, name):,}" for side in sides)] for name in ("sentences", "words")]

    head = ["sentences by kind", "number", "words", "UAS", "LAS", "CLAS", "complete"]
    names = ("uas", "las", "clas", "complete_match")
    groups = [head] + [
        [kind, f"{group.sentences:,}", f"{group.words:,}", *(_score(group, name) for name in names)]
        for kind, group in _groups(report).items()
    ]
    tables = [overall, *_tag_tables(["all words"], [tags or {}]), groups]
    if by_label:
        tables.append([["label", "gold", "system", "precision", "recall", "F1"], *_label_rows(report)])
    return tables


def _label_rows(report: "AttachmentReport") -> list[list[str]]:
    return [
        [
            label,
            f"{score.gold:,}",
            f"{score.system:,}",
            percent(score.precision) if score.system else NOTHING,
            percent(score.recall) if score.gold else NOTHING,
            percent(score.f1),
        ]
        for label, score in sorted(report.by_label.items(), key=lambda item: -item[1].gold)
    ]


def oracle_table(scores: "Sequence[OracleScores]") -> Table:
    """The oracle scores of one system's lists, a row a size."""
    rows = [["oracle of the first", "different trees", "UAS", "LAS", "complete match", "mass"]]
    for row in scores:
        figures = (row.uas, row.las, row.complete_match)
        mass = NOTHING if row.mass is None else percent(row.mass)
        rows.append([f"{row.size:,}", f"{row.trees:,.2f}", *map(percent, figures), mass])
    return rows


def comparison_tables(
    first: "AttachmentReport",
    second: "AttachmentReport",
    comparison: "Mapping[str, Comparison]",
    tags: "Sequence[Mapping[str, float]]" = ({}, {}),
    *,
    by_label: bool = False,
) -> list[Table]:
    """Two systems side by side, with the bootstrap's interval and p-value where it was taken."""
    confidence = next(iter(comparison.values())).confidence
    everything = [["all words", "A", "B", "B - A", f"{confidence:.0%} interval", "p"]]
    for row, name in ROWS.items():
        everything.append([row, *_pair(first, second, name), *_significance(comparison.get(name))])
    nopunct = [["no punctuation", "A", "B", "B - A"]]
    nopunct += [[row, *_pair(first.nopunct, second.nopunct, name)] for row, name in ROWS.items()]

    head = ["sentences by kind", "number", "words", "LAS: A", "B", "B - A"]
    theirs = _groups(second)
    groups = [head] + [
        [kind, f"{group.sentences:,}", f"{group.words:,}", *_pair(group, theirs[kind], "las")]
        for kind, group in _groups(first).items()
    ]
    tables = [everything, nopunct, *_tag_tables(["A", "B"], tags), groups]
    if by_label:
        tables.append([["label", "gold", "F1: A", "B", "B - A"], *_label_pairs(first, second)])
    return tables


def _tag_tables(names: Sequence[str], tags: "Sequence[Mapping[str, float]]") -> list[Table]:
    """The table of the systems' scores of tags, if any has some."""
    from treeparse.metrics.tags import TAG_SCORES

    rows = [
        [title, *(percent(scores[name]) if name in scores else NOTHING for scores in tags)]
        for name, title in TAG_SCORES.items()
        if any(name in scores for scores in tags)
    ]
    return [[["tags", *names], *rows]] if rows else []


def _label_pairs(first: "AttachmentReport", second: "AttachmentReport") -> list[list[str]]:
    rows = []
    for label in sorted(first.by_label | second.by_label, key=lambda label: (-_gold_words(first, label), label)):
        scores = [report.by_label[label].f1 if label in report.by_label else 0.0 for report in (first, second)]
        shown = [percent(score) for score in scores]
        rows.append([label, f"{_gold_words(first, label):,}", *shown, percent(scores[1] - scores[0], signed=True)])
    return rows


def _gold_words(report: "AttachmentReport", label: str) -> int:
    return report.by_label[label].gold if label in report.by_label else 0


def _groups(report: "AttachmentReport") -> "dict[str, GroupScores]":
    lengths = {f"{bucket} words": scores for bucket, scores in report.by_length.items()}
    return {**report.by_projectivity, **lengths}


def _pair(first: "Scores", second: "Scores", name: str) -> list[str]:
    if not first.words:
        return [NOTHING] * 3
    difference = getattr(second, name) - getattr(first, name)
    return [_score(first, name), _score(second, name), percent(difference, signed=True)]


def _score(scores: "Scores", name: str) -> str:
    return percent(getattr(scores, name)) if scores.words else NOTHING


def _significance(comparison: "Comparison | None") -> list[str]:
    if comparison is None:
        return ["", ""]
    low, high = (percent(end, signed=True) for end in (comparison.low, comparison.high))
    return [f"{low} to {high}", f"{comparison.p_value:.4f}"]


def advantage_tables(gold: "Sequence[ConlluSentence]", found: "Sequence[Direction]") -> list[Table]:
    """For each direction the most frequent mistakes, by label, and the sentences with most words."""
    return [table for each in found if each.words for table in _advantage_tables(gold, each)]


def _advantage_tables(gold: "Sequence[ConlluSentence]", found: "Direction") -> Iterator[Table]:
    mistakes = Counter(word.mistake for word in found.words)
    ordered = sorted(mistakes.items(), key=lambda item: (-item[1], item[0]))
    rows = [[f"{found.title}: by label", "words"], *([name, f"{count:,}"] for name, count in ordered[:MISTAKES])]
    if rest := sum(count for _, count in ordered[MISTAKES:]):
        rows.append([counted(len(ordered) - MISTAKES, "other kind"), f"{rest:,}"])
    yield [*rows, ["all", f"{len(found.words):,}"]]
    head = [f"{found.title}: by sentence", "sentence", "words", f"{found.wrong} right, {found.right} wrong"]
    yield [head, *(_sentence_row(gold, found, place) for place in found.sentences[:AHEAD])]


def _sentence_row(gold: "Sequence[ConlluSentence]", found: "Direction", place: int) -> list[str]:
    words = [word for word in found.words if word.sentence == place]
    forms = gold[place].words.forms
    named = ", ".join(f"{word.word} {forms[word.word - 1]} ({word.label})" for word in words[:NAMED])
    more = ", ..." if len(words) > NAMED else ""
    name = gold[place].sent_id or str(place + 1)
    return [named + more, name, f"{len(words):,}", f"{len(words) - found.balance[place]:,}"]


def lines_of(tables: Sequence[Table]) -> list[str]:
    """The tables' lines, a blank line between tables."""
    lines: list[str] = []
    for table in tables:
        lines += [*([""] if lines else []), *aligned(table)]
    return lines
