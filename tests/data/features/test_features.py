import json
import pickle

import pytest
import torch
from torch import Tensor

from treeparse.data.features.words import BEGIN, END, PADDING, ROOT, UNKNOWN, LexicalFeatures, vector_vocabulary
from treeparse.errors import TreeparseError
from treeparse.sentence import Sentence

# Behind the specials come, by falling count, the characters a 4, b 2, B 2, c 1 and the words ab 3, ba 1, c 1.
TRAINING = [Sentence(("ab", "Ba", "c")), Sentence(("ab", "aB"))]
SPECIALS = {PADDING: 0, UNKNOWN: 1, ROOT: 2, BEGIN: 3, END: 4}


def same(first: dict[str, Tensor], second: dict[str, Tensor]) -> bool:
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)


def test_ids_by_hand() -> None:
    features = LexicalFeatures.build(TRAINING, min_count=1)
    assert features.words.items == ("ab", "ba", "c")
    assert features.words.counts == (3, 1, 1)
    assert features.characters.items == ("a", "b", "B", "c")
    assert {name: features.characters.special(name) for name in SPECIALS} == SPECIALS
    result = features([Sentence(("c", "ab", "zz")), Sentence(("AB",))])
    assert result["words"].tolist() == [[2, 5, 3, 1], [2, 3, 0, 0]]
    assert result["forms"].tolist() == [[0, 1, 2, 3], [0, 4, 0, 0]]
    assert result["characters"].tolist() == [
        [3, 2, 4, 0],  # the root
        [3, 8, 4, 0],  # c
        [3, 5, 6, 4],  # ab
        [3, 1, 1, 4],  # zz: characters that training never saw
        [3, 1, 7, 4],  # AB: only the small a was seen
    ]
    assert set(result) == {"words", "forms", "characters"}
    assert all(tensor.dtype == torch.int64 for tensor in result.values())


def test_what_is_seen_once_is_unknown() -> None:
    features = LexicalFeatures.build(TRAINING, min_count=2)
    assert features.words.items == ("ab",)
    assert features.characters.items == ("a", "b", "B")
    assert features([TRAINING[0]])["words"].tolist() == [[2, 3, 1, 1]]
    assert features.sizes() == {"words": 4, "characters": 8}


def test_every_form_is_spelled_once_and_every_node_rightly() -> None:
    sentences = [Sentence(("the", "cat", "The", "cat")), Sentence(("cat",)), Sentence(("a", "the"))]
    features = LexicalFeatures.build(sentences, min_count=1)
    result = features(sentences)
    names = {place: name for name, place in SPECIALS.items()}
    spelled = [
        "".join(names.get(int(place), features.characters.item(int(place))) for place in row if place)
        for row in result["characters"]
    ]
    assert len(set(spelled)) == len(spelled) == 5
    for sentence, row in zip(sentences, result["forms"].tolist(), strict=True):
        found = [spelled[place] for place in row]
        words = [f"<begin>{form}<end>" for form in sentence.forms]
        assert found == ["<begin><root><end>", *words] + [spelled[0]] * (len(found) - 1 - len(words))


def test_words_spelled_like_specials_are_words() -> None:
    features = LexicalFeatures.build([Sentence(("<root>", "<unk>"))], min_count=1)
    assert features([Sentence(("<root>", "<unk>", "new"))])["words"].tolist() == [[2, 3, 4, 1]]


def tagged(upos: tuple[str, ...] | None, xpos: tuple[str, ...] | None, feats: tuple[str, ...] | None) -> Sentence:
    return Sentence(("a", "b"), upos=upos, xpos=xpos, feats=feats)


def test_tags() -> None:
    sentence = tagged(("X", "Y"), ("x", "x"), ("_", "Case=Nom"))
    features = LexicalFeatures.build([sentence], tags=("upos", "feats"))
    result = features([tagged(("Y", "Z"), None, ("_", "_"))])
    assert result["upos"].tolist() == [[2, 4, 1]]
    assert result["feats"].tolist() == [[2, 3, 3]]
    assert "xpos" not in result
    assert features.sizes() == {"words": 3, "characters": 5, "upos": 5, "feats": 5}


@pytest.mark.parametrize(
    ("column", "sentence"),
    [
        ("UPOS", tagged(("X", "_"), ("x", "x"), ("_", "_"))),
        ("UPOS", tagged(None, ("x", "x"), ("_", "_"))),
        ("XPOS", tagged(("X", "X"), ("_", "x"), ("_", "_"))),
        ("FEATS", tagged(("X", "X"), ("x", "x"), None)),
    ],
)
def test_missing_tags_raise_in_training_and_parsing(column: str, sentence: Sentence) -> None:
    complete = tagged(("X", "X"), ("x", "x"), ("_", "_"))
    features = LexicalFeatures.build([complete], tags=("upos", "xpos", "feats"))
    with pytest.raises(TreeparseError, match=rf"reads {column}, but the sentence that starts with 'a b'"):
        features([complete, sentence])
    with pytest.raises(TreeparseError, match=column):
        LexicalFeatures.build([sentence], tags=(column.lower(),))


def test_pretrained_vectors_prefer_the_form_to_its_lower_case() -> None:
    vectors = vector_vocabulary(["apple", "Apple", "banana"])
    features = LexicalFeatures.build(TRAINING, vectors=vectors)
    result = features([Sentence(("Apple", "apple", "APPLE", "Banana", "cherry")), Sentence(("banana",))])
    assert result["vectors"].tolist() == [[2, 4, 3, 3, 5, 1], [2, 5, 0, 0, 0, 0]]
    assert features.sizes()["vectors"] == 6


def test_json_and_pickle_round_trips() -> None:
    sentence = tagged(("X", "Y"), ("x", "y"), ("_", "Case=Nom"))
    features = LexicalFeatures.build(
        [sentence, sentence], tags=("upos", "xpos", "feats"), vectors=vector_vocabulary(["a", "é"])
    )
    batch = [sentence, tagged(("Y", "Y"), ("y", "q"), ("_", "_"))]
    expected = features(batch)
    assert same(LexicalFeatures.from_json(json.loads(json.dumps(features.to_json())))(batch), expected)
    assert same(pickle.loads(pickle.dumps(features))(batch), expected)
    plain = LexicalFeatures.build(TRAINING)
    assert LexicalFeatures.from_json(json.loads(json.dumps(plain.to_json()))).vectors is None


def test_a_long_form_is_spelled_by_its_two_ends_and_an_empty_one_by_marks() -> None:
    long = "https://" + "abcdefgh" * 1000 + "/end"
    features = LexicalFeatures.build([Sentence((long,))], min_count=1)
    _, empty, spelled = features([Sentence(("", long))])["characters"]
    text = "".join(features.characters.item(int(index)) for index in spelled[1:-1])
    assert text == long[:16] + long[-16:]
    assert empty[:3].tolist() == [3, 4, 0]
