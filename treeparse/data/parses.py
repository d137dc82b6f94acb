"""Parses, and lists of a sentence's parses."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from treeparse.data.conllu import ConlluSentence
from treeparse.pictures import notebook_svg
from treeparse.sentence import Sentence


@dataclass(frozen=True, slots=True)
class Parse:
    """A parsed sentence; heads and labels one a word, heads as in CoNLL-U.

    ``log_prob`` is the log probability of heads and labels among all labelled trees (nats) or, of a sample, that by
    which it was drawn, at its temperature and among its decoder's trees. ``score`` is the sum of the scores of arcs and
    labels. ``upos``, ``xpos`` and ``feats`` are the tags of a model that predicts them, None where it does not.

    Where probabilities were asked for, ``arc_probs`` has for each word that of its head, whatever the label,
    ``label_probs`` that of head and label together, and ``entropy`` is that of all labelled trees of the model (nats),
    None where it is not known exactly. The first are sums over these trees; so are the second, but for models with a
    ``label_temperature``, by which the probability of a label given its arc is another one. Where sets of heads were
    asked for, ``head_sets`` has that of each word; where the gradient was, ``expected_gradient`` is the expected
    squared length of that of log p(tree) in the scores of labelled arcs, None where it is not known exactly.
    """

    tokens: tuple[str, ...]
    heads: tuple[int, ...]
    labels: tuple[str, ...]
    log_prob: float
    score: float
    upos: tuple[str, ...] | None = None
    xpos: tuple[str, ...] | None = None
    feats: tuple[str, ...] | None = None
    arc_probs: tuple[float, ...] | None = None
    label_probs: tuple[float, ...] | None = None
    entropy: float | None = None
    head_sets: tuple[tuple[int, ...], ...] | None = None
    expected_gradient: float | None = None

    @property
    def tags(self) -> dict[str, tuple[str, ...]]:
        """The tags that there are, by column: upos, xpos, feats."""
        columns = {"upos": self.upos, "xpos": self.xpos, "feats": self.feats}
        return {column: tags for column, tags in columns.items() if tags is not None}

    @property
    def expected_errors(self) -> float | None:
        """How many words are expected to have a wrong head or label; None without probabilities."""
        return None if self.label_probs is None else sum(1 - prob for prob in self.label_probs)

    def _repr_svg_(self) -> str:
        """What notebooks show: the tree as a picture."""
        return notebook_svg(self.tokens, self.heads, self.labels, self.upos)


def with_parses(sentences: Iterable[Sentence], parses: Iterable[Parse]) -> list[Sentence]:
    """The sentences under the trees of their parses, as many as they are, with the tags that the parses have alone."""
    return [
        replace(s.with_tree(parse.heads, parse.labels), upos=parse.upos, xpos=parse.xpos, feats=parse.feats)
        for s, parse in zip(sentences, parses, strict=True)
    ]


@dataclass(frozen=True, slots=True)
class NBestList:
    """The best parses of a sentence, best first, or samples in the order drawn; one or more.

    ``sentence`` is what was parsed, with its comments, multiword tokens and empty nodes; whatever tree it has is not
    part of the list.
    """

    sentence: ConlluSentence
    parses: tuple[Parse, ...]

    @property
    def sent_id(self) -> str | None:
        """The sentence's own id, without a rank."""
        return self.sentence.sent_id

    @property
    def tokens(self) -> tuple[str, ...]:
        """The words."""
        return self.sentence.words.forms
