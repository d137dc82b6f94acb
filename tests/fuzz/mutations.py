"""Files as accidents and enemies leave them: cut, joined, with odd bytes, and with odd values in fields."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from hypothesis import strategies as st

ODD_BYTES = (
    *(b"\x00", b"\xff", b"\xc3", b"\xc2\xa0", b"\xe2\x80\xa8", b"\x1b[2J", b"\r", b"\r\n", b"\n", b"\n\n", b"\t", b" "),
    b"\xed\xa0\x80",  # half of a surrogate pair
    b"\xef\xbb\xbf",  # a byte order mark
    *(b"\x0c", b"\x85", b'"', b"\\", b"{", b"[" * 50, b"#", b":"),
)
ODD_VALUES = (
    *(b"", b"_", b"0", b"-1", b"1", b"2", b"7", b"01", b"+1", b"1.5", b"1-2", b"2-1", b"1.1", b"0.1", b"1e400"),
    *(b"NaN", b"-Infinity", b"99999999999999999999", b"9" * 5000, b"null", b"true", b"[]", b"{}", b'"x"'),
    *(b'"\\ud800"', b"~", b"x" * 3000, b"root", b"*", b"&a", b"!!python/object:os.system"),
    "\u0967".encode(),  # a digit of another script
)
_FIELD = re.compile(rb"[^\t\n\r ,:\"\[\]{}=|]+")


@dataclass(frozen=True)
class Mutation:
    """One change of a file.

    Attributes:
        kind: a key of ``MUTATIONS``.
        place: where, as a share of the file.
        other: a second place, or which odd bytes.
    """

    kind: str
    place: float
    other: float

    def __call__(self, data: bytes) -> bytes:
        return MUTATIONS[self.kind](data, self.place, self.other)


def mutations(most: int = 6) -> st.SearchStrategy[list[Mutation]]:
    """A few changes, one after the other; sometimes none."""
    share = st.floats(0.0, 1.0, exclude_max=True)
    return st.lists(st.builds(Mutation, st.sampled_from(list(MUTATIONS)), share, share), max_size=most)


def mutated(data: bytes, changes: list[Mutation]) -> bytes:
    for change in changes:
        data = change(data)
    return data


def _chosen(items: tuple[bytes, ...], share: float) -> bytes:
    return items[int(share * len(items))]


def _at(data: bytes, place: float) -> int:
    return int(place * (len(data) + 1))


def _insert(data: bytes, place: float, other: float) -> bytes:
    begin = _at(data, place)
    return data[:begin] + _chosen(ODD_BYTES, other) + data[begin:]


def _change(data: bytes, place: float, other: float) -> bytes:
    begin = _at(data, place)
    return data[:begin] + bytes([int(256 * other)]) + data[begin + 1 :]


def _cut(data: bytes, place: float, other: float) -> bytes:
    first, last = sorted((_at(data, place), _at(data, other)))
    return data[:first] + data[last:]


def _end(data: bytes, place: float, other: float) -> bytes:
    return data[: _at(data, place)]


def _field(data: bytes, place: float, other: float) -> bytes:
    """Put an odd value in the place of a field."""
    fields = list(_FIELD.finditer(data))
    if not fields:
        return _chosen(ODD_VALUES, other)
    field = fields[int(place * len(fields))]
    return data[: field.start()] + _chosen(ODD_VALUES, other) + data[field.end() :]


def _swap_fields(data: bytes, place: float, other: float) -> bytes:
    fields = list(_FIELD.finditer(data))
    if len(fields) < 2:
        return data
    first, second = sorted((int(place * len(fields)), int(other * len(fields))))
    if first == second:
        return data
    one, two = fields[first], fields[second]
    return data[: one.start()] + two[0] + data[one.end() : two.start()] + one[0] + data[two.end() :]


def _copy_line(data: bytes, place: float, other: float) -> bytes:
    lines = data.splitlines(keepends=True) or [b""]
    lines.insert(int(other * (len(lines) + 1)), lines[int(place * len(lines))])
    return b"".join(lines)


def _drop_line(data: bytes, place: float, other: float) -> bytes:
    lines = data.splitlines(keepends=True) or [b""]
    del lines[int(place * len(lines))]
    return b"".join(lines)


def _line_ends(data: bytes, place: float, other: float) -> bytes:
    """Give all lines other ends."""
    return data.replace(b"\n", _chosen((b"\r\n", b"\r", b"\n\n", b" \n", b"\x0b\n"), other))


MUTATIONS: dict[str, Callable[[bytes, float, float], bytes]] = {
    "insert": _insert,
    "change a byte": _change,
    "cut": _cut,
    "end": _end,
    "field": _field,
    "swap fields": _swap_fields,
    "copy a line": _copy_line,
    "drop a line": _drop_line,
    "line ends": _line_ends,
}
