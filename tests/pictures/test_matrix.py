"""Heat maps of marginals: every number in its cell, readable in both colour schemes."""

import re
from xml.etree import ElementTree

import pytest
from helpers.drawn import SVG

from treeparse.pictures.matrix import CELL, LEAST, STRONG, draw_marginals
from treeparse.pictures.style import DARK, LIGHT
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


def luminance(colour: tuple[float, ...]) -> float:
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour]
    return sum(weight * c for weight, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one: tuple[float, ...], other: tuple[float, ...]) -> float:
    """That of the Web Content Accessibility Guidelines 2."""
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def rgb(colour: str) -> tuple[float, ...]:
    return tuple(int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5))


@pytest.mark.parametrize("scheme", [LIGHT, DARK], ids=["light", "dark"])
def test_texts_are_readable(scheme: dict[str, str]) -> None:
    heat, ground = rgb(scheme["heat"]), rgb(scheme["ground"])
    for value in (step / 200 for step in range(201)):
        behind = tuple(value * h + (1 - value) * g for h, g in zip(heat, ground, strict=True))
        assert contrast(behind, rgb(scheme["on-heat" if value > STRONG else "value"])) >= 4.45
    assert all(contrast(rgb(scheme[name]), ground) >= 4.5 for name in ("ink", "label", "tag", "mark"))
    assert contrast(rgb(scheme["line"]), ground) >= 3
