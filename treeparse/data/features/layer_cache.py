"""A cache of the vectors that an encoder's frozen layers compute, in memory-mapped files."""

import hashlib
import json
import secrets
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from treeparse.data.features.subwords import SpelledSubwords, SubwordFeatures
from treeparse.data.features.words import Features
from treeparse.data.outputs import atomic_write
from treeparse.errors import TreeparseError
from treeparse.names import CacheDtype
from treeparse.sentence import Sentence

WORD_LAYERS = "word_layers"  # the feature that holds cached vectors
ENDING = ".safetensors"
DIGEST = 16  # bytes


class LayerCache:
    """The vectors of sentences' words, (n, layers, size), by a digest of the words.

    The folder holds parts: files with the vectors of some sentences and the digests of their words. A part appears
    complete and never changes, so several processes may add parts at the same time, and a killed process leaves no
    damaged part. A pickled cache maps the same files in another process.

    Args:
        folder: created if missing; its name must identify the model and layers that compute the vectors.
        layers: number of layers.
        size: size of each vector.
        dtype: the dtype in which vectors are stored.

    Raises:
        TreeparseError: a part is damaged, or has vectors of another shape or dtype.
    """

    def __init__(self, folder: Path, layers: int, size: int, dtype: CacheDtype = "float16") -> None:
        self.folder, self.layers, self.size = folder, layers, size
        self.dtype: torch.dtype = getattr(torch, dtype)
        self.folder.mkdir(parents=True, exist_ok=True)
        self._map()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_rows"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._map()

    def _map(self) -> None:
        self._rows: dict[bytes, tuple[Tensor, int, int]] = {}  # the part of a sentence, and where its vectors are
        for path in sorted(self.folder.glob(f"*{ENDING}")):
            self._add_part(path)

    def _add_part(self, path: Path) -> None:
        try:
            with safe_open(path, "pt") as part:
                vectors, digests, ends = (part.get_tensor(name) for name in ("vectors", "digests", "ends"))
        except SafetensorError as error:
            raise _damaged(path) from error
        if vectors.shape[1:] != (self.layers, self.size) or vectors.dtype != self.dtype:
            raise _damaged(path)
        starts = [0, *ends.tolist()]
        for digest, start, end in zip(digests.numpy(), starts, starts[1:], strict=False):
            self._rows.setdefault(digest.tobytes(), (vectors, start, end))

    def word_bytes(self) -> int:
        """Return the number of bytes of the vectors of a word."""
        return self.layers * self.size * self.dtype.itemsize

    def missing(self, sentences: Iterable[Sentence]) -> list[Sentence]:
        """Return the sentences that the cache lacks, each once."""
        by_digest = {_digest(sentence): sentence for sentence in sentences}
        return [sentence for digest, sentence in by_digest.items() if digest not in self._rows]

    def find(self, sentence: Sentence) -> Tensor | None:
        """Return the vectors (n, layers, size) of a sentence's words, None if missing; do not write to them."""
        if (rows := self._rows.get(_digest(sentence))) is None:
            return None
        vectors, start, end = rows
        return vectors[start:end]

    def add(self, sentences: Sequence[Sentence], vectors: Sequence[Tensor]) -> None:
        """Store the vectors (n, layers, size) of each sentence in a new part.

        Raises:
            TreeparseError: a vector is too large for the dtype.
        """
        table = torch.cat([rows.to(self.dtype) for rows in vectors])
        if not table.isfinite().all():
            raise TreeparseError(
                f"Some vectors are too large to be stored as {str(self.dtype).removeprefix('torch.')}: set "
                "data.cache_dtype to bfloat16, which has the range of float32."
            )
        digests = torch.frombuffer(bytearray(b"".join(map(_digest, sentences))), dtype=torch.uint8).view(-1, DIGEST)
        ends = torch.tensor([*map(len, vectors)]).cumsum(0)
        path = self.folder / f"{secrets.token_hex(8)}{ENDING}"
        atomic_write(path, save({"vectors": table, "digests": digests, "ends": ends}))
        self._add_part(path)


class CachedSubwords(Features):
    """Subword features, replaced by cached vectors in batches whose sentences are all in a cache.

    Such a batch has the feature ``word_layers`` (layers, B, n+1, size), 0 at the root and at padding, instead of
    subwords; features of characters and tags stay. A sentence's length does not depend on the cache.
    """

    def __init__(self, features: SubwordFeatures | SpelledSubwords, cache: LayerCache) -> None:
        self.features, self.cache = features, cache

    def __call__(self, sentences: Sequence[Sentence]) -> dict[str, Tensor]:
        cached = [vectors for vectors in map(self.cache.find, sentences) if vectors is not None]
        if len(cached) < len(sentences):
            return self.features(sentences)
        nodes = max(map(len, cached)) + 1
        layers = torch.zeros(self.cache.layers, len(cached), nodes, self.cache.size, dtype=self.cache.dtype)
        for item, vectors in enumerate(cached):
            layers[:, item, 1 : len(vectors) + 1] = vectors.transpose(0, 1)
        lexical = self.features.lexical(sentences) if isinstance(self.features, SpelledSubwords) else {}
        return lexical | {WORD_LAYERS: layers}

    def length(self, sentence: Sentence) -> int:
        return self.features.length(sentence)

    def tag_columns(self) -> Sequence[str]:
        return self.features.tag_columns()

    def extended(self, sentences: Sequence[Sentence], *, min_count: int = 2) -> "CachedSubwords":
        return self

    def to_json(self) -> dict[str, Any]:
        return self.features.to_json()


def _digest(sentence: Sentence) -> bytes:
    return hashlib.blake2b(json.dumps(sentence.forms).encode(), digest_size=DIGEST).digest()


def _damaged(path: Path) -> TreeparseError:
    return TreeparseError(f"{path} is damaged, or no part of this cache: delete it; training computes it again.")
