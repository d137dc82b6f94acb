"""Trees as pictures: what is drawn is read back from the SVG and checked against the tree, by geometry."""

import itertools
from xml.etree import ElementTree

import pytest
from helpers.drawn import SVG, boxes_overlap, corners, cross, meet, random_tree, read_drawn, span

from treeparse.pictures import Tree, draw_tree, tree_svg
from treeparse.pictures.layout import WORD_SIZE
from treeparse.pictures.svg import MARGIN, document, text_width, visible

ROUNDING = 0.1  # of what is written

CASES = [
    (seed, count, projective, wrap)
    for seed, count in ((1, 1), (2, 2), (3, 7), (4, 15), (5, 40))
    for projective in (True, False)
    for wrap in (None, 300.0, 700.0)
]


@pytest.mark.parametrize(("seed", "count", "projective", "wrap"), CASES)
def test_geometry(seed: int, count: int, projective: bool, wrap: float | None) -> None:
    tree = random_tree(seed, count, projective=projective)
    drawn = read_drawn(document(draw_tree(tree, wrap=wrap)))
    assert [text for _, text in drawn.words] == list(tree.words)
    arcs = {(head, dependent) for dependent, head in enumerate(tree.heads, 1)}
    assert {arc for arc, _ in drawn.arcs} == arcs
    assert sorted(drawn.tips) == sorted(arcs)
    assert not any(boxes_overlap(a, b) for (a, _), (b, _) in itertools.combinations(drawn.labels, 2))
    for (one, line), (other, another) in itertools.combinations(drawn.arcs, 2):
        assert one == other or cross(one, other) or not meet(line, another), (one, other)
    width, height = drawn.size
    right, bottom = width - 2 * MARGIN + ROUNDING, height - 2 * MARGIN + ROUNDING
    assert all(0 <= x <= right and 0 <= y <= bottom for _, line in drawn.arcs for x, y in line)
    assert all(box[0] >= -ROUNDING and box[2] <= right and box[1] >= 0 for box, _ in drawn.labels)
    assert height > 0 and (wrap is None or width <= wrap or len({y for (_, y), _ in drawn.words}) > 1)


@pytest.mark.parametrize("seed", range(8))
def test_every_label_stands_on_its_arc(seed: int) -> None:
    tree = random_tree(seed, 12, projective=seed % 2 == 0)
    drawn = read_drawn(document(draw_tree(tree)))
    for (arc, line), (box, text) in zip(drawn.arcs, drawn.labels, strict=True):
        assert text == tree.labels[arc[1] - 1]
        top = min(y for _, y in line)
        assert box[1] < top < box[3]
        ends = [x for x, y in line if y == top]
        assert arc[0] == 0 or (min(ends) < box[0] and box[2] < max(ends))


def test_labels_make_way_for_arcs_that_come_down_through_theirs() -> None:
    words = ("a", "hearing", "is", "scheduled", "on", "the", "issue", "today", ".")
    tree = Tree(words, (2, 4, 4, 0, 7, 7, 2, 4, 4), ("x", "x", "x", "root", "x", "x", "nmod", "x", "x"))
    drawn = read_drawn(document(draw_tree(tree)))
    [box] = [box for box, text in drawn.labels if text == "nmod"]
    [root] = [line for arc, line in drawn.arcs if arc == (0, 4)]
    [around] = [line for arc, line in drawn.arcs if arc == (2, 7)]
    assert meet(root, around) and not box[0] <= root[0][0] <= box[2]


@pytest.mark.parametrize("seed", range(8))
def test_arcs_run_as_low_as_their_nesting_allows(seed: int) -> None:
    tree = random_tree(seed, 14, projective=True, labels=("x",))
    drawn = read_drawn(document(draw_tree(tree)))
    spans = [span(arc) for arc, _ in drawn.arcs if arc[0]]
    depth: dict[tuple[int, int], int] = {}
    for outer in sorted(spans, key=lambda ends: ends[1] - ends[0]):
        inside = [depth[inner] for inner in depth if outer[0] <= inner[0] and inner[1] <= outer[1]]
        depth[outer] = 1 + max(inside, default=0)
    heights = {min(y for _, y in line) for arc, line in drawn.arcs if arc[0]}
    assert len(heights) == max(depth.values())


def test_rows_end_within_the_width_and_arcs_go_on() -> None:
    tree = random_tree(7, 40, projective=True, labels=("x",))
    drawn = read_drawn(document(draw_tree(tree, wrap=500)))
    assert drawn.size[0] <= 500
    heights = [y for (_, y), _ in drawn.words]
    rows = [[place for place, y in enumerate(heights, 1) if y == height] for height in sorted(set(heights))]
    assert len(rows) > 2
    for arc in {arc for arc, _ in drawn.arcs}:
        first, last = span(arc)
        touched = sum(words[0] <= last and first <= words[-1] for words in rows)
        assert sum(other == arc for other, _ in drawn.arcs) == touched
        assert drawn.tips.count(arc) == 1


def test_words_of_right_to_left_scripts_run_to_the_left() -> None:
    hebrew = ("הילדה", "קראה", "ספר", "2", "!")
    heads, labels = (2, 0, 2, 3, 2), ("nsubj", "root", "obj", "nummod", "punct")
    drawn = read_drawn(tree_svg(hebrew, heads, labels))
    places = [x for (x, _), _ in drawn.words]
    assert places == sorted(places, reverse=True) and [text for _, text in drawn.words] == list(hebrew)
    assert tree_svg(hebrew, heads, labels).count('direction="rtl"') == len(hebrew)
    other = read_drawn(tree_svg(("The", "קראה", "girl", "2", "!"), heads, labels))
    places = [x for (x, _), _ in other.words]
    assert places == sorted(places)
    wrapped = read_drawn(tree_svg(hebrew * 4, tuple([2, 0] + [2] * 18), ("x",) * 20, wrap=300))
    for _, row in itertools.groupby(wrapped.words, key=lambda word: word[0][1]):
        places = [x for (x, _), _ in row]
        assert places == sorted(places, reverse=True)


def test_hostile_texts_are_escaped_and_controls_removed() -> None:
    words = ("<b>&amp;\"'", "a\x00b\x1bc\u202ed\ufffe", "\x07", "x\ty")
    drawn = read_drawn(tree_svg(words, (0, 1, 1, 1), ("<root>", "a&b", "\x01c", '"'), ("N<", "_", "_", "&")))
    assert [text for _, text in drawn.words] == ["<b>&amp;\"'", "abcd", "U+0007", "x y"]
    assert sorted(text for _, text in drawn.labels) == ['"', "<root>", "a&b", "c"]
    assert drawn.tags == ["N<", "&"] and drawn.title == "<b>&amp;\"' abcd U+0007 x y"


def test_a_long_word_is_shortened_and_stands_in_a_note() -> None:
    word = "https://" + "a" * 300 + "/end"
    svg = tree_svg([word], [0], ["root"])
    [(_, text)] = read_drawn(svg).words
    assert len(text) == 60 and text.startswith("https://") and text.endswith("/end") and "…" in text
    assert f"<title>{word}</title>" in svg


def test_differences_are_marked_where_they_are() -> None:
    for seed in range(6):
        tree, other = (random_tree(seed + shift, 9, projective=False) for shift in (0, 100))
        reference = Tree(tree.words, other.heads[:4] + tree.heads[4:], other.labels)
        drawn = read_drawn(document(draw_tree(tree, reference)))
        places = range(9)
        moved = {place for place in places if tree.heads[place] != reference.heads[place]}
        renamed = [place for place in places if place not in moved and tree.labels[place] != reference.labels[place]]
        assert drawn.classes.get("tp-other-head", set()) == {(tree.heads[place], place + 1) for place in moved}
        assert sorted(drawn.framed) == sorted(tree.labels[place] for place in renamed)
        assert moved and renamed
        assert "tp-other" not in draw_tree(tree, tree).body


def test_unknown_heads_have_no_arc_and_cycles_are_drawn() -> None:
    drawn = read_drawn(tree_svg(["a", "b", "c"], [-1, 3, 2], ["_", "x", "y"]))
    assert {arc for arc, _ in drawn.arcs} == {(3, 2), (2, 3)} and len(drawn.words) == 3
    assert not meet(drawn.arcs[0][1], drawn.arcs[1][1])


@pytest.mark.parametrize(
    ("heads", "labels", "problem"),
    [
        ([0], ["root", "x"], "A tree of 2 words needs 2 heads, got 1."),
        ([0, 1], ["root"], "A tree of 2 words needs 2 labels, got 1."),
        ([0, 3], ["root", "x"], "The head of word 2 must be another word, from 1 to 2, 0 or -1, got 3."),
        ([0, 2], ["root", "x"], "The head of word 2 must be another word, from 1 to 2, 0 or -1, got 2"),
    ],
)
def test_what_is_no_tree(heads: list[int], labels: list[str], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        tree_svg(["a", "b"], heads, labels)


def test_a_reference_has_the_same_words() -> None:
    with pytest.raises(ValueError, match="The reference tree must have the words of the drawn tree"):
        draw_tree(Tree(("a",), (0,), ("root",)), Tree(("b",), (0,), ("root",)))


@pytest.mark.parametrize("wrap", [None, 60.0])
@pytest.mark.parametrize(
    "words", [("da", "me", "lo", "ya"), ("ב", "ה", "בית", "גדול")], ids=["rightwards", "leftwards"]
)
@pytest.mark.parametrize("form", ["x", "contrarreformistísimamente", "הבית" * 30])
def test_tokens_stand_below_their_words(words: tuple[str, ...], form: str, wrap: float | None) -> None:
    svg = tree_svg(words, (0, 1, 1, 1), ("root", "a", "b", "c"), ("X",) * 4, tokens=[(1, 3, form)], wrap=wrap)
    drawn, ends = read_drawn(svg), list[float]()
    for group in (node for node in ElementTree.fromstring(svg).iter(f"{SVG}g") if node.get("class") == "tp-token"):
        line, text = group.find(f"{SVG}path"), group.find(f"{SVG}text")
        assert line is not None and text is not None
        [(left, y), (right, _)] = sorted(corners(line.attrib["d"]))
        above = [(x, height) for (x, height), word in drawn.words if left < x < right and height < y]
        assert above and max(height for _, height in above) < y < float(text.attrib["y"])
        assert text.text == visible(form) and (group.findtext(f"{SVG}title") or form) == form
        ends += [left, right]
        if wrap is None:
            assert len(above) == 3 and right - left >= text_width(visible(form), WORD_SIZE) - ROUNDING
    assert len(ends) == (2 if wrap is None else 6)
    assert tree_svg(words, (0, 1, 1, 1), ("root", "a", "b", "c"), tokens=[]).count("tp-token") == 0


@pytest.mark.parametrize("token", [(0, 1, "x"), (2, 1, "x"), (1, 3, "x")])
def test_tokens_span_words(token: tuple[int, int, str]) -> None:
    with pytest.raises(ValueError, match="A token must span words from 1 to 2"):
        tree_svg("ab", (0, 1), ("root", "x"), tokens=[token])
