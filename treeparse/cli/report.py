"""The page of ``treeparse evaluate --html``: scores, learning curves, errors by kind, the worst parses drawn."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from treeparse.cli.common import percent
from treeparse.cli.score_tables import AHEAD, PARTS, ScoredSystem, Table, calibration_tables, oracle_table
from treeparse.cli.sections import figure_of, section_of, tree_of
from treeparse.data.conllu import ConlluSentence
from treeparse.metrics import Calibration
from treeparse.metrics.error_analysis import Direction, arc_length_scores, depth_scores, label_confusions, wrong_words
from treeparse.model.folder import RUN_MODEL
from treeparse.pictures.page import Figure, Section, figure, html_page, legend, part, sections_html, table
from treeparse.pictures.plots import ShareBar, draw_bars, draw_curves
from treeparse.pictures.svg import escaped
from treeparse.sentence import Sentence
from treeparse.training.run_directory import RunDirectory, read_csv

CONFUSIONS = 20  # pairs of labels
LABELS = 25  # the most frequent ones in gold
WORST = 20  # sentences


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
    for each in directions:
        if sections := [_compared(gold[index], index, systems) for index in each.ahead[:AHEAD]]:
            title = f"<h2>Sentences that {each.right} parses better</h2>\n{legend('gold')}"
            body += [part(f"ahead-{each.right}", title), sections_html(sections, prefix=f"{each.right.lower()}-")]
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
    for kind, each in calibration.items():
        points = [(100 * one.confidence, 100 * one.accuracy) for one in each.bins]
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
            ShareBar(name, group.las, f"({group.words:,})") for name, group in report.by_length.items()
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
    tree = tree_of(gold.words)
    figures = [figure_of(tree, None, "gold")]
    for system in systems:
        parse = system.parses[index]
        drawn = tree_of(gold.words.with_tree(parse.heads or (), parse.labels or ()))
        figures.append(figure_of(drawn, tree, system.name))
    return section_of(gold, index, figures)
