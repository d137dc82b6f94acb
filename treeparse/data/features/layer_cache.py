"""What the frozen layers of an encoder make of sentences, computed once and kept in memory-mapped files."""

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

from treeparse.data.features.spelled import SpelledSubwords
from treeparse.data.features.subwords import SubwordFeatures
from treeparse.data.features.words import Features
from treeparse.data.outputs import atomic_write
from treeparse.data.temporary_files import remove_all_leftovers
from treeparse.errors import TreeparseError
from treeparse.names import CacheDtype
from treeparse.sentence import Sentence

WORD_LAYERS = "word_layers"  # the feature of a batch that is in the cache
ENDING = ".safetensors"
DIGEST = 16  # bytes


class LayerCache:
    """Vectors of the words of sentences in ``layers`` layers of ``size`` each, by the sentences' words.

    The folder holds parts, each a file of the vectors of some sentences and of the digests of their words. A part
    appears whole and never changes, so that several processes may add parts at once, and what one of them had not
    finished when it was killed is not there. Can be pickled: another process maps the same files.

    Args:
        folder: whose name must say all that decides the vectors, see `CachedSubwords`; made if there is none.
        layers: number of layers.
        size: size of each vector.
        dtype: in which the vectors are kept.

    Raises:
        TreeparseError: a part is damaged, or is no part of such a cache.
    """

    def __init__(self, folder: Path, layers: int, size: int, dtype: CacheDtype = "float16") -> None:
        self.folder, self.layers, self.size = folder, layers, size
        self.dtype: torch.dtype = getattr(torch, dtype)
        self.folder.mkdir(parents=True, exist_ok=True)
        self._map()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in ("_parts", "_places")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._map()

    def _map(self) -> None:
        self._parts: list[Tensor] = []
        self._places: dict[bytes, tuple[int, int, int]] = {}
        remove_all_leftovers(self.folder)
        for path in sorted(self.folder.glob(f"*{ENDING}")):
            self._add_part(path)

    def _add_part(self, path: Path) -> None:
        try:
            with safe_open(path, "pt") as part:
                vectors, digests, ends = (part.get_tensor(name) for name in ("vectors", "digests", "ends"))
        except SafetensorError as error:
            raise _damaged(path) from error
        starts = [0, *ends.flatten().tolist()]
        shapes = [(starts[-1], self.layers, self.size), (len(starts) - 1, DIGEST)]
        if [vectors.shape, digests.shape] != shapes or vectors.dtype != self.dtype or starts != sorted(starts):
            raise _damaged(path)
        for digest, start, end in zip(digests.numpy(), starts, starts[1:], strict=False):
            self._places.setdefault(digest.tobytes(), (len(self._parts), start, end))
        self._parts.append(vectors)

    def word_bytes(self) -> int:
        """What the vectors of a word take."""
        return self.layers * self.size * self.dtype.itemsize

    def missing(self, sentences: Iterable[Sentence]) -> list[Sentence]:
        """The sentences whose vectors are not here, each once."""
        found = {_digest(sentence): sentence for sentence in sentences}
        return [sentence for digest, sentence in found.items() if digest not in self._places]

    def find(self, sentence: Sentence) -> Tensor | None:
        """The vectors (n, layers, size) of a sentence's words, in memory that is not to be written to."""
        place = self._places.get(_digest(sentence))
        if place is None:
            return None
        part, start, end = place
        return self._parts[part][start:end]

    def add(self, sentences: Sequence[Sentence], vectors: Sequence[Tensor]) -> None:
        """Keep the vectors (n, layers, size) of each sentence in a new part.

        Raises:
            TreeparseError: they are too large for the dtype, or the folder has no room for them.
        """
        table = torch.cat([each.to(self.dtype) for each in vectors])
        if not table.isfinite().all():
            raise TreeparseError(
                f"Some vectors are too large to be kept as {str(self.dtype).removeprefix('torch.')}: set "
                "data.cache_dtype to bfloat16, which has the range of float32."
            )
        digests = torch.frombuffer(bytearray(b"".join(map(_digest, sentences))), dtype=torch.uint8)
        ends = torch.tensor([*map(len, vectors)]).cumsum(0)
        path = self.folder / f"{secrets.token_hex(8)}{ENDING}"
        atomic_write(path, save({"vectors": table, "digests": digests.view(-1, DIGEST), "ends": ends}))
        self._add_part(path)


class CachedSubwords(Features):
    """Subwords, in whose place a batch has the vectors of frozen layers where all its sentences are in a cache.

    Then, beside those of characters and tags, its one feature is ``word_layers`` (layers, B, n+1, size), 0 at the root
    and at padding. A sentence's length is the same with and without the cache.
    """

    def __init__(self, features: SubwordFeatures | SpelledSubwords, cache: LayerCache) -> None:
        self.features, self.cache = features, cache

    def __call__(self, sentences: Sequence[Sentence]) -> dict[str, Tensor]:
        found = [self.cache.find(sentence) for sentence in sentences]
        known = [each for each in found if each is not None]
        if len(known) < len(found):
            return self.features(sentences)
        nodes = max(map(len, known)) + 1
        vectors = torch.zeros(self.cache.layers, len(known), nodes, self.cache.size, dtype=self.cache.dtype)
        for place, each in enumerate(known):
            vectors[:, place, 1 : len(each) + 1] = each.transpose(0, 1)
        beside = self.features.lexical(sentences) if isinstance(self.features, SpelledSubwords) else {}
        return beside | {WORD_LAYERS: vectors}

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
    return TreeparseError(f"{path} is no part of this cache, or is damaged: delete it, and it is computed again.")
