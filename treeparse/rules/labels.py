"""Sets of labels, subtypes included."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property

from treeparse.errors import TreeparseError, did_you_mean

# fmt: off
UD_RELATIONS = (
    "acl", "advcl", "advmod", "amod", "appos", "aux", "case", "cc", "ccomp", "clf", "compound", "conj", "cop", "csubj",
    "dep", "det", "discourse", "dislocated", "expl", "fixed", "flat", "goeswith", "iobj", "list", "mark", "nmod",
    "nsubj", "nummod", "obj", "obl", "orphan", "parataxis", "punct", "reparandum", "root", "vocative", "xcomp",
)
# fmt: on


class _Answers(dict[str, bool]):
    def __init__(self, labels: "LabelSet") -> None:
        self._labels = labels

    def __missing__(self, label: str) -> bool:
        answer = self[label] = label in self._labels
        return answer


@dataclass(frozen=True)
class LabelSet:
    """A set of labels: a name matches the label and its subtypes, ``nsubj`` matches ``nsubj:pass`` too.

    A name with a subtype matches itself alone.

    Attributes:
        names: one or more names.
        excepted: labels that names match but that are not in the set.
    """

    names: tuple[str, ...]
    excepted: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.names:
            raise TreeparseError("a set of labels has none: name one or more")
        for name in self.excepted:
            if name not in LabelSet(self.names):
                raise TreeparseError(f"the label {name} is excepted, but is none of {', '.join(self.names)} anyway")

    def __contains__(self, label: object) -> bool:
        if not isinstance(label, str) or label in self.excepted:
            return False
        return label in self.names or label.partition(":")[0] in self.names

    @cached_property
    def answers(self) -> Mapping[str, bool]:
        """Whether each label is in the set; answers are cached, because trees have many words."""
        return _Answers(self)

    def __str__(self) -> str:
        but = f" (but not {', '.join(self.excepted)})" if self.excepted else ""
        return ", ".join(self.names) + but

    def check(self, known: Collection[str]) -> None:
        """Raise if neither ``known``, a model's labels, nor Universal Dependencies has a label."""
        bases = {label.partition(":")[0] for label in known} | set(UD_RELATIONS)
        for name in (*self.names, *self.excepted):
            if name.partition(":")[0] not in bases:
                likely = did_you_mean(name, sorted({*known, *bases})) or "."
                raise TreeparseError(
                    f"the label {name!r} is neither one of the model's nor one of Universal Dependencies" + likely
                )
