"""The page of ``treeparse evaluate --html``: scores, learning curves, errors by kind, the worst parses drawn."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from treeparse.cli.reliability import PARTS, calibration_tables
from treeparse.cli.scores import AHEAD, Table
from treeparse.cli.sections import figure_of, section_of, tree_of
from treeparse.cli.tables import percent
from treeparse.data.conllu import ConlluSentence
from treeparse.model.folder.files import RUN_MODEL
from treeparse.pictures.charts import ShareBar, draw_bars, draw_curves
from treeparse.pictures.page import Figure, Section, figure, html_page, legend, part, sections_html, table
from treeparse.pictures.text import escaped
from treeparse.sentence import Sentence

if TYPE_CHECKING:
    from treeparse.metrics import AttachmentReport, Calibration
    from treeparse.metrics.advantages import Direction
    from treeparse.training.state.history import EpochRecord

CONFUSIONS = 20  # pairs of labels
LABELS = 25  # by how often gold has them
WORST = 20  # sentences


@dataclass(frozen=True, slots=True)
class Judged:
    """A system's parses and their scores, and what else is known.

    That is the oracle scores of its lists, how far its probabilities come true, and the history of the run it is of.
    """

    name: str
    sentences: "list[Sentence]"
    report: "AttachmentReport"
    oracle: Table | None = None
    calibration: "Mapping[str, Calibration]" = field(default_factory=dict)
    history: "list[EpochRecord]" = field(default_factory=list)


def run_history(directories: Sequence[str]) -> "list[EpochRecord]":
    """The history of the run that a model is of: none where it is of no run, or where several parse as one."""
    from treeparse.training.state.history import read_csv
    from treeparse.training.state.run_directory import RunDirectory

    if len(directories) != 1:
        return []
    folder = Path(directories[0]).resolve()
    run = RunDirectory(folder.parent if folder.name == RUN_MODEL else folder)
    return read_csv(run.metrics) if run.metrics.is_file() else []


def report_page(
    heading: Sequence[str],
    tables: Sequence[Table],
    gold: "Sequence[ConlluSentence]",
    systems: Sequence[Judged],
    found: "Sequence[Direction]" = (),
) -> str:
    """The page.

    Args:
        heading: what was compared, in lines.
        tables: the scores.
        gold: the sentences with gold trees.
        systems: one or more, with parses of the same words.
        found: of two systems, what one of them alone has right.
    """
    lines = "<br>\n".join(map(escaped, heading))
    body = [part("scores", f"<h2>Scores</h2>\n<p>{lines}</p>\n{''.join(map(table, tables))}")]
    body += [part(f"system-{number}", _system(gold, system)) for number, system in enumerate(systems, 1)]
    body += _advantages(gold, systems, found)
    worst = _worst(gold, systems)
    if worst:
        body.append(part("worst", f"<h2>Sentences of most errors</h2>\n{legend('gold')}"))
        body.append(sections_html(worst))
    return html_page(f"Scores on {heading[0].split(maxsplit=1)[-1]}", "".join(body))


def _advantages(
    gold: "Sequence[ConlluSentence]", systems: Sequence[Judged], found: "Sequence[Direction]"
) -> "Iterator[str]":
    """The sentences in which one of two systems is furthest ahead, for each of the two."""
    for each in found:
        if sections := [_compared(gold[place], place, systems) for place in each.ahead[:AHEAD]]:
            yield part(f"ahead-{each.right}", f"<h2>Sentences that {each.right} parses better</h2>\n{legend('gold')}")
            yield sections_html(sections, prefix=f"{each.right.lower()}-")


def _system(gold: "Sequence[ConlluSentence]", system: Judged) -> str:
    """What is said of one system."""
    words = [sentence.words for sentence in gold]
    parts = [f"<h2>{escaped(system.name)}</h2>\n"]
    if system.oracle is not None:
        parts.append(table(system.oracle))
    if system.calibration:
        errors, *_ = calibration_tables(system.calibration)  # the bins are drawn
        parts.append(table(errors))
    figures = [*_reliability(system.calibration), *_curves(system.history), *_bars(words, system)]
    parts.append(f'<div class="tp-figures">{"".join(map(figure, figures))}</div>\n')
    confusions = _confusions(words, system.sentences)
    if len(confusions) > 1:
        parts.append(table(confusions))
    return "".join(parts)


def _reliability(calibration: "Mapping[str, Calibration]") -> "Iterator[Figure]":
    """How often what has a probability is right, beside how often it should be."""
    for kind, found in calibration.items():
        points = [(100 * each.confidence, 100 * each.accuracy) for each in found.bins]
        ends = points[0][0], points[-1][0]
        caption = f"{PARTS[kind]} that are right, %, by their probability, %"
        yield Figure(draw_curves({"as found": points, "as they say": [(end, end) for end in ends]}, caption), caption)


def _curves(history: "Sequence[EpochRecord]") -> "Iterator[Figure]":
    """The learning curves of a run of two records or more."""
    if len(history) < 2:
        return
    scores = {"dev UAS": [(r.epoch, 100 * r.dev_uas) for r in history if r.dev_uas is not None]}
    scores["dev LAS"] = [(r.epoch, 100 * r.dev_las) for r in history if r.dev_las is not None]
    losses = {"training": [(r.epoch, r.loss) for r in history]}
    losses["dev"] = [(r.epoch, r.dev_loss) for r in history if r.dev_loss is not None]
    for caption, curves in (("scores on the dev set, %, by epoch", scores), ("loss, nats a word, by epoch", losses)):
        if drawn := {name: points for name, points in curves.items() if points}:
            yield Figure(draw_curves(drawn, caption), caption)


def _bars(gold: "list[Sentence]", system: Judged) -> "Iterator[Figure]":
    """Scores by length of sentences and of arcs, and by label."""
    from treeparse.metrics.errors import arc_length_scores

    report, arcs = system.report, arc_length_scores(gold, system.sentences)
    labels = sorted(report.by_label.items(), key=lambda item: -item[1].gold)[:LABELS]
    charts: list[tuple[str, list[ShareBar]]] = [
        (
            "LAS by words of the sentence (words)",
            [ShareBar(name, group.las, f"({group.words:,})") for name, group in report.by_length.items()],
        ),
        (
            "arcs of gold that are found, by length (arcs)",
            [ShareBar(name, score.recall, f"({score.gold:,})") for name, score in arcs.items() if score.gold],
        ),
        (
            "arcs of the system that are right, by length (arcs)",
            [ShareBar(name, score.precision, f"({score.system:,})") for name, score in arcs.items() if score.system],
        ),
        ("F1 by label (words of gold)", [ShareBar(name, score.f1, f"({score.gold:,})") for name, score in labels]),
    ]
    for caption, bars in charts:
        yield Figure(draw_bars(bars, caption), caption)


def _confusions(gold: "list[Sentence]", system: "list[Sentence]") -> Table:
    from treeparse.metrics.errors import label_confusions

    rows = [["label in gold", "system's label", "words", "with the right head"]]
    for pair in label_confusions(gold, system)[:CONFUSIONS]:
        rows.append([pair.gold, pair.system, f"{pair.words:,}", f"{percent(pair.heads / pair.words)}%"])
    return rows


def _worst(gold: "Sequence[ConlluSentence]", systems: Sequence[Judged]) -> "list[Section]":
    """The sentences of most wrong words, of all systems together, gold's tree above theirs."""
    from treeparse.metrics.errors import wrong_words

    errors = [
        sum(wrong_words(sentence.words, system.sentences[place]) for system in systems)
        for place, sentence in enumerate(gold)
    ]
    order = sorted(range(len(gold)), key=lambda place: -errors[place])[:WORST]
    return [_compared(gold[place], place, systems) for place in order if errors[place]]


def _compared(gold: "ConlluSentence", place: int, systems: Sequence[Judged]) -> "Section":
    """A sentence with gold's tree above those of the systems."""
    tree = tree_of(gold.words)
    figures = [figure_of(tree, None, "gold")]
    for system in systems:
        parse = system.sentences[place]
        drawn = tree_of(gold.words.with_tree(parse.heads or (), parse.labels or ()))
        figures.append(figure_of(drawn, tree, system.name))
    return section_of(gold, place, figures)
