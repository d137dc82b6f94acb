"""Parses, and lists of a sentence's parses."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

from treeparse.data.conllu import ConlluSentence
from treeparse.errors import naming_missing_packages
from treeparse.pictures import Tree, list_in_notebook, tree_in_notebook
from treeparse.sentence import EMPTY, Sentence

if TYPE_CHECKING:
    from conllu import TokenList
    from networkx import DiGraph
    from pandas import DataFrame

SHOWN = 10  # parses of a list in a notebook


@dataclass(frozen=True, slots=True)
class Parse:
    """A parsed sentence, with one head and one label for each word.

    Attributes:
        tokens: the words.
        heads: the heads, as in CoNLL-U.
        labels: the labels.
        log_prob: log probability of heads and labels among all labelled trees, in nats. For a sample it is that of the
            distribution from which it was drawn, with its temperature and its decoder's trees. NaN if the trees have no
            probabilities (``trees: nonprojective_siblings``).
        score: sum of the scores of arcs and labels.
        upos: the predicted tags; None if the model predicts none. So are ``xpos`` and ``feats``.
        xpos: see ``upos``.
        feats: see ``upos``.
        arc_probs: probability of each word's arc, whatever the label; None unless probabilities were requested.
        label_probs: probability of each word's arc and label together; None unless probabilities were requested.
        entropy: entropy of all labelled trees of the model, in nats; None if it was not requested or is not known
            exactly.
        arc_marginals: the probability of each head, from the root on, of each word; None unless they were requested.
        head_sets: the set of probable heads of each word; None unless the sets were requested.
        certainties: for each word the probability that its labelled arc is right and so are all more probable ones of
            the parse; None unless they were requested.
        expected_gradient: expected squared length of the gradient of log p(tree) in the scores of labelled arcs; None
            if it was not requested or is not known exactly.
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
    arc_marginals: tuple[tuple[float, ...], ...] | None = None
    head_sets: tuple[tuple[int, ...], ...] | None = None
    certainties: tuple[float, ...] | None = None
    expected_gradient: float | None = None

    @property
    def tags(self) -> dict[str, tuple[str, ...]]:
        """The predicted tags by column: upos, xpos, feats."""
        columns = {"upos": self.upos, "xpos": self.xpos, "feats": self.feats}
        return {column: tags for column, tags in columns.items() if tags is not None}

    def certain_tree(self, least: float | None) -> tuple[tuple[int, ...], tuple[str, ...]]:
        """Return heads and labels, -1 and ``_`` for words that are less certain; all of them if ``least`` is None."""
        if least is None or self.certainties is None:
            return self.heads, self.labels
        kept = [certainty >= least for certainty in self.certainties]
        heads = tuple(head if keep else -1 for head, keep in zip(self.heads, kept, strict=True))
        return heads, tuple(label if keep else EMPTY for label, keep in zip(self.labels, kept, strict=True))

    @property
    def expected_errors(self) -> float | None:
        """The expected number of words with a wrong head or label; None without probabilities."""
        return None if self.label_probs is None else sum(1 - prob for prob in self.label_probs)

    def to_tokenlist(self) -> "TokenList":
        """Return the sentence with its tree and tags as a ``TokenList``, as the ``conllu`` library reads such rows."""
        from conllu import Token, TokenList, parser

        nothing = (EMPTY,) * len(self.tokens)
        tags = self.upos or nothing, self.xpos or nothing, self.feats or nothing
        tokens = []
        for number, (form, upos, xpos, feats) in enumerate(zip(self.tokens, *tags, strict=True), 1):
            values = {"id": number, "form": form, "lemma": EMPTY, "upos": upos}
            values |= {"xpos": parser.parse_nullable_value(xpos), "feats": parser.parse_dict_value(feats)}
            tree = {"head": self.heads[number - 1], "deprel": self.labels[number - 1], "deps": None, "misc": None}
            tokens.append(Token(values | tree))
        return TokenList(tokens)

    def to_conllu(self) -> str:
        """Return the sentence with its tree and tags as CoNLL-U, with an empty line at the end."""
        return self.to_tokenlist().serialize()

    def to_frame(self) -> "DataFrame":
        """Return a pandas frame: a row a word, by its number, with form, tags, head, label, and probabilities if any.

        Raises:
            MissingPackageError: pandas is not installed.
        """
        with naming_missing_packages("Parse.to_frame"):
            from pandas import DataFrame, RangeIndex
        columns = {"form": self.tokens, **self.tags, "head": self.heads, "label": self.labels}
        probabilities = {"arc_prob": self.arc_probs, "label_prob": self.label_probs}
        columns |= {name: values for name, values in probabilities.items() if values is not None}
        return DataFrame(columns, index=RangeIndex(1, len(self.tokens) + 1, name="word"))

    def to_networkx(self) -> "DiGraph":
        """Return a networkx graph: an edge from every head to its dependent, with its ``label``.

        Nodes are 0, the root, and the numbers of the words, with their ``form``.

        Raises:
            MissingPackageError: networkx is not installed.
        """
        with naming_missing_packages("Parse.to_networkx"):
            from networkx import DiGraph
        graph = DiGraph()
        graph.add_node(0)
        for word, form in enumerate(self.tokens, 1):
            graph.add_node(word, form=form)
        for word, (head, label) in enumerate(zip(self.heads, self.labels, strict=True), 1):
            graph.add_edge(head, word, label=label)
        return graph

    def to(self, *_: object, **__: object) -> Self:
        """Return the parse itself: Lightning calls this for all that ``predict`` returns, to move it to the CPU."""
        return self

    def _repr_svg_(self) -> str:
        """Return a picture of the tree, for notebooks."""
        return tree_in_notebook(Tree(self.tokens, self.heads, self.labels, self.upos))


def with_parses(sentences: Iterable[Sentence], parses: Iterable[Parse]) -> list[Sentence]:
    """Return the sentences with the trees and tags of their parses; other tags are removed."""
    return [
        replace(s.with_tree(parse.heads, parse.labels), upos=parse.upos, xpos=parse.xpos, feats=parse.feats)
        for s, parse in zip(sentences, parses, strict=True)
    ]


@dataclass(frozen=True, slots=True)
class NBestList:
    """One or more parses of a sentence: the best ones, best first, or samples in the order of the draws.

    ``sentence`` has the comments, multiword tokens and empty nodes. Its own tree is no part of the list.
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

    def _repr_svg_(self) -> str:
        """Return a picture of the first parses, for notebooks."""
        shown = self.parses[:SHOWN]
        captions = [f"{rank}: log probability {parse.log_prob:.2f}" for rank, parse in enumerate(shown, 1)]
        return list_in_notebook([Tree(self.tokens, parse.heads, parse.labels) for parse in shown], captions)
