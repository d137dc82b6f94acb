"""Accuracy of tags, as the official scorer of the CoNLL 2018 shared task counts it for equal tokens."""

from collections.abc import Sequence

from treeparse.metrics.counts import check_words, ratio
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
    check_words(gold, system)
    sides = [{name: _column(side, name) for name in COLUMNS} for side in (gold, system)]
    known = [{name for name, column in zip(COLUMNS, _tagged(side), strict=True) if column} for side in (gold, system)]
    right = {name: [ours == theirs for ours, theirs in zip(*(s[name] for s in sides), strict=True)] for name in COLUMNS}
    scores = {name: _share(right[name]) for name in COLUMNS if name in known[0] & known[1]}
    if known[0] and known[0] == known[1]:
        scores["all_tags"] = _share([all(words) for words in zip(*right.values(), strict=True)])
    return scores


def universal_features(feats: str) -> str:
    """Return the universal features of a word, in alphabetical order."""
    return "|".join(sorted(each for each in feats.split("|") if each.split("=", 1)[0] in UNIVERSAL_FEATURES))


def _values(sentence: Sentence, column: str) -> Sequence[str]:
    values: Sequence[str] | None = getattr(sentence, column)
    return [EMPTY] * len(sentence) if values is None else values


def _column(sentences: Sequence[Sentence], name: str) -> list[str]:
    values = [value for sentence in sentences for value in _values(sentence, COLUMNS[name])]
    return list(map(universal_features, values)) if name == "ufeats" else values


def _tagged(sentences: Sequence[Sentence]) -> list[bool]:
    """Return whether each column has a value in some word."""
    return [any(v != EMPTY for s in sentences for v in _values(s, column)) for column in COLUMNS.values()]


def _share(right: Sequence[bool]) -> float:
    return ratio(sum(right), len(right))
