import json
import random

import pytest
from helpers.forked import Forks

from treeparse.data.batches.mixing import BucketBatchSampler
from treeparse.data.features.vocabulary import Vocabulary
from treeparse.errors import TreeparseError

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


def test_words_spelled_like_specials_are_words() -> None:
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
