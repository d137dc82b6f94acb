"""Pages: one file with an anchor a sentence, nothing from elsewhere, every text escaped."""

import re
from html.parser import HTMLParser

from treeparse.pictures import Tree, draw_tree
from treeparse.pictures.page import Figure, Section, legend, page
from treeparse.pictures.svg import document, stacked

DRAWING = draw_tree(Tree(("a", "<b>"), (0, 1), ("root", "x&y")))


class Elements(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))


def test_every_sentence_has_its_anchor() -> None:
    names = ["s 1", "s 1", "<i>", "של", "s\t1"]
    text = page("A & B", [Section(name, f"text of {name}", (Figure(DRAWING, "gold <1>"),)) for name in names])
    elements = Elements(text)
    assert elements.open == []
    ids = [attributes["id"] for tag, attributes in elements.seen if tag == "section"]
    assert ids == ["s-s-1", "s-s-1+2", "s-<i>", "s-של", "s-s-1+3"]
    links = [attributes["href"] for tag, attributes in elements.seen if tag == "a"]
    assert links[:5] == links[5:] == ["#s-s-1", "#s-s-1%2B2", "#s-%3Ci%3E", "#s-%D7%A9%D7%9C", "#s-s-1%2B3"]
    assert [tag for tag, _ in elements.seen].count("svg") == 5
    assert not {tag for tag, _ in elements.seen} & {"i", "script", "link", "img"}
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)|url\(|@import", text)
    assert "gold &lt;1&gt;" in text and "A &amp; B" in text and text.count("prefers-color-scheme:dark") == 2


def test_one_sentence_needs_no_list() -> None:
    text = page("one", [Section("1", "a b", (Figure(DRAWING),))], introduction=legend("gold"))
    assert "<nav" not in text and "figcaption>" not in text and "Compared with gold" in text


def test_drawings_stand_below_each_other() -> None:
    both = stacked([DRAWING, DRAWING], ["one <1>", ""], "title")
    assert both.height > 2 * DRAWING.height and both.width >= DRAWING.width
    assert document(both).count("one &lt;1&gt;") == 1 and document(both).count("tp-caption") == 2  # one in the style


def test_sentences_of_right_to_left_scripts_stand_at_the_right() -> None:
    drawing = draw_tree(Tree(("שלום",), (0,), ("root",)))
    assert 'class="tp-figures" dir="rtl"' in page("t", [Section("1", "שלום", (Figure(drawing),))])
