"""What commands write for people: lines that a terminal shows as they are, whatever the files hold that they quote."""

import sys
import unicodedata
from typing import TextIO

LONGEST = 500  # characters of a message
_OBEYED = "Cc", "Cs", "Zl", "Zp"  # categories of characters that a terminal does not show but obey, or cannot write
_TURNING = {*range(0x202A, 0x202F), *range(0x2066, 0x206A)}  # marks of direction, which put other text elsewhere


def line(text: str) -> str:
    """Return a text as one line: line ends and tabs become spaces, what a terminal would obey reads as in a string."""
    if text.isprintable():
        return text
    return "".join(" " if character in "\n\r\t" else _shown(character) for character in text)


def _shown(character: str) -> str:
    is_shown = unicodedata.category(character) not in _OBEYED and ord(character) not in _TURNING
    return character if is_shown else ascii(character)[1:-1]


def message(text: str) -> str:
    """Return a text as one line of at most ``LONGEST`` characters, without its middle where it is longer."""
    text = line(text)
    kept = (LONGEST - len(" [...] ")) // 2
    return text if len(text) <= LONGEST else f"{text[:kept]} [...] {text[-kept:]}"


def write(*lines: str, to: TextIO | None = None) -> None:
    """Write lines to standard output or another stream."""
    print("\n".join(map(line, lines)), file=to, flush=to is not None)


def warn(text: str) -> None:
    """Write a message to standard error."""
    write(message(text), to=sys.stderr)
