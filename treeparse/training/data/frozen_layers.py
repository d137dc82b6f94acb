"""The frozen layers of a run's encoder, computed for all its sentences before the first epoch, once for all runs."""

import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from treeparse.batch import pick_device
from treeparse.data.batches.batching import counted_nodes, cut_into_batches
from treeparse.data.features.indexer import Indexer
from treeparse.data.features.layer_cache import CachedSubwords, LayerCache
from treeparse.data.features.spelled import SpelledSubwords
from treeparse.data.features.subwords import SubwordFeatures
from treeparse.errors import TreeparseError
from treeparse.model import Parser
from treeparse.nn import TransformerConfig, TransformerEncoder
from treeparse.progress import Console
from treeparse.sentence import Sentence
from treeparse.training.settings.config import TrainConfig
from treeparse.training.settings.resolve import settled

FORMAT = 1  # of the cache: another one has other keys
PART = 2**27  # bytes of a file, about
GIGA = 10**9


def cached_indexer(config: TrainConfig, parser: Parser, sentences: Sequence[Sentence], console: Console) -> Indexer:
    """What makes a run's batches: the parser's own, with the vectors of frozen layers where ``data.cache`` asks for it.

    Those of all these sentences are then in that folder: what is missing is computed, and the console told before how
    much it is. The parser stays as it is and needs the folder for nothing.

    Raises:
        TreeparseError: the disk has no room for the vectors, or a file of the cache is damaged.
    """
    encoder, features, path = parser.scorer.encoder, parser.indexer.features, config.data.cache
    if path is None:
        return parser.indexer
    settings = parser.config.encoder
    assert isinstance(encoder, TransformerEncoder) and isinstance(settings, TransformerConfig)
    assert isinstance(features, SubwordFeatures | SpelledSubwords)
    root = Path(os.path.expandvars(path)).expanduser()
    size, dtype = encoder.transformer.config.hidden_size, config.data.cache_dtype
    subwords = features.subwords if isinstance(features, SpelledSubwords) else features
    cache = LayerCache(root / _key(encoder, subwords, settings.architecture, dtype), encoder.mixed, size, dtype)
    if missing := cache.missing(sentences):
        _announce(cache, missing, root, console)
        _fill(cache, missing, parser, config, console)
    else:
        console.say(f"the frozen layers of all sentences are in {root}")
    return Indexer(CachedSubwords(features, cache), parser.indexer.labels, parser.indexer.tags)


def _key(encoder: TransformerEncoder, subwords: SubwordFeatures, architecture: Mapping[str, Any], dtype: str) -> str:
    """A digest of all that decides the vectors, the weights themselves among it: no matter where they came from."""
    reading = subwords.to_json()  # the tokenizer and the windows
    settings = [FORMAT, architecture, reading, encoder.pooling, encoder.mixed, dtype]
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
    for name, weight in encoder.transformer.state_dict().items():
        digest.update(f"{name} {tuple(weight.shape)} {weight.dtype}".encode())
        digest.update(memoryview(weight.cpu().contiguous().view(-1).numpy()))
    return digest.hexdigest()[:32]


def _announce(cache: LayerCache, missing: Sequence[Sentence], root: Path, console: Console) -> None:
    """Say how much will be written; raise where there is no room for it."""
    words = sum(map(len, missing))
    wanted, free = words * cache.word_bytes(), shutil.disk_usage(cache.folder).free
    size = f"{len(missing):,} sentences, {words:,} words, {cache.layers} layers of {cache.size}: {wanted / GIGA:.2g} GB"
    if wanted > free:
        raise TreeparseError(
            f"The frozen layers of {size} do not fit into {root}, where {free / GIGA:.2g} GB are free: name another "
            "folder as data.cache, set model.encoder.mixed_layers to less, or leave out data.cache."
        )
    console.say(f"computing the frozen layers of {size} in {root}")


def _fill(
    cache: LayerCache, missing: Sequence[Sentence], parser: Parser, config: TrainConfig, console: Console
) -> None:
    """Compute and keep the vectors of these sentences, part by part."""
    sentences: list[Sentence] = []
    vectors: list[Tensor] = []
    held = 0
    with console.bar(sum(map(len, missing)), "word") as bar:
        for batch, found in _computed(missing, parser, config):
            sentences += batch
            vectors += found
            words = sum(map(len, batch))
            held += words * cache.word_bytes()
            if held >= PART:
                cache.add(sentences, vectors)
                sentences, vectors, held = [], [], 0
            bar.update(words)
        if sentences:
            cache.add(sentences, vectors)


@torch.inference_mode()
def _computed(
    sentences: Sequence[Sentence], parser: Parser, config: TrainConfig
) -> Iterator[tuple[list[Sentence], list[Tensor]]]:
    """Batches of the sentences and of their words' vectors (n, layers, size), computed where the run computes."""
    encoder, indexer, device = parser.scorer.encoder, parser.indexer, pick_device(config.trainer.device)
    assert isinstance(encoder, TransformerEncoder)
    nodes = counted_nodes([*map(indexer.features.length, sentences)])
    order = sorted(range(len(sentences)), key=nodes.__getitem__)
    bounds = {"max_words": settled(config.data.batch_words), "max_squared": config.data.batch_squared}
    home, mode = parser.device, encoder.training
    encoder.to(device).eval()
    try:
        for places in cut_into_batches(order, nodes, **bounds):
            batch = [sentences[place] for place in places]
            layers = encoder.word_layers(indexer.collate(batch).to(device)).cpu().permute(1, 2, 0, 3)
            yield batch, [row[1 : len(sentence) + 1].clone() for sentence, row in zip(batch, layers, strict=True)]
    finally:
        encoder.to(home).train(mode)
