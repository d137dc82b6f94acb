"""Vectors of frozen layers in files: what is put in is found again, by others too, and whole or not at all."""

import os
import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from torch import Tensor

from treeparse.data.features.layer_cache import LayerCache
from treeparse.errors import TreeparseError
from treeparse.names import CacheDtype
from treeparse.sentence import Sentence

ONE, TWO, THREE = Sentence(("a", "b c")), Sentence(("a b", "c")), Sentence(("\ud800", "", "a", "a"))


def vectors(sentence: Sentence, seed: int = 0, *, layers: int = 2, size: int = 3) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(len(sentence), layers, size, generator=generator) * 10


def found(cache: LayerCache, sentence: Sentence) -> Tensor:
    tensor = cache.find(sentence)
    assert tensor is not None
    return tensor


@pytest.mark.parametrize(("dtype", "share"), [("float16", 1 / 2048), ("bfloat16", 1 / 256), ("float32", 0)])
def test_what_is_put_in_is_found_again(tmp_path: Path, dtype: CacheDtype, share: float) -> None:
    cache = LayerCache(tmp_path / "not" / "there", 2, 3, dtype)
    assert cache.find(ONE) is None and cache.missing([ONE, TWO, ONE]) == [ONE, TWO]
    cache.add([ONE, THREE], [vectors(ONE, 1), vectors(THREE, 3)])
    assert cache.missing([ONE, TWO, THREE]) == [TWO]
    cache.add([TWO], [vectors(TWO, 2)])
    for each in (cache, LayerCache(cache.folder, 2, 3, dtype), pickle.loads(pickle.dumps(cache))):
        for seed, sentence in enumerate((ONE, TWO, THREE), 1):
            expected = vectors(sentence, seed)
            difference = (found(each, sentence).float() - expected).abs()
            assert (difference <= share * expected.abs()).all()
    assert cache.word_bytes() == 2 * 3 * (4 if dtype == "float32" else 2)


def test_sentences_go_by_their_words_alone(tmp_path: Path) -> None:
    cache = LayerCache(tmp_path, 2, 3)
    cache.add([ONE], [vectors(ONE)])
    assert cache.find(TWO) is None
    assert cache.find(Sentence(ONE.forms, heads=(2, 0), labels=("det", "root"))) is not None


def test_two_fill_one_folder(tmp_path: Path) -> None:
    """At once, with the same sentences: each of them is there, whichever of its vectors is found."""
    sentences = [Sentence((f"w{number}", "x")) for number in range(30)]

    def fill(cache: LayerCache) -> None:
        for number, sentence in enumerate(sentences):
            cache.add([sentence], [torch.full((2, 2, 3), float(number))])

    caches = [LayerCache(tmp_path, 2, 3) for _ in range(2)]
    with ThreadPoolExecutor(2) as pool:
        assert [*pool.map(fill, caches)] == [None, None]
    for cache in (*caches, LayerCache(tmp_path, 2, 3)):
        assert all((found(cache, sentence) == number).all() for number, sentence in enumerate(sentences))
    assert len([*tmp_path.iterdir()]) == 60


def test_a_part_is_there_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = LayerCache(tmp_path, 2, 3)

    def killed(source: object, target: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", killed)
        with pytest.raises(KeyboardInterrupt):
            cache.add([ONE], [vectors(ONE)])
    (tmp_path / ".0123.safetensors.ab.tmp").write_bytes(b"half a part")  # as SIGKILL leaves it
    for each in (cache, LayerCache(tmp_path, 2, 3)):
        assert each.find(ONE) is None
    cache.add([ONE], [vectors(ONE)])
    assert LayerCache(tmp_path, 2, 3).find(ONE) is not None


@pytest.mark.parametrize("damage", ["cut", "empty", "other shape", "other dtype"])
def test_damaged_parts_are_named(tmp_path: Path, damage: str) -> None:
    LayerCache(tmp_path, 2, 3).add([ONE, TWO], [vectors(ONE), vectors(TWO)])
    [path] = tmp_path.iterdir()
    if damage in ("cut", "empty"):
        path.write_bytes(path.read_bytes()[:-1] if damage == "cut" else b"")
    with pytest.raises(TreeparseError, match=rf"{path.name} is damaged, or no part of this cache: delete it"):
        size, dtype = 4 if damage == "other shape" else 3, "bfloat16" if damage == "other dtype" else "float16"
        LayerCache(tmp_path, 2, size, dtype)


def test_values_that_are_too_large_for_the_dtype(tmp_path: Path) -> None:
    large = vectors(ONE) + 70_000
    with pytest.raises(TreeparseError, match=r"too large to be stored as float16: set data.cache_dtype to bfloat16"):
        LayerCache(tmp_path / "half", 2, 3).add([ONE], [large])
    assert not list((tmp_path / "half").iterdir())
    cache = LayerCache(tmp_path / "wide", 2, 3, "bfloat16")
    cache.add([ONE], [large])
    torch.testing.assert_close(found(cache, ONE).float(), large, atol=0, rtol=1 / 256)
