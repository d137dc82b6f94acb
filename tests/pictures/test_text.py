"""Texts: what is removed, what is shown, how wide they are, and which way they run."""

import unicodedata

import pytest

from treeparse.pictures.svg import clean, escaped, runs_to_the_left, text_width, visible


def test_whatever_is_no_xml_is_removed() -> None:
    everything = "".join(map(chr, range(0x3000))) + "\ud800\udfff\ufffe\uffff\U0001fffe\U000e0001\U0001f600"
    left = clean(everything)
    left.encode()  # no surrogates
    assert not any(unicodedata.category(character) in ("Cc", "Cs") for character in left)
    assert not set(left) & set("\u202a\u202e\u2066\u2069\u200e\ufffe\uffff\U0001fffe")
    assert left.endswith("\U0001f600") and {"\u200d", "é", "ش"} <= set(left)


@pytest.mark.parametrize(
    ("text", "shown"),
    [("a\nb", "a b"), ("", ""), ("\u200b", "U+200B"), (" ", "U+0020"), ("\u0301", "U+0301"), ("\x00x", "x")],
)
def test_what_is_shown(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_markup_is_escaped() -> None:
    assert escaped("<a href='x\">&") == "&lt;a href=&#x27;x&quot;&gt;&amp;"


def test_widths_order_characters() -> None:
    assert text_width("iiii", 10) < text_width("nnnn", 10) < text_width("WWWW", 10) < text_width("日本語字", 10) + 1
    assert text_width("e\u0301", 10) == text_width("e", 10)
    family = "👩\u200d👩\u200d👧\u200d👦"
    assert text_width(family, 10) == text_width("👩", 10) == text_width("👍🏽", 10)
    assert text_width("ab", 20) == 2 * text_width("ab", 10) == text_width("a", 20) + text_width("b", 20)


@pytest.mark.parametrize(
    ("words", "leftwards"),
    [
        (["The", "end"], False),
        (["كتب", "الولد", "PC", "12"], True),
        (["שלום", "international"], False),
        (["123", "!"], False),
        ([], False),
    ],
)
def test_the_direction_is_that_of_most_letters(words: list[str], leftwards: bool) -> None:
    assert runs_to_the_left(words) is leftwards
