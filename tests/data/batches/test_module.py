import random
from pathlib import Path
from typing import Any

import pytest
import torch

from treeparse.batch import Batch
from treeparse.data.batches.mixing import ALL_LABELLED, EpochSampler, TrainingMix
from treeparse.data.batches.treebank_module import TreebankModule
from treeparse.data.batches.unlabelled import UnlabelledText
from treeparse.data.features.indexer import Indexer
from treeparse.data.features.words import LexicalFeatures
from treeparse.errors import DataError
from treeparse.names import Mixing
from treeparse.sentence import Sentence


@pytest.fixture
def sentences() -> list[Sentence]:
    stream = random.Random(5)
    lengths = [stream.randint(1, 9) for _ in range(30)]
    forms = [tuple(f"w{stream.randint(1, 20)}" for _ in range(length)) for length in lengths]
    return [Sentence(f, heads=tuple(range(len(f))), labels=("root",) + ("dep",) * (len(f) - 1)) for f in forms]


def make(
    sentences: list[Sentence], *, mix: TrainingMix = ALL_LABELLED, tags: tuple[str, ...] = (), **options: Any
) -> TreebankModule:
    indexer = Indexer.build(sentences, LexicalFeatures.build(sentences, min_count=1, tags=tags))
    bounds = {"max_words": options.pop("batch_words", 25), "max_squared": options.pop("batch_squared", None)}
    sampler = EpochSampler([*map(len, sentences)], **bounds, seed=options.pop("seed", 3), mix=mix)
    options = {"workers": 0, "check": indexer.features.check} | options
    return TreebankModule(sentences, sentences[:5], indexer.collate, lambda batch: {}, sampler, **options)


def with_text(path: Path, mixing: Mixing) -> TrainingMix:
    stream = random.Random(6)
    lines = [" ".join(f"w{stream.randint(1, 30)}" for _ in range(stream.randint(1, 9))) for _ in range(50)]
    path.write_text("\n".join(lines), encoding="utf-8")
    return TrainingMix(None, UnlabelledText([path], words=100, max_words=100), mixing, ratio=0.7)


def epoch(module: TreebankModule, number: int) -> list[Batch]:
    module.sampler.set_epoch(number)
    return [share.batch for share in module.train_dataloader()]


def same(first: Batch, second: Batch) -> bool:
    tensors = [
        (batch.lengths, batch.indices, batch.heads, batch.labels, *(batch.features[name] for name in first.features))
        for batch in (first, second)
    ]
    return first.sentences == second.sentences and all(
        a is b if a is None or b is None else torch.equal(a, b) for a, b in zip(*tensors, strict=True)
    )


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
@pytest.mark.parametrize(("start_method", "mixing"), [("fork", None), ("fork", "turns"), ("spawn", "together")])
def test_batches_do_not_depend_on_workers(
    sentences: list[Sentence], start_method: str, mixing: Mixing | None, tmp_path: Path
) -> None:
    mixes = [ALL_LABELLED if mixing is None else with_text(tmp_path / "text.txt", mixing) for _ in range(2)]
    alone = make(sentences, mix=mixes[0])
    workers = 2 if start_method == "fork" else 1  # a process that is spawned takes seconds to import torch
    helped = make(sentences, workers=workers, start_method=start_method, mix=mixes[1])
    for number in range(2):
        expected, found = epoch(alone, number), epoch(helped, number)
        assert len(expected) == len(found)
        assert all(map(same, expected, found))


def test_batches_that_are_made_ahead_are_the_same(sentences: list[Sentence]) -> None:
    alone, ahead = make(sentences), make(sentences, ahead=2)
    for number in range(2):
        expected, found = epoch(alone, number), epoch(ahead, number)
        assert len(ahead.train_dataloader()) == len(expected) == len(found)
        assert all(map(same, expected, found))
    shares = zip(alone.val_dataloader(), ahead.val_dataloader(), strict=True)
    assert all(same(first.batch, second.batch) for first, second in shares)
    assert ahead.train_dataloader() is ahead.train_dataloader()


def test_loading_leaves_the_default_generator_alone(sentences: list[Sentence]) -> None:
    torch.manual_seed(1)
    before = torch.get_rng_state()
    epoch(make(sentences, workers=1, start_method="fork"), 0)
    assert torch.equal(torch.get_rng_state(), before)


def test_dev_batches_keep_to_the_bounds_and_say_their_places(sentences: list[Sentence]) -> None:
    batches = [share.batch for share in make(sentences).val_dataloader()]
    assert sorted(place for batch in batches for place in batch.indices.tolist()) == list(range(5))
    for batch in batches:
        assert batch.lengths.tolist() == [len(sentences[place]) for place in batch.indices.tolist()]


def test_unlabelled_sentences_of_a_batch(sentences: list[Sentence], tmp_path: Path) -> None:
    mix = with_text(tmp_path / "text.txt", "together")
    lines = [tuple(line.split()) for line in (tmp_path / "text.txt").read_text(encoding="utf-8").splitlines()]
    mixed = 0
    for batch in epoch(make(sentences, mix=mix), 2):
        assert (batch.heads is not None and batch.labels is not None) or not batch.is_labelled().any()
        mixed += 0 < int(batch.is_labelled().sum()) < len(batch)
        for place, sentence, labelled in zip(
            batch.indices.tolist(), batch.sentences, batch.is_labelled().tolist(), strict=True
        ):
            assert labelled == (place < len(sentences))
            forms = sentences[place].forms if labelled else lines[place - len(sentences)]
            assert sentence.forms == forms
    assert mixed > 3


def test_text_without_the_tags_that_the_encoder_reads_is_named(sentences: list[Sentence], tmp_path: Path) -> None:
    tagged = [Sentence(s.forms, upos=("X",) * len(s), heads=s.heads, labels=s.labels) for s in sentences]
    module = make(tagged, mix=with_text(tmp_path / "text.txt", "turns"), tags=("upos",))
    with pytest.raises(DataError, match=r"text\.txt:1: The model reads UPOS, but the sentence that starts with"):
        module.train_dataloader()
