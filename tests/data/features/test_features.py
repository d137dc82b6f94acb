import json
import pickle
import random

import pytest
import torch
from helpers.forked import Forks
from torch import Tensor

from treeparse.data.batches.mixing import BucketBatchSampler
from treeparse.data.features.vocabulary import Vocabulary
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


WORDS = ["the", "dog", "saw", "the", "cat", "and", "the", "cat", "saw", "a", "bird"]


def test_ids_fall_by_count_and_ties_by_first_appearance() -> None:
    vocabulary = Vocabulary.build(WORDS)
    assert vocabulary.items == ("the", "saw", "cat", "dog", "and", "a", "bird")
    assert vocabulary.counts == (3, 2, 2, 1, 1, 1, 1)
    assert [vocabulary.index(item) for item in vocabulary.items] == list(range(7))
    assert [vocabulary.item(index) for index in range(7)] == list(vocabulary.items)
    assert len(vocabulary) == 7


def test_specials_come_first_and_what_is_rare_is_unknown() -> None:
    vocabulary = Vocabulary.build(WORDS, min_count=2, specials=("<pad>", "<unk>"), unknown="<unk>")
    assert vocabulary.items == ("the", "saw", "cat")
    assert [vocabulary.index(word) for word in ("the", "saw", "cat", "dog", "never")] == [2, 3, 4, 1, 1]
    assert vocabulary.special("<pad>") == 0
    assert vocabulary.unknown_id == vocabulary.special("<unk>") == 1
    assert len(vocabulary) == 5
    assert "cat" in vocabulary
    assert "dog" not in vocabulary


def test_extended_vocabularies_keep_their_ids() -> None:
    vocabulary = Vocabulary.build(WORDS, min_count=2, specials=("<pad>", "<unk>"), unknown="<unk>")
    extended = vocabulary.extended(["emu", "dog", "cat", "dog", "emu", "<pad>", "emu", "ant", "<pad>"], min_count=2)
    assert extended.items == ("the", "saw", "cat", "emu", "dog", "<pad>")
    assert extended.counts == (3, 2, 3, 3, 2, 2)
    assert [extended.index(item) for item in vocabulary.items] == [2, 3, 4]
    assert (extended.index("ant"), extended.special("<pad>"), extended.index("<pad>")) == (1, 0, 7)
    assert (vocabulary.items, vocabulary.counts) == (("the", "saw", "cat"), (3, 2, 2))
    assert vocabulary.extended([]).to_json() == vocabulary.to_json()


def test_items_spelled_like_specials_are_items() -> None:
    specials = ("<pad>", "<unk>")
    vocabulary = Vocabulary.build(["<unk>", "<unk>", "<pad>", "x"], specials=specials, unknown="<unk>")
    assert [vocabulary.index(word) for word in ("<unk>", "<pad>", "x")] == [2, 3, 4]
    assert [vocabulary.item(index) for index in range(5)] == ["<pad>", "<unk>", "<unk>", "<pad>", "x"]
    without = Vocabulary.build(["x"], specials=specials, unknown="<unk>")
    assert "<pad>" not in without
    assert without.index("<pad>") == without.special("<unk>")


def test_without_an_unknown_strange_items_raise() -> None:
    vocabulary = Vocabulary.build(WORDS, specials=("<pad>",))
    assert vocabulary.unknown_id is None
    with pytest.raises(KeyError, match="zebra"):
        vocabulary.index("zebra")
    with pytest.raises(KeyError):
        vocabulary.index("<pad>")
    with pytest.raises(IndexError):
        vocabulary.item(len(vocabulary))


@pytest.mark.parametrize("unknown", [None, "<unk>"])
def test_json_round_trip(unknown: str | None) -> None:
    items = ["naïve", "東京", "\U0001f600", 'quo"te', "back\\slash", "tab\t", "<unk>", " ", "\u2028", ""]
    vocabulary = Vocabulary.build(items + items[:4], specials=("<pad>", "<unk>"), unknown=unknown)
    again = Vocabulary.from_json(json.loads(json.dumps(vocabulary.to_json())))
    for name in ("items", "counts", "specials", "unknown", "unknown_id"):
        assert getattr(again, name) == getattr(vocabulary, name)
    assert [again.index(item) for item in items] == [vocabulary.index(item) for item in items]


def test_inconsistent_items_are_refused() -> None:
    with pytest.raises(TreeparseError, match="2 items came with 1 counts"):
        Vocabulary(["a", "b"], [1])
    with pytest.raises(TreeparseError, match="same item twice"):
        Vocabulary(["a", "a"], [1, 1])


PROGRAM = """
from treeparse.data.batches.mixing import BucketBatchSampler
from treeparse.data.features.vocabulary import Vocabulary
print(hash("the"))
print(Vocabulary.build({words}).items)
print(list(BucketBatchSampler({lengths}, max_words=100, shuffle=True, seed=5)))
"""


def test_ids_and_batches_do_not_depend_on_the_process_or_its_hash_seed(forks: Forks) -> None:
    stream = random.Random(1)
    lengths = [min(int(stream.expovariate(0.08)) + 1, 250) for _ in range(200)]
    done = forks.run(PROGRAM.format(words=WORDS, lengths=lengths))
    assert done.returncode == 0, done.stderr
    hashed, ids, batches = done.stdout.splitlines()
    assert hashed != str(hash("the"))
    assert ids == str(Vocabulary.build(WORDS).items) == "('the', 'saw', 'cat', 'dog', 'and', 'a', 'bird')"
    assert batches == str(list(BucketBatchSampler(lengths, max_words=100, shuffle=True, seed=5)))
