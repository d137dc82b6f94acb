"""Tags that a model learns to predict: known tags, and the vocabularies of their columns."""

from collections.abc import Iterable, Mapping, Sequence

from treeparse.data.features.vocabulary import Vocabulary
from treeparse.data.features.words import TAG_COLUMNS, Features
from treeparse.errors import TreeparseError
from treeparse.sentence import EMPTY, Sentence


def known_tags(sentence: Sentence, column: str) -> Sequence[str | None]:
    """Return the tags of a sentence's words in a column, upos, xpos or feats; None for unknown tags.

    Unknown is ``_``. But in FEATS ``_`` says that a word has no features, if the word has a UPOS or an XPOS: then it
    was tagged. The features of a word are one tag.
    """
    tags: tuple[str, ...] | None = getattr(sentence, column)
    if tags is None:
        return [None] * len(sentence)
    if column != "feats":
        return [None if tag == EMPTY else tag for tag in tags]
    others = zip(*(side or [EMPTY] * len(sentence) for side in (sentence.upos, sentence.xpos)), strict=True)
    return [None if tag == EMPTY and set(other) == {EMPTY} else tag for tag, other in zip(tags, others, strict=True)]


def tag_vocabularies(
    sentences: Sequence[Sentence], columns: Iterable[str], earlier: Mapping[str, Vocabulary] | None = None
) -> dict[str, Vocabulary]:
    """Return vocabularies of training sentences' tags by column; they extend earlier vocabularies.

    Raises a ``TreeparseError`` if there is nothing to learn: every tag of a column is ``_``.
    """
    return {column: _vocabulary(sentences, column, (earlier or {}).get(column)) for column in columns}


def _vocabulary(sentences: Sequence[Sentence], column: str, earlier: Vocabulary | None) -> Vocabulary:
    tags = [tag for sentence in sentences for tag in known_tags(sentence, column) if tag is not None]
    if earlier is None and set(tags) <= {EMPTY}:
        raise TreeparseError(
            f"There is no {TAG_COLUMNS[column]} to learn: in every word of the training sentences it is _. Leave out "
            f"model.tags.{column}, or name files that are tagged."
        )
    return (earlier or Vocabulary((), ())).extended(tags)


def tag_ids(sentence: Sentence, column: str, vocabulary: Vocabulary) -> list[int]:
    """Return the ids of a sentence's tags, -1 for unknown tags and tags that training did not have."""
    return vocabulary.indices([tag or "" for tag in known_tags(sentence, column)], missing=-1)


def check_unread(tags: Iterable[str], features: Features) -> None:
    """Raise if a predicted column does not exist, or the encoder reads it."""
    for column in tags:
        if column not in TAG_COLUMNS:
            raise TreeparseError(f"There are no tags {column!r}, only {', '.join(TAG_COLUMNS)}.")
        if column in features.tag_columns():
            raise TreeparseError(
                f"The model reads {TAG_COLUMNS[column]}, so it cannot learn to predict it: take {column} out of "
                f"model.encoder.tags, or leave out model.tags.{column}."
            )
