"""The scores of systems as tables, which ``treeparse evaluate`` prints, and as a page with charts and trees."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from treeparse.cli.common import NOTHING, aligned, counted, percent
from treeparse.cli.systems import figure_of, section_of, tree_of
from treeparse.data.conllu import ConlluSentence
from treeparse.data.parses import Parse, with_parses
from treeparse.metrics import (
    AttachmentReport,
    Calibration,
    Comparison,
    GroupScores,
    OracleScores,
    PrecisionRecall,
    Scores,
    parse_calibration,
)
from treeparse.metrics.error_analysis import Direction, arc_length_scores, depth_scores, label_confusions, wrong_words
from treeparse.metrics.tags import TAG_SCORES
from treeparse.model.folder import RUN_MODEL
from treeparse.pictures.page import Figure, Section, figure, html_page, legend, part, sections_html, table
from treeparse.pictures.plots import ShareBar, draw_bars, draw_curves
from treeparse.pictures.svg import escaped
from treeparse.sentence import Sentence
from treeparse.training.run_directory import RunDirectory, read_csv

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
PARTS = {"arcs": "arcs", "labels": "labels given arcs", "labeled_arcs": "arcs and labels"}  # of a calibration
Table = list[list[str]]  # its rows; the first has the names of columns
MISTAKES = 10  # kinds of mistakes in a table
AHEAD = 10  # sentences in which one system is furthest ahead of the other
NAMED = 3  # words of a sentence
CONFUSIONS = 20  # pairs of labels
LABELS = 25  # the most frequent ones in gold
WORST = 20  # sentences


@dataclass(frozen=True, slots=True)
class ScoredSystem:
    """The parses of the gold sentences, of a file or of models that parse as one, and their scores."""

    name: str  # the path of the file, or the folders of the models
    parses: list[Sentence]
    report: AttachmentReport
    tags: dict[str, float]  # scores of the tags that the system has, by name
    oracle: list[OracleScores] | None = None  # of n-best lists
    calibration: dict[str, Calibration] = field(default_factory=dict)  # of models, by part, if asked for
    models: Sequence[str] = ()  # the folders of the models
    reads: str = ""  # the tags that the models read besides the words


def report_tables(system: ScoredSystem, *, by_label: bool = False) -> list[Table]:
    """Return one system's scores: overall, of tags, by kind of sentence and, if asked, by label."""
    report = system.report
    sides = (report, report.nopunct)
    overall = [["", "all words", "no punctuation"]]
    overall += [[row, *(_score(side, name) for side in sides)] for row, name in ROWS.items()]
    overall += [[name, *(f"{getattr(side, name):,}" for side in sides)] for name in ("sentences", "words")]

    groups = [["sentences by kind", "number", "words", "UAS", "LAS", "CLAS", "complete"]]
    for kind, group in _groups(report).items():
        scores = (_score(group, name) for name in ("uas", "las", "clas", "complete_match"))
        groups.append([kind, f"{group.sentences:,}", f"{group.words:,}", *scores])
    tables = [overall, *_tag_tables({"all words": system}), groups]
    if by_label:
        labels = [["label", "gold", "system", "precision", "recall", "F1"]]
        for label, score in sorted(report.by_label.items(), key=lambda item: -item[1].gold):
            precision = percent(score.precision) if score.system else NOTHING
            recall = percent(score.recall) if score.gold else NOTHING
            labels.append([label, f"{score.gold:,}", f"{score.system:,}", precision, recall, percent(score.f1)])
        tables.append(labels)
    return tables


def comparison_tables(
    first: ScoredSystem, second: ScoredSystem, comparison: Mapping[str, Comparison], *, by_label: bool = False
) -> list[Table]:
    """Return the scores of two systems side by side, with the bootstrap's interval and p-value where it was taken."""
    one, two = first.report, second.report
    confidence = next(iter(comparison.values())).confidence
    everything = [["all words", "A", "B", "B - A", f"{confidence:.0%} interval", "p"]]
    for row, name in ROWS.items():
        everything.append([row, *_pair(one, two, name), "", ""])
        if bootstrap := comparison.get(name):
            low, high = (percent(end, signed=True) for end in (bootstrap.low, bootstrap.high))
            everything[-1][-2:] = f"{low} to {high}", f"{bootstrap.p_value:.4f}"
    nopunct = [["no punctuation", "A", "B", "B - A"]]
    nopunct += [[row, *_pair(one.nopunct, two.nopunct, name)] for row, name in ROWS.items()]

    groups, of_second = [["sentences by kind", "number", "words", "LAS: A", "B", "B - A"]], _groups(two)
    for kind, group in _groups(one).items():
        groups.append([kind, f"{group.sentences:,}", f"{group.words:,}", *_pair(group, of_second[kind], "las")])
    tables = [everything, nopunct, *_tag_tables({"A": first, "B": second}), groups]
    if by_label:
        tables.append(_label_pairs(one, two))
    return tables


def _tag_tables(systems: Mapping[str, ScoredSystem]) -> list[Table]:
    """Return the table of the systems' scores of tags, if any has some."""
    rows = [
        [title, *(percent(system.tags[name]) if name in system.tags else NOTHING for system in systems.values())]
        for name, title in TAG_SCORES.items()
        if any(name in system.tags for system in systems.values())
    ]
    return [[["tags", *systems], *rows]] if rows else []


def _label_pairs(first: AttachmentReport, second: AttachmentReport) -> Table:
    rows, absent = [], PrecisionRecall.from_counts(0, 0, 0)
    for label in first.by_label | second.by_label:
        one, two = (report.by_label.get(label, absent) for report in (first, second))
        scores = [percent(one.f1), percent(two.f1), percent(two.f1 - one.f1, signed=True)]
        rows.append((-one.gold, [label, f"{one.gold:,}", *scores]))
    return [["label", "gold", "F1: A", "B", "B - A"], *(row for _, row in sorted(rows))]


def _groups(report: AttachmentReport) -> dict[str, GroupScores]:
    lengths = {f"{bucket} words": scores for bucket, scores in report.by_length.items()}
    return {**report.by_projectivity, **lengths}


def _pair(first: Scores, second: Scores, name: str) -> list[str]:
    if not first.words:
        return [NOTHING] * 3
    difference = getattr(second, name) - getattr(first, name)
    return [_score(first, name), _score(second, name), percent(difference, signed=True)]


def _score(scores: Scores, name: str) -> str:
    return percent(getattr(scores, name)) if scores.words else NOTHING


def oracle_table(scores: Sequence[OracleScores]) -> Table:
    """Return the oracle scores of one system's lists, a row for each number of first trees."""
    rows = [["oracle of the first", "different trees", "UAS", "LAS", "complete match", "mass"]]
    for row in scores:
        figures = (row.uas, row.las, row.complete_match)
        mass = NOTHING if row.mass is None else percent(row.mass)
        rows.append([f"{row.size:,}", f"{row.trees:,.2f}", *map(percent, figures), mass])
    return rows


def calibration_of(gold: Sequence[Sentence], parses: Sequence[Parse]) -> dict[str, Calibration]:
    """Compare the probabilities of parses with how often they are right, as far as gold has labels."""
    probs = ([parse.arc_probs or () for parse in parses], [parse.label_probs or () for parse in parses])
    return parse_calibration(gold, with_parses(gold, parses), *probs)


def calibration_tables(calibration: Mapping[str, Calibration]) -> list[Table]:
    """Return the errors of calibration, a row for each kind of probability, and the bins of each kind."""
    rows = [["calibration", "words", "probability", "right", "ECE", "ECE, equal mass", "Brier score"]]
    tables = [rows]
    for kind, scores in calibration.items():
        figures = map(percent, (scores.confidence, scores.accuracy, scores.ece, scores.ece_mass))
        rows.append([PARTS[kind], f"{scores.words:,}", *figures, f"{scores.brier:.4f}"])
        bins = [[PARTS[kind], "words", "probability", "right", "difference"]]
        for group in scores.bins:
            shares = percent(group.confidence), percent(group.accuracy)
            difference = percent(group.accuracy - group.confidence, signed=True)
            bins.append([f"{percent(group.low)} to {percent(group.high)}", f"{group.words:,}", *shares, difference])
        tables.append(bins)
    return tables


def advantage_tables(gold: Sequence[ConlluSentence], directions: Sequence[Direction]) -> Iterator[Table]:
    """Yield for each direction the most frequent mistakes, by label, and the sentences with most words."""
    for direction in directions:
        if not direction.words:
            continue
        mistakes = Counter(word.mistake for word in direction.words)
        ordered = sorted(mistakes.items(), key=lambda item: (-item[1], item[0]))
        title = [f"{direction.title}: by label", "words"]
        rows = [title, *([name, f"{count:,}"] for name, count in ordered[:MISTAKES])]
        if others := ordered[MISTAKES:]:
            rows.append([counted(len(others), "other kind"), f"{sum(count for _, count in others):,}"])
        yield [*rows, ["all", f"{len(direction.words):,}"]]
        sides = f"{direction.wrong} right, {direction.right} wrong"
        title = [f"{direction.title}: by sentence", "sentence", "words", sides]
        yield [title, *(_sentence_row(gold[index], direction, index) for index in direction.sentences[:AHEAD])]


def _sentence_row(sentence: ConlluSentence, direction: Direction, index: int) -> list[str]:
    words, forms = [word for word in direction.words if word.sentence == index], sentence.words.forms
    named = ", ".join(f"{word.word} {forms[word.word - 1]} ({word.label})" for word in words[:NAMED])
    more = ", ..." if len(words) > NAMED else ""
    name = sentence.sent_id or str(index + 1)
    return [named + more, name, f"{len(words):,}", f"{len(words) - direction.balance[index]:,}"]


def lines_of(tables: Sequence[Table]) -> list[str]:
    """Return the tables as lines, with a blank line between tables."""
    return [line for table in tables for line in ("", *aligned(table))][1:]


def report_page(
    heading: Sequence[str],
    tables: Sequence[Table],
    gold: Sequence[ConlluSentence],
    systems: Sequence[ScoredSystem],
    directions: Sequence[Direction] = (),
) -> str:
    """Return the HTML page; ``directions`` has the words that one of two systems alone has right."""
    lines = "<br>\n".join(map(escaped, heading))
    body = [part("scores", f"<h2>Scores</h2>\n<p>{lines}</p>\n{''.join(map(table, tables))}")]
    body += [part(f"system-{number}", _system(gold, system)) for number, system in enumerate(systems, 1)]
    for direction in directions:
        if sections := [_compared(gold[index], index, systems) for index in direction.ahead[:AHEAD]]:
            name = direction.right
            title = f"<h2>Sentences that {name} parses better</h2>\n{legend('gold')}"
            body += [part(f"ahead-{name}", title), sections_html(sections, prefix=f"{name.lower()}-")]
    if worst := _worst(gold, systems):
        body += [part("worst", f"<h2>Sentences of most errors</h2>\n{legend('gold')}"), sections_html(worst)]
    return html_page(f"Scores on {heading[0].split(maxsplit=1)[-1]}", "".join(body))


def _system(gold: Sequence[ConlluSentence], system: ScoredSystem) -> str:
    """Return the tables and charts of one system."""
    words = [sentence.words for sentence in gold]
    parts = [f"<h2>{escaped(system.name)}</h2>\n"]
    if system.oracle is not None:
        parts.append(table(oracle_table(system.oracle)))
    if system.calibration:
        errors, *_ = calibration_tables(system.calibration)  # the bins are drawn
        parts.append(table(errors))
    figures = [*_reliability(system.calibration), *_curves(system.models), *_bars(words, system)]
    parts.append(f'<div class="tp-figures">{"".join(map(figure, figures))}</div>\n')
    confusions = _confusions(words, system.parses)
    if len(confusions) > 1:
        parts.append(table(confusions))
    return "".join(parts)


def _reliability(calibration: Mapping[str, Calibration]) -> Iterator[Figure]:
    """Draw how often arcs and labels of a probability are right, beside the probability."""
    for kind, scores in calibration.items():
        points = [(100 * group.confidence, 100 * group.accuracy) for group in scores.bins]
        ends = points[0][0], points[-1][0]
        caption = f"{PARTS[kind]} that are right, %, by their probability, %"
        yield Figure(draw_curves({"as found": points, "as they say": [(end, end) for end in ends]}, caption), caption)


def _curves(models: Sequence[str]) -> Iterator[Figure]:
    """Draw the learning curves of the run of a single model, if the run has two records or more."""
    if len(models) != 1:
        return
    folder = Path(models[0]).resolve()
    run = RunDirectory(folder.parent if folder.name == RUN_MODEL else folder)
    history = read_csv(run.metrics) if run.metrics.is_file() else []
    if len(history) < 2:
        return
    scores = {"dev UAS": [(r.epoch, 100 * r.dev_uas) for r in history if r.dev_uas is not None]}
    scores["dev LAS"] = [(r.epoch, 100 * r.dev_las) for r in history if r.dev_las is not None]
    losses = {"training": [(r.epoch, r.loss) for r in history]}
    losses["dev"] = [(r.epoch, r.dev_loss) for r in history if r.dev_loss is not None]
    for caption, curves in (("scores on the dev set, %, by epoch", scores), ("loss, nats a word, by epoch", losses)):
        if drawn := {name: points for name, points in curves.items() if points}:
            yield Figure(draw_curves(drawn, caption), caption)


def _bars(gold: list[Sentence], system: ScoredSystem) -> Iterator[Figure]:
    """Draw scores by length of sentences and of arcs, by depth, and by label."""
    report, arcs = system.report, arc_length_scores(gold, system.parses)
    depths = depth_scores(gold, system.parses)
    labels = sorted(report.by_label.items(), key=lambda item: -item[1].gold)[:LABELS]
    charts = {
        "LAS by words of the sentence (words)": [
            ShareBar(name, group.las, f"({group.words:,})")
            for name, group in report.by_length.items()
            if not math.isnan(group.las)
        ],
        "arcs of gold that are found, by length (arcs)": [
            ShareBar(name, score.recall, f"({score.gold:,})") for name, score in arcs.items() if score.gold
        ],
        "arcs of the system that are right, by length (arcs)": [
            ShareBar(name, score.precision, f"({score.system:,})") for name, score in arcs.items() if score.system
        ],
        "UAS by arcs from the root to the word (words)": [
            ShareBar(name, score.right / score.words, f"({score.words:,})") for name, score in depths.items()
        ],
        "F1 by label (words of gold)": [ShareBar(name, score.f1, f"({score.gold:,})") for name, score in labels],
    }
    for caption, bars in charts.items():
        if bars:
            yield Figure(draw_bars(bars, caption), caption)


def _confusions(gold: list[Sentence], system: list[Sentence]) -> Table:
    rows = [["label in gold", "system's label", "words", "with the right head"]]
    for pair in label_confusions(gold, system)[:CONFUSIONS]:
        rows.append([pair.gold, pair.system, f"{pair.words:,}", f"{percent(pair.heads / pair.words)}%"])
    return rows


def _worst(gold: Sequence[ConlluSentence], systems: Sequence[ScoredSystem]) -> list[Section]:
    """Draw the sentences in which the systems together have the most wrong words."""
    errors = Counter[int]()
    for index, sentence in enumerate(gold):
        errors[index] = sum(wrong_words(sentence.words, system.parses[index]) for system in systems)
    return [_compared(gold[index], index, systems) for index, count in errors.most_common(WORST) if count]


def _compared(gold: ConlluSentence, index: int, systems: Sequence[ScoredSystem]) -> Section:
    """Draw the gold tree of a sentence above the trees of the systems."""
    tree = tree_of(gold)
    figures = [figure_of(tree, None, "gold")]
    for system in systems:
        parse = system.parses[index]
        drawn = tree_of(gold, gold.words.with_tree(parse.heads or (), parse.labels or ()))
        figures.append(figure_of(drawn, tree, system.name))
    return section_of(gold, index, figures)
