"""Heat maps of marginals: every number in its cell, readable in both colour schemes."""

import re
from xml.etree import ElementTree

import pytest
from helpers.drawn import SVG

from treeparse.pictures.plots import CELL, LEAST, draw_marginals
from treeparse.pictures.svg import document

WORDS = ("She", "<saw>", "her")
MARGINALS = [
    [0.0, 0.25, 0.7, 0.05],
    [0.0, 0.0, 0.251, 0.001],
    [0.0, 0.7, 0.0, 0.949],
    [0.0, 0.05, 0.049, 0.0],
]


def cells(svg: str) -> dict[tuple[str, str], tuple[float, float, str]]:
    """Of each arc the middle of its cell and the number there."""
    found = {}
    for group in ElementTree.fromstring(svg).iter(f"{SVG}g"):
        rect, title = group.find(f"{SVG}rect"), group.findtext(f"{SVG}title")
        if rect is not None and title and " → " in title:
            arc, _, _ = title.rpartition(": ")
            head, _, dependent = arc.partition(" → ")
            x, y = (float(rect.attrib[side]) + CELL / 2 for side in ("x", "y"))
            found[head, dependent] = (x, y, group.findtext(f"{SVG}g/{SVG}text") or "")
    return found


def test_every_number_stands_in_its_cell() -> None:
    found = cells(document(draw_marginals(WORDS, MARGINALS)))
    names = ["root", *WORDS]
    expected = {
        (names[head], names[dependent]): f"{value:.2f}".removeprefix("0") if value >= LEAST else ""
        for head, row in enumerate(MARGINALS)
        for dependent, value in enumerate(row)
        if dependent and head != dependent
    }
    assert {arc: text for arc, (_, _, text) in found.items()} == expected
    assert len({y for (head, _), (_, y, _) in found.items() if head == "root"}) == 1
    columns = [found["root", word][0] for word in WORDS]
    assert columns == pytest.approx([columns[0], columns[0] + CELL, columns[0] + 2 * CELL])


def test_columns_run_with_the_script() -> None:
    words = ("ילדה", "קראה", "ספר")
    found = cells(document(draw_marginals(words, MARGINALS)))
    columns = [found["root", word][0] for word in words]
    assert columns == pytest.approx([columns[0], columns[0] - CELL, columns[0] - 2 * CELL])


def test_the_arcs_of_the_parse_are_framed() -> None:
    framed = re.findall(
        r"<title>([^<]*): [^<]*</title>(?:(?!<title>).)*tp-frame", draw_marginals(WORDS, MARGINALS, (2, 0, 2)).body
    )
    assert framed == ["root → &lt;saw&gt;", "&lt;saw&gt; → She", "&lt;saw&gt; → her"]


def test_another_size_is_an_error() -> None:
    with pytest.raises(ValueError, match="Marginals of 2 words must be 3 rows of 3 numbers"):
        draw_marginals(WORDS[:2], MARGINALS)
