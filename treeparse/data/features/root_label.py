"""Whether a treebank reserves the label "root" for arcs from the root, and which arcs contradict that."""

from collections.abc import Iterable, Sequence
from typing import Self

from treeparse.data.conllu import ConlluSentence
from treeparse.sentence import EMPTY, ROOT_LABEL, Sentence

LEAST_PERCENT = 95


class RootLabelUse:
    """Counts of the arcs from the root and of the arcs with the label "root", whose head and label are known.

    The label is reserved if 95 of 100 arcs that are one of these are both. Then the model gives no arc from the root
    another label, and no other arc this one. All arcs are both in Universal Dependencies; a few errors of annotation
    change nothing, but a label that is used otherwise is free.

    Attributes:
        roots: the number of arcs from the root.
        named: the number of arcs with the label.
        both: the number of arcs that are both.
    """

    def __init__(self) -> None:
        self.roots: int = 0
        self.named: int = 0
        self.both: int = 0
        self._first: dict[bool, str] = {}  # the first arc that is one alone, by whether it is from the root

    @classmethod
    def of(cls, sentences: Iterable[Sentence]) -> Self:
        """Count the arcs of sentences."""
        use = cls()
        for sentence in sentences:
            use.add(sentence)
        return use

    def add(self, sentence: Sentence, source: ConlluSentence | None = None) -> None:
        """Count the arcs of a sentence; ``source`` says where it is."""
        arcs = zip(sentence.heads or (), sentence.labels or (), strict=False)
        for word, (head, label) in enumerate(arcs):
            if (head and label != ROOT_LABEL) or head < 0 or label == EMPTY:
                continue
            is_root, is_named = not head, label == ROOT_LABEL
            self.roots += is_root
            self.named += is_named
            self.both += is_root and is_named
            if is_root != is_named and is_root not in self._first and source is not None:
                line = source.word_lines()[word]
                self._first[is_root] = f"{source.source}:{line}, {sentence.forms[word]!r:.40} as {label!r:.40}"

    @property
    def is_reserved(self) -> bool:
        """Whether the label is reserved for arcs from the root."""
        return 100 * self.both >= LEAST_PERCENT * (self.roots + self.named - self.both)

    def note(self, *, reserved: bool) -> str | None:
        """Return how many arcs contradict the label, and what a model does that has it ``reserved`` or not.

        None if no arc does, or if the label neither occurs nor is reserved.
        """
        if not (self.named or reserved) or self.both == self.roots == self.named:
            return None
        counts = (
            (True, self.roots, "arcs from the root have another label"),
            (False, self.named, f"arcs with the label {ROOT_LABEL} are not from the root"),
        )
        parts = [
            f"{total - self.both:,} of {total:,} {text}{self._where(from_root)}"
            for from_root, total, text in counts
            if total > self.both
        ]
        result = "is reserved for arcs from the root, and training takes the labels of these words as open"
        return f"{'; '.join(parts)}: the label {ROOT_LABEL} {result if reserved else 'is possible for every arc'}"

    def _where(self, from_root: bool) -> str:
        first = self._first.get(from_root)
        return "" if first is None else f" (the first: {first})"


def root_label_use(sentences: Sequence[ConlluSentence]) -> RootLabelUse:
    """Count the arcs of sentences of files."""
    use = RootLabelUse()
    for sentence in sentences:
        use.add(sentence.words, sentence)
    return use
