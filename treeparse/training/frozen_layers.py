"""The layers of a frozen encoder, computed for all sentences before the first epoch and cached for all runs."""

import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from treeparse.data.batches.mixing import counted_nodes, cut_into_batches
from treeparse.data.features.indexer import Indexer
from treeparse.data.features.layer_cache import CachedSubwords, LayerCache
from treeparse.data.features.subwords import SpelledSubwords, SubwordFeatures
from treeparse.errors import TreeparseError
from treeparse.model import Parser
from treeparse.model.scorer import encoder_of
from treeparse.nn import TransformerConfig, TransformerEncoder
from treeparse.progress import Console
from treeparse.sentence import Sentence
from treeparse.training.train_config import ResolvedConfig
from treeparse.training.trainer import training_device

FORMAT = 2  # of the cache, part of its keys
PART = 2**27  # bytes of a file, about
GIGABYTE = 10**9


def cached_indexer(config: ResolvedConfig, parser: Parser, sentences: Sequence[Sentence], console: Console) -> Indexer:
    """Return the parser's indexer, whose batches hold cached vectors of frozen layers if ``data.cache`` is set.

    The function computes the vectors of the sentences that the cache lacks, and tells the console their size before.
    The parser does not change and does not need the cache.

    Raises:
        TreeparseError: the disk lacks space for the vectors, or a file of the cache is damaged.
    """
    encoder, features, path = encoder_of(parser.scorer), parser.indexer.features, config.data.cache
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
        _check_space(cache, missing, root, console)
        _fill(cache, missing, parser, config, console)
    else:
        console.say(f"the frozen layers of all sentences are in {root}")
    return parser.indexer.with_features(CachedSubwords(features, cache))


def _key(encoder: TransformerEncoder, subwords: SubwordFeatures, architecture: Mapping[str, Any], dtype: str) -> str:
    """Return a digest of everything that the vectors depend on, including the weights, whatever their source."""
    reading = subwords.to_json()  # the tokenizer and the windows
    settings = [FORMAT, architecture, reading, encoder.pooling, encoder.mixed, dtype]
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
    for name, weight in encoder.transformer.state_dict().items():
        digest.update(f"{name} {tuple(weight.shape)} {weight.dtype}".encode())
        digest.update(memoryview(weight.cpu().contiguous().view(-1).numpy()))
    return digest.hexdigest()[:32]


def _check_space(cache: LayerCache, missing: Sequence[Sentence], root: Path, console: Console) -> None:
    """Say how much will be written; raise if the disk lacks space for it."""
    words = sum(map(len, missing))
    needed, free = words * cache.word_bytes(), shutil.disk_usage(cache.folder).free
    size = f"{len(missing):,} sentences, {words:,} words, {cache.layers} layers of {cache.size}"
    size += f": {needed / GIGABYTE:.2g} GB"
    if needed > free:
        raise TreeparseError(
            f"The frozen layers of {size} do not fit into {root}, where {free / GIGABYTE:.2g} GB are free: name "
            "another folder as data.cache, set model.encoder.mixed_layers to less, or leave out data.cache."
        )
    console.say(f"computing the frozen layers of {size} in {root}")


def _fill(
    cache: LayerCache, missing: Sequence[Sentence], parser: Parser, config: ResolvedConfig, console: Console
) -> None:
    """Compute the vectors of these sentences and add them to the cache, part by part."""
    sentences: list[Sentence] = []
    vectors: list[Tensor] = []
    size = 0
    with console.bar(sum(map(len, missing)), "word") as bar:
        for batch, layers in _compute(missing, parser, config):
            sentences += batch
            vectors += layers
            words = sum(map(len, batch))
            size += words * cache.word_bytes()
            if size >= PART:
                cache.add(sentences, vectors)
                sentences, vectors, size = [], [], 0
            bar.update(words)
        if sentences:
            cache.add(sentences, vectors)


@torch.inference_mode()
def _compute(
    sentences: Sequence[Sentence], parser: Parser, config: ResolvedConfig
) -> Iterator[tuple[list[Sentence], list[Tensor]]]:
    """Yield batches of sentences with their words' vectors ``(n, layers, size)``, computed on the run's device."""
    encoder, indexer, device = encoder_of(parser.scorer), parser.indexer, training_device(config.trainer)
    assert isinstance(encoder, TransformerEncoder)
    nodes = counted_nodes([*map(indexer.features.length, sentences)])
    order = sorted(range(len(sentences)), key=nodes.__getitem__)
    bounds = {"max_words": config.data.batch_words, "max_squared": config.data.batch_squared}
    home, mode = parser.device, encoder.training
    encoder.to(device).eval()
    try:
        for indices in cut_into_batches(order, nodes, **bounds):
            batch = [sentences[index] for index in indices]
            layers = encoder.word_layers(indexer.collate(batch).to(device)).cpu().permute(1, 2, 0, 3)
            yield batch, [row[1 : len(sentence) + 1].clone() for sentence, row in zip(batch, layers, strict=True)]
    finally:
        encoder.to(home).train(mode)
