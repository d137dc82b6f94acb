"""Ids of labels, heads and tags in a batch, and their vocabularies."""

import json
import pickle
from dataclasses import replace

import pytest
import torch

from treeparse.batch import Batch
from treeparse.data.conllu import ConlluSentence
from treeparse.data.features.indexer import Indexer, known_tags, with_plain_labels
from treeparse.data.features.root_label import RootLabelUse
from treeparse.data.features.words import LexicalFeatures
from treeparse.errors import TreeparseError
from treeparse.sentence import Sentence

TRAINING = [
    Sentence(("the", "dog", "barks"), heads=(2, 3, 0), labels=("det", "nsubj", "root")),
    Sentence(("go",), heads=(0,), labels=("root",)),
]


def make(sentences: list[Sentence]) -> Indexer:
    return Indexer.build(sentences, LexicalFeatures.build(sentences, min_count=1))


def test_a_batch_by_hand() -> None:
    indexer = make(TRAINING)
    assert indexer.labels.items == ("root", "det", "nsubj")
    assert indexer.root_label == 0
    batch = indexer.collate([TRAINING[1], TRAINING[0]], [7, 4])
    assert batch.lengths.tolist() == [1, 3]
    assert batch.indices.tolist() == [7, 4]
    assert batch.heads is not None
    assert batch.heads.tolist() == [[-1, 0, -1, -1], [-1, 2, 3, 0]]
    assert batch.labels is not None
    assert batch.labels.tolist() == [[-1, 0, -1, -1], [-1, 1, 2, 0]]
    assert torch.equal(batch.features["words"], indexer.features([TRAINING[1], TRAINING[0]])["words"])
    assert (len(batch), batch.num_words) == (2, 4)
    assert batch.word_mask().tolist() == [[False, True, False, False], [False, True, True, True]]
    assert indexer.collate(TRAINING).indices.tolist() == [0, 1]


def test_unknown_heads_and_labels_are_minus_one() -> None:
    indexer = make(TRAINING)
    batch = indexer.collate([Sentence(("the", "cat", "x"), heads=(2, -1, 0), labels=("_", "vocative", "root"))])
    assert batch.heads is not None
    assert batch.heads.tolist() == [[-1, 2, -1, 0]]
    assert batch.labels is not None
    assert batch.labels.tolist() == [[-1, -1, -1, 0]]


def test_the_label_that_says_missing_is_not_learned() -> None:
    half = Sentence(("a", "b"), heads=(0, 1), labels=("root", "_"))
    assert make([half]).labels.items == ("root",)
    with pytest.raises(TreeparseError, match="No training sentence has a label"):
        make([Sentence(("a",), heads=(0,), labels=("_",))])


def test_without_any_tree_the_labels_are_plain() -> None:
    bare = Sentence(("a", "b"), heads=(-1, -1), labels=("_", "_"))
    indexer = make([bare])
    assert indexer.labels.items == ("root", "dep") and indexer.root_label == 0
    batch = indexer.collate([bare])
    assert batch.heads is not None and (batch.heads == -1).all() and not batch.is_labelled().any()
    assert make(TRAINING).extended([bare], indexer.features).labels.items == ("root", "det", "nsubj")
    assert make([Sentence(("a", "b"), heads=(-1, -1), labels=("_", "obj"))]).labels.items == ("obj",)
    with pytest.raises(TreeparseError, match="No training sentence has a label"):
        make([bare, Sentence(("a",), heads=(0,), labels=("_",))])


def test_plain_labels_follow_from_the_heads() -> None:
    assert with_plain_labels(TRAINING[0]).labels == ("dep", "dep", "root")
    assert with_plain_labels(TRAINING[0]).heads == TRAINING[0].heads
    assert with_plain_labels(Sentence(("a",))).labels == ("dep",)


def test_a_batch_keeps_what_is_known_word_by_word() -> None:
    sentences = [
        Sentence(("a", "b", "c"), heads=(2, 0, 2), labels=("det", "root", "obj")),
        Sentence(("a", "b"), heads=(-1, 1), labels=("_", "det")),
        Sentence(("a",), heads=(0,)),
        Sentence(("a",), labels=("obj",)),
        Sentence(("a",)),
    ]
    indexer = make(sentences[:1])
    det, root, obj = map(indexer.labels.index, ("det", "root", "obj"))
    batch = indexer.collate(sentences)
    assert batch.heads is not None and batch.labels is not None
    assert batch.heads.tolist() == [[-1, 2, 0, 2], [-1, -1, 1, -1], [-1, 0, -1, -1], *[[-1] * 4] * 2]
    known = [[-1, det, root, obj], [-1, -1, det, -1], [-1] * 4, [-1, obj, -1, -1], [-1] * 4]
    assert batch.labels.tolist() == known
    bare = indexer.collate(sentences[-1:])
    assert bare.heads is None and bare.labels is None


def test_labels_that_break_the_rule_of_the_root_are_unknown() -> None:
    """No tree of the model has them: "root" is for arcs from the root, and for no others."""
    indexer = make([Sentence(("a", "b"), heads=(2, 0), labels=("det", "root"))])
    det, root = map(indexer.labels.index, ("det", "root"))
    heads, labels = (2, 0, 0, 2, -1, -1), ("root", "det", "root", "det", "root", "det")
    batch = indexer.collate([Sentence(tuple("abcdef"), heads=heads, labels=labels)])
    assert batch.labels is not None
    assert batch.labels.tolist() == [[-1, -1, -1, root, det, root, det]]
    one = make([Sentence(("a",), heads=(0,), labels=("root",))])  # where there is no other label, it is for all arcs
    batch = one.collate([Sentence(("a", "b"), heads=(0, 1), labels=("root", "root"))])
    assert batch.labels is not None
    assert batch.labels.tolist() == [[-1, 0, 0]]


def test_a_treebank_without_the_root_label() -> None:
    assert make([Sentence(("a",), heads=(0,), labels=("top",))]).root_label == -1


def test_errors() -> None:
    with pytest.raises(TreeparseError, match="need at least one sentence"):
        make([])
    with pytest.raises(TreeparseError, match="has no tree"):
        make([*TRAINING, Sentence(("a",))])
    with pytest.raises(TreeparseError, match="at least one sentence"):
        make(TRAINING).collate([])


def test_json_and_pickle_round_trips() -> None:
    indexer = make(TRAINING)
    expected = indexer.collate(TRAINING)
    for again in (Indexer.from_json(json.loads(json.dumps(indexer.to_json()))), pickle.loads(pickle.dumps(indexer))):
        assert again.root_label == indexer.root_label
        assert_same(again.collate(TRAINING), expected)


def assert_same(first: Batch, second: Batch) -> None:
    assert first.heads is not None and second.heads is not None
    assert first.labels is not None and second.labels is not None
    torch.testing.assert_close(first.heads, second.heads)
    torch.testing.assert_close(first.labels, second.labels)
    torch.testing.assert_close(dict(first.features), dict(second.features))


@pytest.mark.parametrize("label", ["", "a\tb", "a\nb", "a\rb", "\u2028", "a\x85", "\x0c", "\udfff"])
def test_labels_that_no_file_can_hold(label: str) -> None:
    with pytest.raises(TreeparseError, match="A label must have a character, and no tab or line"):
        make([*TRAINING, Sentence(("go",), heads=(0,), labels=(label,))])


def test_odd_labels_that_files_can_hold() -> None:
    labels = ("a b", "\u00a0", "acl:relcl", "\u200b", "#", "\ufeff")
    indexer = make([Sentence(("go",), heads=(0,), labels=(label,)) for label in labels])
    assert set(indexer.labels.items) == set(labels)


@pytest.mark.parametrize(
    ("right", "roots", "elsewhere", "reserved"),
    [(38, 0, 0, True), (38, 1, 1, True), (37, 1, 1, False), (38, 3, 0, False), (38, 0, 3, False), (0, 5, 1, False)],
)
def test_root_is_reserved_if_95_of_100_of_its_arcs_are_right(
    right: int, roots: int, elsewhere: int, *, reserved: bool
) -> None:
    """Other sentences have roots with another label, or the label root at another arc."""
    kinds = ("det", "root"), ("det", "sent"), ("root", "_")
    pairs = [pair for pair, count in zip(kinds, (right, roots, elsewhere), strict=True) for _ in range(count)]
    sentences = [Sentence(("a", "b"), heads=(2, 0), labels=labels) for labels in pairs]
    indexer = make(sentences)
    assert (indexer.root_label >= 0) is reserved
    use = RootLabelUse.of(sentences)
    assert use.is_reserved is reserved
    note = use.note(reserved=reserved)
    assert (note is None) is (not roots and not elsewhere)
    if roots:
        assert f"{roots} of {right + roots} arcs from the root have another label" in (note or "")
    if elsewhere:
        assert f"{elsewhere} of {right + elsewhere} arcs with the label root are not from the root" in (note or "")
    labels = indexer.collate([Sentence(("a", "b"), heads=(2, 0), labels=("root", "det"))]).labels
    assert labels is not None and (labels == -1).all().item() is reserved
    assert Indexer.from_json(indexer.to_json()).root_label == indexer.root_label
    new = Sentence(("c",), heads=(0,), labels=("root",))
    assert (indexer.extended([new] * 99, indexer.features).root_label >= 0) is reserved, "decided once"


def test_a_vocabulary_that_does_not_say_what_it_reserves_is_refused() -> None:
    data = make(TRAINING).to_json()
    assert data.pop("reserves_root") is True
    with pytest.raises(TreeparseError, match=r"reserves_root.*train the model again"):
        Indexer.from_json(data)


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
