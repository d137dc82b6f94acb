"""Subwords of words, and windows over those of long sentences, against the library transformers itself."""

import json
import pickle
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from helpers.pretrained import bert_folder, roberta_folder
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers
from transformers import AutoTokenizer

from treeparse.data.batches.mixing import BucketBatchSampler
from treeparse.data.features.subwords import WORD_LIMIT, SpecialSubwords, SubwordFeatures
from treeparse.nn.pretrained import Pretrained
from treeparse.sentence import Sentence

FOLDERS: dict[str, Callable[[Path], Path]] = {"wordpiece": bert_folder, "bytes": roberta_folder}
UNKNOWN = {"wordpiece": 1, "bytes": 3}
HARD = ["\x07", "\u200b\x00", "🙂", "שלום", "\ud800", "naïve", "e.g.", "a" * 300, "[SEP]", "</s>"]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {name: make(tmp_path_factory.mktemp(name)) for name, make in FOLDERS.items()}


def features_of(folder: Path, **windows: int) -> SubwordFeatures:
    tokenizer, special, limit = Pretrained.find(str(folder), "").tokenizer()
    return SubwordFeatures(tokenizer, special, limit=limit, **windows)


@pytest.mark.parametrize("kind", FOLDERS)
def test_subwords_are_those_of_the_library(folders: dict[str, Path], kind: str) -> None:
    """Which reads a sentence as a whole, and needs to be told that words of bytes stand behind spaces."""
    theirs: Any = AutoTokenizer.from_pretrained(folders[kind])
    if kind == "bytes":
        theirs.backend_tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    sentences = [Sentence(("The", "nouns", "and", "verbs,", "naïve")), Sentence(("Adj5", "e.g.", "the", "🙂🙂"))]
    features = features_of(folders[kind])(sentences)
    expected = theirs([list(s.forms) for s in sentences], is_split_into_words=True, padding=True, return_tensors="pt")
    assert torch.equal(features["subwords"], expected["input_ids"])
    assert torch.equal(features["subword_lengths"], expected["attention_mask"].sum(-1))
    words = [[0 if word is None else word + 1 for word in expected.word_ids(place)] for place in range(2)]
    assert features["words"].tolist() == words
    assert torch.equal(features["shares"], (features["words"] > 0).float())
    assert features["sentences"].tolist() == [0, 1]


@pytest.mark.parametrize("kind", FOLDERS)
def test_every_word_has_a_subword(folders: dict[str, Path], kind: str) -> None:
    features = features_of(folders[kind])
    for form in HARD:
        assert 1 <= len(features.subwords(form)) <= min(WORD_LIMIT, 31)
    assert kind == "bytes" or features.subwords("\x07") == (UNKNOWN[kind],)
    special = {*features.special.before, *features.special.after}
    assert len(special) == 2 and not special & {*features.subwords("[SEP]"), *features.subwords("</s>")}


def test_a_tokenizer_that_leaves_nothing(folders: dict[str, Path]) -> None:
    """Not even an unknown: the normaliser removes what is no letter."""
    tokenizer, special, limit = Pretrained.find(str(folders["bytes"]), "").tokenizer()
    tokenizer["normalizer"] = {"type": "Replace", "pattern": {"Regex": "[^a-z]"}, "content": ""}
    assert tokenizer["pre_tokenizer"]["add_prefix_space"] is False
    features = SubwordFeatures(tokenizer, special, limit=limit)
    assert features.subwords("42") == (UNKNOWN["bytes"],) != features.subwords("the")


def test_of_a_long_word_both_ends_are_read(folders: dict[str, Path]) -> None:
    features = features_of(folders["wordpiece"])
    first, last = features.subwords("q" + 40 * "z")[:1], features.subwords("z" * 40 + "q")[-1:]
    long = features.subwords("q" + 90 * "z" + "q")
    assert (long[:1], long[-1:], len(long)) == (first, last, min(WORD_LIMIT, 31))


def check_windows(features: SubwordFeatures, sizes: list[int], room: int, overlap: int) -> None:
    windows = features.windows(sizes)
    totals = [0.0] * len(sizes)
    before = -1, 0
    for start, shares in windows:
        end = start + len(shares)
        assert sum(sizes[start:end]) <= room and start > before[0] and end > before[1] >= start
        assert before[0] < 0 or sum(sizes[start : before[1]]) <= overlap
        for word, share in enumerate(shares, start):
            assert 0 < share <= 1
            totals[word] += share
        before = start, end
    assert before[1] == len(sizes)
    assert totals == pytest.approx([1.0] * len(sizes))


def test_windows_cover_a_sentence(folders: dict[str, Path]) -> None:
    stream, tokenizer = random.Random(0), features_of(folders["wordpiece"])
    for _ in range(100):
        window, overlap = stream.randint(8, 64), stream.randint(0, 64)
        features, room = tokenizer.windowed(window, overlap), window - 2
        most = stream.randint(1, min(WORD_LIMIT, room // 2))
        sizes = [stream.randint(1, most) for _ in range(stream.randint(1, 150))]
        check_windows(features, sizes, room, min(overlap, room // 2))
        if sum(sizes) <= room:
            assert features.windows(sizes) == [(0, [1.0] * len(sizes))]


def test_shares_are_by_distance_from_the_edge(folders: dict[str, Path]) -> None:
    """Windows of 10 subwords, of which 4 are shared: distances 3, 2, 1, 0 in the first and 0, 1, 2, 3 in the second."""
    features = features_of(folders["wordpiece"], window=12, overlap=4)
    first, second = features.windows([1] * 16)
    assert (first.start, second.start) == (0, 6)
    assert first.shares == pytest.approx([1.0] * 6 + [4 / 5, 3 / 5, 2 / 5, 1 / 5])
    assert second.shares == pytest.approx([1 / 5, 2 / 5, 3 / 5, 4 / 5] + [1.0] * 6)
    first, second = features.windows([1, 5, 2, 2, 5, 1])  # the third and fourth words, at 2 and 0, and at 0 and 2
    assert (first.start, second.start) == (0, 2)
    assert first.shares == pytest.approx([1, 1, 3 / 4, 1 / 4]) and second.shares == pytest.approx([1 / 4, 3 / 4, 1, 1])


def test_windows_as_tensors(folders: dict[str, Path]) -> None:
    features = features_of(folders["wordpiece"], window=8, overlap=2)
    sentences = [Sentence(("a",)), Sentence(tuple("abcdefgh"))]
    found = features(sentences)
    a = features.subwords("a")[0]
    assert found["subwords"].tolist() == [
        [2, a, 3, 0, 0, 0, 0, 0],
        [2, a, a + 1, a + 2, a + 3, a + 4, a + 5, 3],
        [2, a + 4, a + 5, a + 6, a + 7, 3, 0, 0],
    ]
    assert found["words"][2].tolist() == [0, 5, 6, 7, 8, 0, 0, 0] and found["sentences"].tolist() == [0, 1, 1]
    assert [features.length(sentence) for sentence in sentences] == [3, 2 * 8]
    assert found["subword_lengths"].tolist() == [3, 8, 6]


def test_no_batch_holds_more_subwords_than_its_bound(folders: dict[str, Path]) -> None:
    """Padding included: windows of all lengths, of sentences of one and of several."""
    features, stream = features_of(folders["wordpiece"], window=20, overlap=6), random.Random(1)
    forms = ["a", "nounb", "verbs,", "nounverbs", "z" * 9]
    words = [stream.choices(forms, k=stream.randint(1, 25)) for _ in range(200)]
    sentences = [Sentence(tuple(each)) for each in words]
    lengths = [*map(features.length, sentences)]
    for bound in (60, 150, 400):
        for batch in BucketBatchSampler(lengths, max_words=bound, step=1, shuffle=True):
            found = features([sentences[place] for place in batch])["subwords"].numel()
            assert found <= len(batch) * max(lengths[place] for place in batch)
            assert found <= bound or len(batch) == 1


@pytest.mark.parametrize("kind", FOLDERS)
def test_features_survive_json_and_pickle(folders: dict[str, Path], kind: str) -> None:
    features = features_of(folders[kind], window=20, overlap=5)
    sentences = [Sentence(tuple(HARD)), Sentence(("nouns",))]
    expected = features(sentences)
    data = json.loads(json.dumps(features.to_json()))
    for copy in (SubwordFeatures.from_json(data), pickle.loads(pickle.dumps(features))):
        assert copy.to_json() == features.to_json()
        found = copy(sentences)
        assert found.keys() == expected.keys() and all(torch.equal(found[name], expected[name]) for name in found)


def test_a_special_subword_counts_among_the_ids() -> None:
    tokenizer = {"version": "1.0", "added_tokens": []}
    tokenizer |= dict.fromkeys(("normalizer", "pre_tokenizer", "post_processor", "decoder"))
    tokenizer |= {"model": {"type": "WordLevel", "vocab": {"a": 0, "b": 4}, "unk_token": "a"}}
    assert SubwordFeatures(tokenizer, SpecialSubwords((), (), 0, 0), limit=8).ids == 5
    assert SubwordFeatures(tokenizer, SpecialSubwords((9,), (), 0, 0), limit=8).ids == 10


@pytest.mark.parametrize("in_sequence", [False, True])
def test_words_begin_with_the_mark_that_a_normalizer_puts_in_place_of_spaces(in_sequence: bool) -> None:
    """As in Gemma's tokenizer, where "the" at the start of a text is another subword than after a space."""
    tokenizer = Tokenizer(models.BPE({"▁": 0, "a": 1, "b": 2, "▁a": 3}, [("▁", "a")]))
    replace = normalizers.Replace(" ", "▁")
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFC(), replace]) if in_sequence else replace
    tokenizer.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    content = json.loads(tokenizer.to_str())
    features = SubwordFeatures(content, SpecialSubwords((), (), 9, 9), limit=8)
    in_text = tokenizer.encode("b ab").ids[1:]
    assert features.subwords("ab") == tuple(in_text) == (3, 2)
    assert features.subwords("b") == (0, 2)
    assert SubwordFeatures.from_json(features.to_json()).subwords("ab") == (3, 2)
    content["normalizer"] = {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "▁"}]}
    assert SubwordFeatures(content, features.special, limit=8).subwords("ab") == (3, 2)
