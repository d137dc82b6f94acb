"""The tables of ``treeparse evaluate --calibration``."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from treeparse.cli.scores import Table
from treeparse.cli.tables import percent
from treeparse.data.parses import with_parses
from treeparse.sentence import Sentence

if TYPE_CHECKING:
    from treeparse.metrics import Calibration
    from treeparse.model import Parse

PARTS = {"arcs": "arcs", "labels": "labels given arcs", "labeled_arcs": "arcs and labels"}


def calibration_of(gold: Sequence[Sentence], parses: "Sequence[Parse]") -> "dict[str, Calibration]":
    """Compare the probabilities of parses with how often they are right."""
    from treeparse.metrics import parse_calibration

    probs = ([parse.arc_probs or () for parse in parses], [parse.label_probs or () for parse in parses])
    return parse_calibration(gold, with_parses(gold, parses), *probs)


def calibration_tables(found: "Mapping[str, Calibration]") -> list[Table]:
    """Errors of calibration, a row for each kind of probability, and the bins of each, in points but for counts."""
    rows = [["calibration", "words", "probability", "right", "ECE", "ECE, equal mass", "Brier score"]]
    for part, each in found.items():
        figures = map(percent, (each.confidence, each.accuracy, each.ece, each.ece_mass))
        rows.append([PARTS[part], f"{each.words:,}", *figures, f"{each.brier:.4f}"])
    return [rows, *(_bins(PARTS[part], each) for part, each in found.items())]


def _bins(title: str, found: "Calibration") -> Table:
    rows = [[title, "words", "probability", "right", "difference"]]
    for each in found.bins:
        difference = percent(each.accuracy - each.confidence, signed=True)
        shown = percent(each.confidence), percent(each.accuracy), difference
        rows.append([f"{percent(each.low)} to {percent(each.high)}", f"{each.words:,}", *shown])
    return rows
