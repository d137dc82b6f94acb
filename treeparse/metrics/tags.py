"""Accuracy of tags, as the official scorer of the CoNLL 2018 shared task counts it for equal tokens."""

from collections.abc import Sequence

from treeparse.metrics.counts import check_comparable, ratio
from treeparse.sentence import EMPTY, Sentence

# The features that the official scorer compares: the universal ones of that year.
# fmt: off
UNIVERSAL_FEATURES = frozenset((
    "PronType", "NumType", "Poss", "Reflex", "Foreign", "Abbr", "Gender", "Animacy", "Number", "Case", "Definite",
    "Degree", "VerbForm", "Mood", "Tense", "Aspect", "Voice", "Evident", "Polarity", "Person", "Polite",
))
# fmt: on
TAG_SCORES = {"upos": "UPOS", "xpos": "XPOS", "ufeats": "UFeats", "all_tags": "AllTags"}  # as the scorer calls them
COLUMNS = {"upos": "upos", "xpos": "xpos", "ufeats": "feats"}  # of scores


def tag_scores(gold: Sequence[Sentence], system: Sequence[Sentence]) -> dict[str, float]:
    """Return shares of words in [0, 1] with right tags: ``upos``, ``xpos``, ``ufeats`` and, of all three, ``all_tags``.

    There is a score for each column that gold and the system both have in some word, and ``all_tags`` if they have the
    same columns. FEATS compare by universal features, in any order.

    Raises:
        TreeparseError: if the words differ; it names the sentence.
    """
    check_comparable(gold, system, trees=False)
    sides = [{name: _values(side, column) for name, column in COLUMNS.items()} for side in (gold, system)]
    known = [{name for name, values in side.items() if any(value != EMPTY for value in values)} for side in sides]
    right = {
        name: [_equal(name, *values) for values in zip(*(s[name] for s in sides), strict=True)] for name in COLUMNS
    }
    scores = {name: ratio(sum(right[name]), len(right[name])) for name in COLUMNS if name in known[0] & known[1]}
    if known[0] and known[0] == known[1]:
        words = list(zip(*right.values(), strict=True))
        scores["all_tags"] = ratio(sum(map(all, words)), len(words))
    return scores


def _values(sentences: Sequence[Sentence], column: str) -> list[str]:
    columns = ((getattr(sentence, column), len(sentence)) for sentence in sentences)
    return [value for values, count in columns for value in values or [EMPTY] * count]


def _equal(name: str, gold: str, system: str) -> bool:
    """Whether two values of a column are equal, features in any order and only universal ones."""
    if name != "ufeats":
        return gold == system
    one, other = (
        sorted(feature for feature in feats.split("|") if feature.split("=", 1)[0] in UNIVERSAL_FEATURES)
        for feats in (gold, system)
    )
    return one == other
