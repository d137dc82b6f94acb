"""Feature templates of linear models as text: ``h.form d.upos distance``."""

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from treeparse.errors import TreeparseError

ROLES = {"h": 0, "d": 1, "s": 2, "g": 2}  # head, dependent, sibling, grandparent; b is any node between h and d
BETWEEN, DISTANCE = "b", "distance"
MOST_SLOTS, FARTHEST = 8, 5

# Templates of arcs by McDonald et al. (2005) and [Lec]; chosen on the dev set of EWT.
ARCS = (
    "h.form distance",
    "h.upos distance",
    "h.form h.upos distance",
    "d.form distance",
    "d.upos distance",
    "d.form d.upos distance",
    "h.form h.upos d.form d.upos",
    "h.upos d.form d.upos",
    "h.form d.form d.upos",
    "h.form h.upos d.upos",
    "h.form h.upos d.form",
    "h.form d.form",
    "h.upos d.upos",
    "h.upos d.upos distance",
    "h.form d.upos distance",
    "h.upos d.form distance",
    "h.form d.form distance",
    "h.upos h+1.upos d-1.upos d.upos",
    "h-1.upos h.upos d-1.upos d.upos",
    "h.upos h+1.upos d.upos d+1.upos",
    "h-1.upos h.upos d.upos d+1.upos",
    "h.upos h+1.upos d-1.upos d.upos distance",
    "h-1.upos h.upos d-1.upos d.upos distance",
    "h.upos h+1.upos d.upos d+1.upos distance",
    "h-1.upos h.upos d.upos d+1.upos distance",
    "h.upos b.upos d.upos",
)
SIBLINGS = (
    "h.upos d.upos s.upos",
    "d.upos s.upos",
    "d.form s.form",
    "d.form s.upos",
    "d.upos s.form",
    "h.upos d.upos s.upos distance",
    "h.form d.upos s.upos",
    "d.upos s.upos distance",
)
GRANDPARENTS = (
    "h.upos d.upos g.upos",
    "d.upos g.upos",
    "h.form d.upos g.upos",
    "h.upos d.form g.upos",
    "h.upos d.upos g.form",
    "d.form g.form",
    "h.upos d.upos g.upos distance",
)
LABELS = (
    "h.upos d.upos",
    "h.upos d.upos distance",
    "h.form d.upos",
    "h.upos d.form",
    "h.form d.form",
    "d.form",
    "d.upos",
    "d.lower h.lower",
    "h.upos d.suffix",
    "h.upos d-1.upos d.upos",
    "h.upos d.upos d+1.upos",
    "h-1.upos h.upos d.upos",
    "h.upos h+1.upos d.upos",
    "h.upos d.upos d-1.form",
    "h.upos b.upos d.upos",
)
_SLOT = re.compile(r"(?P<role>[hdsgb])(?P<offset>[+-]\d+)?\.(?P<attribute>[a-z]\w*(\.\w+)?)")


@dataclass(frozen=True)
class Slot:
    """One attribute that a template reads: that of the word ``offset`` positions after the node of a role."""

    role: str
    offset: int
    attribute: str

    def __str__(self) -> str:
        return f"{self.role}{self.offset or '':+}.{self.attribute}" if self.offset else f"{self.role}.{self.attribute}"


@dataclass(frozen=True)
class Template:
    """A feature template: the attributes that make one feature of a part. Every feature includes the direction.

    Attributes:
        slots: what is read, with the role ``h`` for the head, ``d`` the dependent, ``s`` the sibling, ``g`` the
            grandparent, ``b`` for a feature of every distinct value between head and dependent.
        distance: whether the distance of head and dependent, or of dependent and third node, is read too.
    """

    slots: tuple[Slot, ...]
    distance: bool

    @classmethod
    def read(cls, text: str, roles: str) -> "Template":
        """Read a template that may have these roles.

        Raises:
            TreeparseError: the text is no such template.
        """
        slots, distance = [], False
        for part in text.split():
            match = _SLOT.fullmatch(part)
            if part == DISTANCE:
                distance = True
            elif match is None or match["role"] not in roles:
                raise TreeparseError(
                    f"The feature template {text!r:.100} has a part {part!r:.50}: parts are {DISTANCE} and attributes "
                    f"of {', '.join(roles)} such as {roles[0]}.form, {roles[-1]}.upos or {roles[0]}+1.upos."
                )
            elif abs(offset := int(match["offset"] or 0)) > FARTHEST or (offset and match["role"] == BETWEEN):
                raise TreeparseError(
                    f"The feature template {text!r:.100} reads {part}: offsets are from -{FARTHEST} to +{FARTHEST}, "
                    f"and {BETWEEN} has none."
                )
            else:
                slots.append(Slot(match["role"], offset, match["attribute"]))
        if not 1 <= len(slots) <= MOST_SLOTS or sum(slot.role == BETWEEN for slot in slots) > 1:
            raise TreeparseError(
                f"The feature template {text!r:.100} must read 1 to {MOST_SLOTS} attributes, at most one of them of "
                f"{BETWEEN}."
            )
        return cls(tuple(slots), distance)

    def __str__(self) -> str:
        return " ".join([*map(str, self.slots), *([DISTANCE] if self.distance else [])])


@cache
def read_templates(texts: tuple[str, ...], roles: str) -> tuple[Template, ...]:
    """Read templates that may have these roles; raise for two equal ones."""
    templates = tuple(Template.read(text, roles) for text in texts)
    if repeated := [str(each) for index, each in enumerate(templates) if each in templates[:index]]:
        raise TreeparseError(f"The feature template {repeated[0]!r} occurs twice: leave one out.")
    return templates


def attributes_of(templates: Iterable[Template]) -> tuple[str, ...]:
    """Return the attributes that templates read, sorted."""
    return tuple(sorted({slot.attribute for template in templates for slot in template.slots}))


def text_hash(text: str) -> int:
    """Return a hash of 32 bits that is the same on every machine."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=4).digest(), "little")
