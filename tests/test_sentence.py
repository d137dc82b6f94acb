import random
from dataclasses import replace
from itertools import pairwise, product

import pytest
import torch

from treeparse.batch import Batch, pick_device
from treeparse.errors import TreeparseError
from treeparse.sentence import Sentence, nonprojective_words, tree_problem, unreached_words


def descends(heads, word, ancestor):
    for _ in range(len(heads) + 1):
        if word == ancestor:
            return True
        if word == 0:
            return False
        word = heads[word - 1]
    return False


def head_lists(longest):
    return [heads for n in range(1, longest + 1) for heads in product(range(n + 1), repeat=n)]


def test_nonprojective_words_by_definition():
    trees = [heads for heads in head_lists(5) if tree_problem(heads, single_root=False) is None]
    assert len(trees) == 1 + 3 + 16 + 125 + 1296  # (n + 1) ** (n - 1), Cayley
    for heads in trees:
        expected = [
            word
            for word, head in enumerate(heads, 1)
            if not all(descends(heads, between, head) for between in range(min(word, head) + 1, max(word, head)))
        ]
        assert nonprojective_words(heads) == expected


def test_nonprojective_words_of_a_textbook_sentence():
    # A hearing is scheduled on the issue today (Kübler, McDonald and Nivre 2009)
    assert nonprojective_words([2, 3, 0, 3, 2, 7, 5, 4]) == [5, 8]


def test_long_tangled_sentence():
    order = list(range(1, 2001))
    random.Random(0).shuffle(order)
    heads = [0] * len(order)
    for head, word in pairwise(order):
        heads[word - 1] = head
    found = nonprojective_words(heads)
    place = {word: index for index, word in enumerate(order)}
    for word in range(1, 2001, 97):
        head = heads[word - 1]
        under = range(min(word, head) + 1, max(word, head))
        assert (word in found) == (head > 0 and any(place[between] < place[head] for between in under))


@pytest.mark.parametrize("heads", [[2, 1], [0, 3, 2], [-1], [2]])
def test_nonprojective_words_refuses_what_is_no_tree(heads):
    with pytest.raises(TreeparseError, match="only a tree has non-projective arcs"):
        nonprojective_words(heads)


def test_tree_problem_and_unreached_words_by_definition():
    for heads in head_lists(4):
        unreached = [word for word in range(1, len(heads) + 1) if not descends(heads, word, 0)]
        assert unreached_words(heads) == unreached
        assert (tree_problem(heads, single_root=False) is None) == (not unreached)
        assert (tree_problem(heads) is None) == (not unreached and heads.count(0) == 1)


def test_a_sentence_whose_columns_differ_in_length_is_refused():
    with pytest.raises(TreeparseError, match="A sentence of 2 words came with 3 heads"):
        Sentence(("a", "b"), heads=(0, 1, 1))


@pytest.mark.parametrize(
    "columns", [{"forms": "saw"}, {"forms": ("a", "b"), "upos": "XY"}, {"forms": "", "labels": ""}]
)
def test_a_string_is_no_list_of_words_or_tags(columns):
    """Its letters were the words."""
    with pytest.raises(TreeparseError, match=r"The (forms|upos) of a sentence are the string '\w*', not a tuple"):
        Sentence(**columns)


def test_numbers_of_a_moved_batch_are_read_where_it_was():
    batch = Batch(torch.tensor([2, 3]), torch.arange(2), {})
    there = batch.to("meta")
    assert there.on_cpu is there.to("meta").on_cpu is batch and there.num_words == 5 and there.longest == 3
    other = replace(there, lengths=torch.tensor([1, 1]))
    assert other.on_cpu is other and other.num_words == 2


@pytest.mark.parametrize("padding", [-100, 0, 7])
def test_heads_and_labels_come_out_padded_by_minus_one(padding):
    ids = torch.tensor([[padding, 2, 0, padding], [padding, 0, -100, 1]], dtype=torch.int32)
    batch = Batch(torch.tensor([2, 3]), torch.arange(2), {}, heads=ids, labels=ids)
    for found in (batch.heads, batch.labels, batch.to("meta").on_cpu.heads, replace(batch, labels=None).heads):
        assert found is not None and found.tolist() == [[-1, 2, 0, -1], [-1, 0, -100, 1]]
    nothing = Batch(
        torch.tensor([2, 3]),
        torch.arange(2),
        {},
        heads=torch.full_like(ids, -1).index_fill(1, torch.tensor(0), padding),
    )
    assert not nothing.is_labelled().any()


def test_devices_that_compute():
    assert pick_device("cpu").type == "cpu"
    assert pick_device(None) == pick_device("auto")


@pytest.mark.parametrize(
    "name", ["meta", "abacus", "cuda:99", "mkldnn", "lazy", "vulkan", "xla", "hpu", "privateuseone"]
)
def test_devices_that_do_not_compute(name):
    with pytest.raises(TreeparseError, match=f"There is no device '{name}' on this machine that computes"):
        pick_device(name)


def test_a_device_without_float64(monkeypatch):
    def ones(*size, dtype=torch.float32, **_):
        if dtype == torch.float64:
            raise TypeError(
                "Cannot convert a MPS Tensor to float64 dtype as the MPS framework doesn't support float64."
            )
        return torch.zeros(*size)

    monkeypatch.setattr(torch, "ones", ones)
    with pytest.raises(
        TreeparseError, match="'mps' does not compute in float64, which sums over trees need: choose cpu"
    ):
        pick_device("mps")
