"""Tags to predict: which are known, their vocabularies, and the ids in a batch."""

import json
from dataclasses import replace

import pytest

from treeparse.data.conllu import ConlluSentence
from treeparse.data.features.indexer import Indexer, known_tags
from treeparse.data.features.words import LexicalFeatures
from treeparse.errors import TreeparseError
from treeparse.sentence import Sentence

DOGS = Sentence(
    ("the", "dogs", "bark"),
    upos=("DET", "NOUN", "_"),
    xpos=("_", "_", "_"),
    feats=("_", "Number=Plur", "_"),
    heads=(2, 3, 0),
    labels=("det", "nsubj", "root"),
)
BARE = Sentence(("a", "b"), heads=(0, 1), labels=("root", "dep"))
CAT = replace(DOGS, forms=("a", "cat", "sat"), upos=("X", "NOUN", "VERB"), feats=("_", "_", "Tense=Past"))


def indexer(*sentences: Sentence, tags: tuple[str, ...] = ("upos", "feats")) -> Indexer:
    return Indexer.build(sentences, LexicalFeatures.build(sentences, min_count=1), tags)


def test_what_is_known() -> None:
    """Of a word with another tag, ``_`` says that it has no features."""
    assert list(known_tags(DOGS, "upos")) == ["DET", "NOUN", None]
    assert list(known_tags(DOGS, "xpos")) == [None, None, None]
    assert list(known_tags(DOGS, "feats")) == ["_", "Number=Plur", None]
    assert list(known_tags(replace(DOGS, upos=None, xpos=("D", "_", "_")), "feats")) == ["_", "Number=Plur", None]
    of_text = ConlluSentence.from_forms(["a", "b"]).words
    assert [list(known_tags(of_text, column)) for column in ("upos", "xpos", "feats")] == [[None, None]] * 3
    assert list(known_tags(BARE, "feats")) == list(known_tags(BARE, "upos")) == [None, None]


def test_ids_of_a_batch() -> None:
    found = indexer(DOGS, BARE)
    items = {column: table.items for column, table in found.tags.items()}
    assert items == {"upos": ("DET", "NOUN"), "feats": ("_", "Number=Plur")}
    batch = found.collate([CAT, BARE])
    assert {column: ids.tolist() for column, ids in batch.tags.items()} == {
        "upos": [[-1, -1, 1, -1], [-1, -1, -1, -1]],
        "feats": [[-1, 0, 0, -1], [-1, -1, -1, -1]],
    }
    assert batch.to("cpu").tags.keys() == batch.tags.keys()
    assert not found.collate([BARE]).tags and not found.collate([Sentence(("a",))]).tags
    assert not indexer(DOGS, tags=()).collate([DOGS]).tags


def test_vocabularies_are_saved_where_there_are_some() -> None:
    found = indexer(DOGS)
    again = Indexer.from_json(json.loads(json.dumps(found.to_json())))
    assert again.to_json() == found.to_json() and again.tags.keys() == {"upos", "feats"}
    assert indexer(DOGS, tags=()).to_json().keys() == {"features", "labels", "reserves_root"}


def test_vocabularies_are_extended() -> None:
    """Of a column that is new too; what is not wanted any more is left out."""
    found = indexer(DOGS, tags=("upos",))
    tagged = replace(CAT, xpos=("A", "B", "A"))
    more = found.extended([tagged], found.features, ("upos", "xpos"))
    assert more.tags["upos"].items == ("DET", "NOUN", "X", "VERB")
    assert more.tags["upos"].counts == (1, 2, 1, 1)
    assert more.tags["xpos"].items == ("A", "B")
    assert found.extended([BARE], found.features, ("upos",)).tags["upos"].items == ("DET", "NOUN")
    assert not found.extended([tagged], found.features).tags


@pytest.mark.parametrize(
    ("sentence", "column", "name"),
    [
        (DOGS, "xpos", "XPOS"),
        (BARE, "upos", "UPOS"),
        (BARE, "feats", "FEATS"),
        (replace(DOGS, feats=("_",) * 3), "feats", "FEATS"),
    ],
)
def test_nothing_to_learn(sentence: Sentence, column: str, name: str) -> None:
    with pytest.raises(TreeparseError, match=rf"no {name} to learn: .* is _\. Leave out model\.tags\.{column}"):
        indexer(sentence, tags=(column,))


def test_what_the_model_reads_is_not_predicted() -> None:
    features = LexicalFeatures.build([DOGS], tags=("feats",))
    Indexer.build([DOGS], features, ["upos"])
    with pytest.raises(TreeparseError, match="reads FEATS, so it cannot learn to predict it"):
        Indexer.build([DOGS], features, ["upos", "feats"])


def test_tags_that_cannot_be_written() -> None:
    with pytest.raises(TreeparseError, match=r"A tag must have a character, and no tab or line break, got 'a\\tb'"):
        indexer(replace(DOGS, upos=("a\tb", "_", "_")), tags=("upos",))
