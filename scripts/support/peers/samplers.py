"""The samplers that bench_samplers.py compares, all behind one face: treeparse's distributions and their peers."""

import functools
import importlib
import importlib.util
import itertools
import os
import sys
import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numba
import numpy as np
import torch
from numpy.typing import NDArray
from scripts.support.peers.clones import (
    dependent_major,
    forbid_loops,
    import_file,
    import_package,
    import_supar,
    roots_on_diagonal,
)
from scripts.support.sampling import methods
from torch import Tensor

from treeparse import LabeledCRF, NonProjectiveCRF, ProjectiveCRF
from treeparse.trees.families import DistinctMethod, Method

Array = NDArray[np.float64]
Heads = NDArray[np.int64]
DrawTrees = Callable[[], Any]
LABELS = 40


@dataclass(frozen=True)
class Sampler:
    """One way to draw trees.

    ``prepare`` turns scores (B, n+1, n+1) and a number of trees a sentence into what the sampler eats, untimed, and
    returns the call to be timed, which makes the sampler ready for these scores and draws: heads (B, trees, n+1) with
    anything at the root and -1 where there is no tree. Every call draws anew. Slow ones get fewer trees or sentences.
    """

    name: str
    prepare: Callable[[Array, int], DrawTrees]
    is_peer: bool = True
    max_trees: int = sys.maxsize
    max_sentences: int = sys.maxsize


def treeparse(method: Method | None = None, *, single_root: bool = True) -> Sampler:
    """Trees drawn with replacement, as the library's users draw them."""

    def draw(scores: Tensor, count: int, generator: torch.Generator) -> Tensor:
        p = NonProjectiveCRF(scores, single_root=single_root)
        return p.sample((count,), generator=generator, method=method).transpose(0, 1)

    return by_tensors(method, draw)


def compared(method: int, name: str, *, single_root: bool = True) -> Sampler:
    """Trees drawn with replacement by one of ``methods``, which are compiled as the library's kernels."""

    def draw(scores: Tensor, count: int, generator: torch.Generator) -> Tensor:
        seeds = torch.randint(2**62, (len(scores),), generator=generator).numpy().astype(np.uint64)
        lengths = np.full(len(scores), scores.shape[1] - 1)
        heads, _ = methods.sample_trees(scores.numpy(), lengths, seeds, count, single_root=single_root, method=method)
        return torch.from_numpy(heads)

    return by_tensors(name, draw)


def treeparse_distinct(method: DistinctMethod | None = None) -> Sampler:
    """Trees drawn without replacement."""

    def draw(scores: Tensor, count: int, generator: torch.Generator) -> Tensor:
        trees = NonProjectiveCRF(scores).sample_without_replacement(count, generator=generator, method=method)
        return trees.heads.transpose(0, 1)

    return by_tensors(method, draw)


def treeparse_projective() -> Sampler:
    """Projective trees drawn with replacement."""

    def draw(scores: Tensor, count: int, generator: torch.Generator) -> Tensor:
        return ProjectiveCRF(scores).sample((count,), generator=generator).transpose(0, 1)

    return by_tensors(None, draw)


def treeparse_labeled(family: type[NonProjectiveCRF] | type[ProjectiveCRF]) -> Sampler:
    """Trees and labels drawn with replacement."""

    def draw(scores: Tensor, count: int, generator: torch.Generator) -> Tensor:
        p = LabeledCRF(family(scores), label_scores(scores.shape))
        return p.sample((count,), generator=generator)[0].transpose(0, 1)

    return by_tensors(None, draw)


@functools.cache
def label_scores(shape: torch.Size) -> Tensor:
    """An arc's labels weigh 1 together, so that they leave the law of the trees as it is."""
    generator = torch.Generator().manual_seed(1)
    return torch.randn(*shape, LABELS, generator=generator, dtype=torch.float64).log_softmax(-1)


def by_tensors(method: str | None, draw: Callable[[Tensor, int, torch.Generator], Tensor]) -> Sampler:
    """A sampler of tensors, by a generator of its own."""

    def prepare(scores: Array, count: int) -> DrawTrees:
        tensor, generator = torch.from_numpy(scores), torch.Generator().manual_seed(1)
        return lambda: draw(tensor, count, generator).numpy()

    return Sampler("treeparse" if method is None else f"treeparse, {method}", prepare, is_peer=False)


def treesample(directory: Path, kind: str) -> Sampler:
    """A sampler by the authors of [Samp], made once a sentence. It draws by numpy's global stream, which is seeded."""
    modules = {"TreeSwor": "swor", "ColbournSample": "colbourn"}
    distinct = kind == "TreeSwor"
    sampler = getattr(import_package(directory, f"treesample.{modules.get(kind, 'wilson')}"), kind)

    def draw(weights: Array, count: int) -> list[Heads]:
        trees = itertools.islice(sampler(weights).sample(), count)
        return [tree[0] if distinct else tree for tree in trees]

    return by_sentence(f"treesample {kind.removesuffix('Sample')}", draw, distinct)


def treesample_trie(directory: Path) -> Sampler | None:
    """``swor_ur``, which takes a trie from pip. It forgets to tell the trie that a tree is complete: we tell it."""
    if importlib.util.find_spec("unique_randomizer") is None:
        return None
    tries = importlib.import_module("unique_randomizer.unique_randomizer")
    vars(tries)["np"] = types.SimpleNamespace(**vars(np), NINF=-np.inf)  # a name for -inf that numpy 2 lacks
    swor = import_package(directory, "treesample.swor_ur")

    def draw(weights: Array, count: int) -> list[Heads]:
        struct, randomizer, trees = swor.SWORStruct(weights), tries.UniqueRandomizer(), []
        while len(trees) < count and not randomizer.exhausted():
            trees.append(swor.sample(struct, randomizer))
            randomizer.mark_sequence_complete()
        return trees

    return by_sentence("treesample tree_swor", draw, True)


def by_sentence(name: str, draw: Callable[[Array, int], Sequence[Heads]], distinct: bool) -> Sampler:
    """A sampler of one sentence, by weights; these are relative to each word's largest, or they would overflow."""

    def prepare(scores: Array, count: int) -> DrawTrees:
        arcs = forbid_loops(scores, -np.inf)
        weights = np.exp(arcs - scores.max(1, keepdims=True))
        np.random.seed(1)

        def draw_all() -> Heads:
            heads = np.full((len(scores), count, scores.shape[-1]), -1)
            with np.errstate(all="ignore"):
                for item, own in zip(heads, weights, strict=True):
                    trees = draw(own.copy(), count)  # a copy, since some change their input
                    if not trees:
                        raise ValueError("no tree")
                    item[: len(trees)] = trees
            return heads

        return draw_all

    if distinct:
        return Sampler(name, prepare, max_sentences=1)
    return Sampler(name, prepare, max_trees=10)


def synjax_wilson(directory: Path, *, single_root: bool = True) -> Sampler:
    """SynJax's numba kernel, without JAX; it is made ready again for every tree.

    (``SpanningTreeCRF.sample`` calls it once for all samples, which are then the same tree.)
    """
    kernel = wilson_kernel(directory)

    @numba.njit
    def seed(value: int) -> None:
        np.random.seed(value)

    def prepare(scores: Array, count: int) -> DrawTrees:
        arcs = forbid_loops(scores, -np.inf)[:, None]
        arcs = np.broadcast_to(arcs, (len(arcs), count, *arcs.shape[2:]))
        seed(1)

        def draw() -> Heads:
            with np.errstate(all="ignore"):
                return kernel(arcs, None, single_root)

        return draw

    return Sampler("SynJax Wilson kernel", prepare)


@functools.cache
def wilson_kernel(directory: Path) -> Callable[[Array, None, bool], Heads]:
    """The kernel. It has a limit for the steps of a walk, but counts them by ``+= 0``: here it counts by 1."""
    path = directory / "synjax" / "_src" / "deptree_algorithms" / "deptree_non_proj_wilson_sampling.py"
    source = path.read_text(encoding="utf-8").replace("loop_count += 0", "loop_count += 1")
    module = types.ModuleType(path.stem)
    module.__dict__["constants"] = import_file(directory, "synjax", "_src", "constants.py")
    exec(compile(source.replace("from synjax._src import constants", ""), path, "exec"), module.__dict__)
    return module.vectorized_sample_wilson


def synjax_crf(
    directory: Path, *, projective: bool = False, single_root: bool = True, distinct: bool = False
) -> Sampler | None:
    """``SpanningTreeCRF`` in one compiled call, if there is JAX: its default way, or that without replacement."""
    if importlib.util.find_spec("jax") is None:
        return None
    os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")
    jax = importlib.import_module("jax")
    crf = import_package(directory, "synjax").SpanningTreeCRF

    @functools.cache  # JAX keeps what it compiles with the function
    def sampler_of(count: int) -> Callable[[Any, Any], Any]:
        def sample(key: Any, potentials: Any) -> Any:
            p = crf(potentials, directed=True, projective=projective, single_root_edge=single_root)
            arcs = p.sample_without_replacement(key, count)[0] if distinct else p.sample(key, count)
            return arcs.argmax(-2).swapaxes(0, 1)

        return jax.jit(sample)

    def prepare(scores: Array, count: int) -> DrawTrees:
        keys, potentials, sample = itertools.count(), jax.numpy.asarray(scores, "float32"), sampler_of(count)

        def draw() -> Heads:
            return np.asarray(sample(jax.random.PRNGKey(next(keys)), potentials))

        draw()  # compiles
        return draw

    return Sampler("SynJax SpanningTreeCRF", prepare, max_trees=2 if projective else sys.maxsize)


def supar_projective(directory: Path) -> Sampler:
    """``supar.structs.DependencyCRF.sample``, which draws one tree a call."""
    crf = import_supar(directory, "supar.structs.tree").DependencyCRF

    def prepare(scores: Array, count: int) -> DrawTrees:
        arcs = torch.from_numpy(dependent_major(scores)).float()

        def draw() -> Heads:
            trees = [crf(arcs.clone()).sample().argmax(-1) for _ in range(count)]
            return torch.stack(trees, 1).numpy()

        return draw

    return Sampler("SuPar DependencyCRF", prepare, max_trees=2)


def torch_struct_projective(directory: Path) -> Sampler:
    """``torch_struct.DependencyCRF.sample`` with one root, which draws ten trees a pass over its chart."""
    crf = import_package(directory, "torch_struct").DependencyCRF

    def prepare(scores: Array, count: int) -> DrawTrees:
        arcs = torch.from_numpy(roots_on_diagonal(scores)).float()

        def draw() -> Heads:
            found = crf(arcs, multiroot=False).sample((count,)).argmax(-2)
            words = torch.arange(found.shape[-1])
            return torch.nn.functional.pad((found + 1) * (found != words), (1, 0)).transpose(0, 1).numpy()

        return draw

    return Sampler("torch-struct DependencyCRF", prepare, max_trees=10)
