import random

import pytest
import torch

from treeparse.core import Batch, Sentence
from treeparse.data.features import LexicalFeatures
from treeparse.data.indexer import Indexer
from treeparse.data.module import TreebankModule


@pytest.fixture
def sentences() -> list[Sentence]:
    stream = random.Random(5)
    lengths = [stream.randint(1, 9) for _ in range(30)]
    return [
        Sentence(
            forms=tuple(f"w{stream.randint(1, 20)}" for _ in range(length)),
            heads=tuple(range(length)),
            labels=("root",) + ("dep",) * (length - 1),
        )
        for length in lengths
    ]


def make(sentences: list[Sentence], workers: int = 0, start_method: str | None = None, seed: int = 3) -> TreebankModule:
    indexer = Indexer.build(sentences, LexicalFeatures.build(sentences, min_count=1, tags=()))
    return TreebankModule(
        sentences,
        sentences[:5],
        indexer.collate,
        batch_words=25,
        workers=workers,
        start_method=start_method,
        seed=seed,
    )


def epoch(module: TreebankModule, number: int) -> list[Batch]:
    module.sampler.set_epoch(number)
    return list(module.train_dataloader())


def same(first: Batch, second: Batch) -> bool:
    tensors = [
        (batch.lengths, batch.indices, batch.heads, batch.labels, *(batch.features[name] for name in first.features))
        for batch in (first, second)
    ]
    return all(a is not None and b is not None and torch.equal(a, b) for a, b in zip(*tensors, strict=True))


def test_an_epoch_holds_every_sentence_once_and_follows_seed_and_epoch(sentences: list[Sentence]) -> None:
    module = make(sentences)
    first, second = epoch(module, 0), epoch(module, 1)
    for batches in (first, second):
        assert sorted(place for batch in batches for place in batch.indices.tolist()) == list(range(len(sentences)))
    order = [batch.indices.tolist() for batch in first]
    assert order != [batch.indices.tolist() for batch in second]
    assert order == [batch.indices.tolist() for batch in epoch(make(sentences), 0)]
    assert order != [batch.indices.tolist() for batch in epoch(make(sentences, seed=4), 0)]


@pytest.mark.filterwarnings("ignore:This DataLoader will create:UserWarning:torch.utils.data")  # on one core
@pytest.mark.parametrize("start_method", ["fork", "spawn"])
def test_batches_do_not_depend_on_workers(sentences: list[Sentence], start_method: str) -> None:
    alone, helped = make(sentences), make(sentences, workers=2, start_method=start_method)
    for number in range(2):
        expected, found = epoch(alone, number), epoch(helped, number)
        assert len(expected) == len(found)
        assert all(map(same, expected, found))


def test_loading_leaves_the_default_generator_alone(sentences: list[Sentence]) -> None:
    torch.manual_seed(1)
    before = torch.get_rng_state()
    epoch(make(sentences, workers=1, start_method="fork"), 0)
    assert torch.equal(torch.get_rng_state(), before)


def test_dev_batches_keep_to_the_bounds_and_say_their_places(sentences: list[Sentence]) -> None:
    batches = list(make(sentences).val_dataloader())
    assert sorted(place for batch in batches for place in batch.indices.tolist()) == list(range(5))
    for batch in batches:
        assert batch.lengths.tolist() == [len(sentences[place]) for place in batch.indices.tolist()]
