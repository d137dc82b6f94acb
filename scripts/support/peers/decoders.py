"""The decoders that bench_decoders.py compares, all behind one face: treeparse's kernels and its peers."""

import importlib
import importlib.util
import itertools
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scripts.support.peers.clones import (
    dependent_major,
    forbid_loops,
    import_file,
    import_package,
    import_supar,
    lower_root_arcs,
    roots_on_diagonal,
)

from treeparse.kernels.best import arborescence, eisner
from treeparse.kernels.lists.nonprojective_lists import NonprojectiveKBest
from treeparse.kernels.lists.projective_lists import ProjectiveKBest

Array = NDArray[np.float64]
Decode = Callable[[], Any]
LONGEST, MOST_TREES = 160, 1000


@dataclass(frozen=True)
class Decoder:
    """One way to decode.

    ``prepare`` turns scores (B, n+1, n+1) and a number k of trees into what the decoder eats, untimed, and returns the
    call to be timed. Its answer is, for every sentence, a head list (n+1,), or up to k of them, best first; the entry
    of the root is anything. ``rounding`` is the relative rounding error of a tree's score where decoders compare trees.
    """

    name: str
    prepare: Callable[[Array, int], Decode]
    single_root: bool = True
    max_words: int = LONGEST
    max_trees: int = MOST_TREES
    rounding: float = 1e-9


IN_SINGLE = 1e-6  # the rounding of a decoder that computes in float32


def lengths_of(scores: Array) -> NDArray[np.int64]:
    """The lengths of sentences without padding."""
    return np.full(len(scores), scores.shape[-1] - 1)


def best_trees(single_root: bool = True) -> Decoder:
    """The kernel, one call a batch."""

    def prepare(scores: Array, k: int) -> Decode:
        lengths = lengths_of(scores)
        return lambda: arborescence.best_trees(scores, lengths, single_root=single_root)

    return Decoder("treeparse" if single_root else "treeparse, any roots", prepare, single_root)


def reweighted_trees() -> Decoder:
    """The first tree of the lists, which has one root by reweighting, one call a batch."""

    def prepare(scores: Array, k: int) -> Decode:
        lengths = lengths_of(scores)

        def decode() -> NDArray[np.int64]:
            lists = NonprojectiveKBest(scores, lengths, single_root=True)
            lists.extend(1)
            return lists.heads[:, 0]

        return decode

    return Decoder("treeparse, reweighting", prepare)


def projective_trees() -> Decoder:
    """Eisner's algorithm, one call a batch."""

    def prepare(scores: Array, k: int) -> Decode:
        lengths = lengths_of(scores)
        return lambda: eisner.best_trees(scores, lengths, single_root=True)

    return Decoder("treeparse", prepare)


def k_best_trees(kernel: type[NonprojectiveKBest] | type[ProjectiveKBest]) -> Decoder:
    """A batch's lists by a kernel, from its first step on."""

    def prepare(scores: Array, k: int) -> Decode:
        lengths = lengths_of(scores)

        def decode() -> NDArray[np.int64]:
            lists = kernel(scores, lengths, single_root=True)
            lists.extend(k)
            return lists.heads[:, :k]

        return decode

    return Decoder("treeparse", prepare)


def ufal(single_root: bool) -> Decoder | None:
    """The C++ decoder from pip, which leaves the number of roots open."""
    if importlib.util.find_spec("ufal.chu_liu_edmonds") is None:
        return None
    chu_liu_edmonds = importlib.import_module("ufal.chu_liu_edmonds").chu_liu_edmonds

    def prepare(scores: Array, k: int) -> Decode:
        arcs = forbid_loops(lower_root_arcs(scores) if single_root else scores, np.nan)
        arcs = np.ascontiguousarray(arcs.transpose(0, 2, 1))
        return lambda: [chu_liu_edmonds(item)[0] for item in arcs]

    return Decoder("ufal, root arcs lowered" if single_root else "ufal, any roots", prepare, single_root)


def networkx() -> Decoder | None:
    """Networkx's Edmonds, its graphs built beforehand."""
    if importlib.util.find_spec("networkx") is None:
        return None
    nx = importlib.import_module("networkx")

    def graph(scores: Array) -> object:
        arcs = [(i, j, float(s)) for (i, j), s in np.ndenumerate(scores) if j and i != j]
        result = nx.DiGraph()
        result.add_weighted_edges_from(arcs)
        return result

    def heads(arborescence: Any, size: int) -> list[int]:
        found = {dependent: head for head, dependent in arborescence.edges}
        return [-1] + [found[word] for word in range(1, size)]

    def prepare(scores: Array, k: int) -> Decode:
        graphs = [graph(item) for item in lower_root_arcs(scores)]
        size = scores.shape[-1]
        return lambda: [heads(nx.maximum_spanning_arborescence(item), size) for item in graphs]

    return Decoder("networkx, root arcs lowered", prepare, max_words=40)


def stanza(directory: Path) -> Decoder:
    """``chuliu_edmonds_one_root``; its rule for the root takes negative scores for granted, so they are shifted."""
    decode = import_file(directory, "stanza", "models", "common", "chuliu_edmonds.py").chuliu_edmonds_one_root

    def prepare(scores: Array, k: int) -> Decode:
        arcs = np.ascontiguousarray((scores - np.max(scores)).transpose(0, 2, 1))
        return lambda: [decode(item) for item in arcs]

    return Decoder("Stanza chuliu_edmonds_one_root", prepare)


def synjax(directory: Path) -> Decoder:
    """The numba kernel ``vectorized_mst``, with its single-root rule, without JAX."""
    path = ("synjax", "_src", "deptree_algorithms", "deptree_non_proj_argmax.py")
    vectorized_mst = import_file(directory, *path).vectorized_mst

    def prepare(scores: Array, k: int) -> Decode:
        arcs = forbid_loops(scores, -np.inf)
        return lambda: vectorized_mst(arcs, None, True)

    return Decoder("SynJax vectorized_mst", prepare)


def supar_mst(directory: Path) -> Decoder:
    """``supar.structs.fn.mst`` with its single-root rule."""
    mst = import_supar(directory, "supar.structs.fn").mst

    def prepare(scores: Array, k: int) -> Decode:
        arcs = torch.from_numpy(dependent_major(scores))
        mask = torch.ones(arcs.shape[:2], dtype=torch.bool)
        mask[:, 0] = False
        return lambda: mst(arcs.clone(), mask).numpy()  # a clone, since it changes its input

    return Decoder("SuPar mst", prepare)


def supar_projective(directory: Path, lists: bool) -> Decoder:
    """``supar.structs.DependencyCRF``: ``argmax``, or ``topk`` if lists are wanted."""
    crf = import_supar(directory, "supar.structs.tree").DependencyCRF

    def prepare(scores: Array, k: int) -> Decode:
        arcs = torch.from_numpy(dependent_major(scores)).float()
        if lists:
            return lambda: crf(arcs).topk(k).mT.numpy()
        return lambda: crf(arcs).argmax.numpy()

    name = f"SuPar DependencyCRF.{'topk' if lists else 'argmax'}"
    return Decoder(name, prepare, max_words=80 if lists else LONGEST, rounding=IN_SINGLE)


def torch_struct_projective(directory: Path, lists: bool) -> Decoder:
    """``torch_struct.DependencyCRF`` with one root: ``argmax``, or ``topk`` if lists are wanted."""
    crf = import_package(directory, "torch_struct").DependencyCRF

    def heads(arcs: torch.Tensor) -> NDArray[np.int64]:
        """Head lists (..., n+1) of arc indicators (..., n, n) with root arcs on the diagonal."""
        found = arcs.argmax(-2)
        words = torch.arange(found.shape[-1])
        return torch.nn.functional.pad((found + 1) * (found != words), (1, 0)).numpy()

    def prepare(scores: Array, k: int) -> Decode:
        arcs = torch.from_numpy(roots_on_diagonal(scores)).float()
        if lists:
            return lambda: heads(crf(arcs, multiroot=False).topk(k)).swapaxes(0, 1)
        return lambda: heads(crf(arcs, multiroot=False).argmax)

    name = f"torch-struct DependencyCRF.{'topk' if lists else 'argmax'}"
    return Decoder(name, prepare, max_words=80 if lists else LONGEST, rounding=IN_SINGLE)


def spanningtrees(directory: Path) -> Decoder:
    """``KBest.kbest`` with the root constraint, by the authors of [KBest], its objects made beforehand."""
    k_best = import_package(directory, "spanningtrees.kbest").KBest

    def prepare(scores: Array, k: int) -> Decode:
        solvers = [k_best(item) for item in scores]

        def decode() -> list[list[NDArray[np.int64]]]:
            with warnings.catch_warnings(action="ignore"):  # of NaN, which stands for what was taken out
                return [list(itertools.islice(solver.kbest(root_constraint=True), k)) for solver in solvers]

        return decode

    return Decoder("spanningtrees KBest", prepare, max_trees=100)
