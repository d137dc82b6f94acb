"""A parse in a notebook."""

from helpers.drawn import read_drawn

from treeparse import Parse


def test_a_notebook_shows_a_parse_as_a_picture() -> None:
    parse = Parse(("She", "saw", "<it>"), (2, 0, 2), ("nsubj", "root", "obj"), -0.5, 3.0, upos=("PRON", "VERB", "X"))
    svg = parse._repr_svg_()
    drawn = read_drawn(svg)
    assert svg.startswith("<svg ") and [text for _, text in drawn.words] == list(parse.tokens)
    assert {arc for arc, _ in drawn.arcs} == {(2, 1), (0, 2), (2, 3)} and drawn.tags == ["PRON", "VERB", "X"]


def test_a_long_parse_fits_between_the_cells() -> None:
    parse = Parse(("international",) * 40, (0, *range(1, 40)), ("root", *["conj"] * 39), -1.0, 0.0)
    assert read_drawn(parse._repr_svg_()).size[0] <= 900
