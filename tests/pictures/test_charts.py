"""Charts: bars as long as their shares, curves through their points, names apart."""

import re
from xml.etree import ElementTree

import pytest
from helpers.drawn import SVG

from treeparse.pictures.plots import ShareBar, draw_bars, draw_curves
from treeparse.pictures.svg import document


def test_bars_are_as_long_as_their_shares() -> None:
    bars = [ShareBar("nsubj<", 0.5, "(10)"), ShareBar("obj", 1.0), ShareBar("det", 0.0)]
    root = ElementTree.fromstring(document(draw_bars(bars, "title")))
    widths = [float(rect.attrib["width"]) for rect in root.iter(f"{SVG}rect") if rect.get("class") == "tp-bar"]
    assert widths[0] * 2 == widths[1] > 0 == widths[2]
    texts = [text.text for text in root.iter(f"{SVG}text")]
    assert texts == ["nsubj<", "50.00 (10)", "obj", "100.00", "det", "0.00"]


def test_curves_go_through_their_points() -> None:
    curves = {"one": [(1.0, 10.0), (2.0, 30.0), (5.0, 20.0)], "two": [(1.0, 20.0), (5.0, 20.5)]}
    svg = document(draw_curves(curves, "title"))
    root = ElementTree.fromstring(svg)
    paths = [path.attrib["d"] for path in root.iter(f"{SVG}path") if path.get("class") == "tp-curve"]
    points = [[tuple(map(float, pair.split())) for pair in path[1:].split("L")] for path in paths]
    (x1, y1), (x2, y2), (x5, y5) = points[0]
    assert (x2 - x1) / (x5 - x1) == pytest.approx(1 / 4, abs=1e-3)
    assert (y1 - y5) / (y1 - y2) == pytest.approx(1 / 2, abs=1e-2)  # larger numbers stand higher
    assert points[1][0] == (x1, y5)
    assert len(re.findall(r'tp-curve"[^>]*stroke-dasharray', svg)) == 1
    names = {text.text: float(text.attrib["y"]) for text in root.iter(f"{SVG}text") if text.text in curves}
    assert abs(names["one"] - names["two"]) >= 12


@pytest.mark.parametrize("values", [[3.0], [0.0, 0.0], [-1e-7, 1e-7], [1.0, 1e6], [84.61, 84.63], [-5.0, -5.0]])
def test_axes_hold_all_values(values: list[float]) -> None:
    drawing = draw_curves({"a": list(enumerate(values))}, "title")
    root = ElementTree.fromstring(document(drawing))
    rules = [path.attrib["d"] for path in root.iter(f"{SVG}path") if path.get("class") == "tp-rule"]
    heights = [float(re.findall(r"[\d.-]+", rule)[1]) for rule in rules]
    [path] = [path.attrib["d"] for path in root.iter(f"{SVG}path") if path.get("class") == "tp-curve"]
    assert 2 <= len(rules) <= 8
    assert all(min(heights) - 0.1 <= float(pair.split()[1]) <= max(heights) + 0.1 for pair in path[1:].split("L"))


def test_a_curve_has_points() -> None:
    with pytest.raises(ValueError, match="A chart needs one or more curves of one or more points each"):
        draw_curves({"a": []}, "title")
