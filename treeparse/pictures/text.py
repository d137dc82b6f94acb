"""Texts in pictures: their visible characters, width and direction."""

import html
import unicodedata
from collections.abc import Iterable

ELLIPSIS = "…"
MOST_CHARACTERS = 60  # of a word or label in a picture; its tooltip has all of them

_SPACES = "\t\n\r\v\f"
_UNSEEN = ("Cc", "Cf", "Cs", "Cn", "Zs", "Zl", "Zp", "Mn", "Me")
_JOINER = "\u200d"  # joins emoji to one
_JOINING = ("\u200c", _JOINER)  # format characters that scripts and emoji need

# Shares of the font's size, on the wide side of common sans-serif fonts.
_WIDTHS = {
    **dict.fromkeys("ijl|'`!.,:;", 0.32),
    **dict.fromkeys(' frtI()[]{}/\\-"', 0.42),
    **dict.fromkeys("mw", 0.92),
    **dict.fromkeys("MW%@—…", 1.0),
}
_CAPITAL, _OTHER, _WIDE, _EMOJI, _FLAG_HALF = 0.74, 0.62, 1.02, 1.35, 0.7


def clean(text: str) -> str:
    """Return a text without control characters and marks of direction; line ends become spaces."""
    spaced = "".join(" " if character in _SPACES else character for character in text)
    return "".join(character for character in spaced if character in _JOINING or not _is_control(character))


def _is_control(character: str) -> bool:
    category = unicodedata.category(character)
    return category in ("Cc", "Cs", "Cf") or (ord(character) & 0xFFFE) == 0xFFFE


def escaped(text: str) -> str:
    """Return a text escaped for elements and attributes of XML and HTML."""
    return html.escape(clean(text), quote=True)


def visible(text: str) -> str:
    """Return a word as it is drawn: cleaned and cut to fit; an invisible word becomes its code points."""
    shown = clean(text)
    if all(unicodedata.category(character) in _UNSEEN for character in shown):
        shown = " ".join(f"U+{ord(character):04X}" for character in text)
    if len(shown) <= MOST_CHARACTERS:
        return shown
    half = MOST_CHARACTERS // 2
    return f"{shown[:half]}{ELLIPSIS}{shown[1 - half :]}"


def text_width(text: str, size: float) -> float:
    """Return the approximate width of a text, in the unit of the font's ``size``."""
    width, before = 0.0, ""
    for character in text:
        if before != _JOINER:
            width += _character_width(character)
        before = character
    return width * size


def _character_width(character: str) -> float:
    if (known := _WIDTHS.get(character)) is not None:
        return known
    if unicodedata.category(character) in ("Mn", "Me", "Cf") or "\U0001f3fb" <= character <= "\U0001f3ff":
        return 0.0  # marks on the character before, skin colours
    if "\U0001f1e6" <= character <= "\U0001f1ff":
        return _FLAG_HALF
    if character >= "\U0001f000":
        return _EMOJI
    if unicodedata.east_asian_width(character) in "WF":
        return _WIDE
    return _CAPITAL if character.isupper() else _OTHER


def runs_to_the_left(words: Iterable[str]) -> bool:
    """Whether most characters are of scripts written from right to left."""
    kinds = [unicodedata.bidirectional(character) for word in words for character in word]
    return kinds.count("R") + kinds.count("AL") > kinds.count("L")
