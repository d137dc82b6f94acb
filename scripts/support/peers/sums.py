"""The ways to sum over non-projective trees that bench_sums.py compares: the library, determinants, and peers."""

import argparse
import importlib
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scripts.support.peers.clones import dependent_major, import_package, import_supar, roots_on_diagonal
from torch import Tensor

from treeparse.trees import NonProjectiveCRF, ProjectiveCRF
from treeparse.trees.families import Backend

Array = NDArray[np.float64]
Sum = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Method:
    """One way to take sums, as differentiable functions of scores in a layout of its own.

    ``log_partition`` and ``entropy`` are ``(B,)``, ``marginals`` are laid out as the scores, ``restore`` brings them
    to ``(B, n+1, n+1)``, ``constants`` are sums that are timed without gradient.
    """

    name: str
    lay_out: Callable[[Array], Tensor]
    log_partition: Sum
    marginals: Sum
    entropy: Sum | None = None
    restore: Callable[[Array], Array] = lambda marginals: marginals
    constants: Mapping[str, Sum] = field(default_factory=dict)


def treeparse(dtype: torch.dtype, backend: Backend | None = None) -> Method:
    """The distribution as its users call it."""

    def distribution(scores: Tensor) -> NonProjectiveCRF:
        return NonProjectiveCRF(scores, backend=backend, validate_args=False)

    constants: dict[str, Sum] = {"covariance": lambda scores: distribution(scores).covariance(scores, scores)}
    if backend is None:  # whatever the backend, they come from the kernel
        constants["log marginals"] = lambda scores: distribution(scores).log_marginals
    name = f"treeparse, {str(dtype).removeprefix('torch.')}"
    return Method(
        name if backend is None else f"{name}, {backend} form",
        lambda scores: torch.tensor(scores, dtype=dtype),
        lambda scores: distribution(scores).log_partition,
        lambda scores: distribution(scores).marginals,
        lambda scores: distribution(scores).entropy(),
        constants=constants,
    )


def lu(dtype: torch.dtype) -> Method:
    """The log determinant of the single-root Laplacian, the root's weights in place of its first row."""

    def lay_out(scores: Array) -> Tensor:
        loops = np.eye(scores.shape[-1]) == 1
        return torch.tensor(np.where(loops, -np.inf, scores), dtype=dtype)

    def log_partition(scores: Tensor) -> Tensor:
        maxima = scores[:, :, 1:].detach().amax(1, keepdim=True)
        weights = torch.exp(scores[:, :, 1:] - maxima)
        laplacian = torch.diag_embed(weights[:, 1:].sum(1)) - weights[:, 1:]
        return torch.logdet(torch.cat([weights[:, :1], laplacian[:, 1:]], 1)) + maxima.sum((1, 2))

    def marginals(scores: Tensor) -> Tensor:
        return torch.autograd.grad(log_partition(scores).sum(), scores, create_graph=True)[0]

    return Method(f"LU, {str(dtype).removeprefix('torch.')}", lay_out, log_partition, marginals)


def projective(dtype: torch.dtype) -> Method:
    """The distribution over projective trees as its users call it."""

    def distribution(scores: Tensor) -> ProjectiveCRF:
        return ProjectiveCRF(scores, validate_args=False)

    return Method(
        f"treeparse, {str(dtype).removeprefix('torch.')}",
        lambda scores: torch.tensor(scores, dtype=dtype),
        lambda scores: distribution(scores).log_partition,
        lambda scores: distribution(scores).marginals,
        lambda scores: distribution(scores).entropy(),
    )


def supar(directory: Path, *, crossing: bool = True) -> Method:
    """``supar.structs.MatrixTree``, or ``DependencyCRF`` of projective trees, without the rest of the package."""
    trees = getattr(import_supar(directory, "supar.structs.tree"), "MatrixTree" if crossing else "DependencyCRF")
    return Method(
        "SuPar",
        lambda scores: torch.tensor(dependent_major(scores), dtype=torch.float32),
        lambda scores: trees(scores).log_partition,
        lambda scores: trees(scores).marginals,
        lambda scores: trees(scores).entropy,
        lambda marginals: marginals.transpose(0, 2, 1),
    )


def torch_struct(directory: Path, *, crossing: bool = True) -> Method:
    """``torch_struct.NonProjectiveDependencyCRF``, or ``DependencyCRF``, which have root arcs on the diagonal."""
    name = "NonProjectiveDependencyCRF" if crossing else "DependencyCRF"
    crf = partial(getattr(import_package(directory, "torch_struct"), name), multiroot=False)

    def restore(marginals: Array) -> Array:
        result = np.pad(marginals, ((0, 0), (1, 0), (1, 0)))
        result[:, 0, 1:] = np.einsum("bii->bi", marginals)
        return result

    return Method(
        "torch-struct",
        lambda scores: torch.tensor(roots_on_diagonal(scores), dtype=torch.float32),
        lambda scores: crf(scores).partition,
        lambda scores: crf(scores).marginals,
        restore=restore,
    )


@cache
def synjax_problem(directory: Path | None) -> str | None:
    """What keeps SynJax from being imported, if anything."""
    if directory is None:
        return "not named"
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # torch wants memory, too
    os.environ.setdefault("JAXTYPING_DISABLE", "1")  # its checks find fault with newer versions of what it needs
    try:
        import_package(directory, "synjax")
    except Exception as error:  # whatever it finds amiss in what it needs
        return f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
    return None


def synjax_calls(
    directory: Path, scores: Array, *, crossing: bool = True
) -> Iterator[tuple[tuple[str, str], Callable[[], object]]]:
    """SynJax's ``SpanningTreeCRF`` on JAX's own device: each sum, "SynJax" and the compiled call."""
    jax = importlib.import_module("jax")
    crf = import_package(directory, "synjax").SpanningTreeCRF

    def distribution(potentials: Any) -> Any:
        return crf(potentials, directed=True, projective=not crossing, single_root_edge=True)

    def log_partition(potentials: Any) -> Any:
        return distribution(potentials).log_partition().sum()

    functions = {
        "log partition with gradient": jax.value_and_grad(log_partition),
        "log partition": log_partition,
        "marginals, differentiable": lambda potentials: distribution(potentials).marginals(),
    }
    potentials = jax.numpy.asarray(scores, "float32")
    for name, function in functions.items():
        compiled = jax.jit(function)
        yield (name, "SynJax"), lambda compiled=compiled: jax.block_until_ready(compiled(potentials))


def add_clone_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare where the peers are that pip does not have."""
    parser.add_argument("--supar", type=Path, metavar="DIR", help="a clone of SuPar")
    parser.add_argument("--torch-struct", type=Path, metavar="DIR", help="a clone of torch-struct")


def clones(supar_at: Path | None, torch_struct_at: Path | None, *, crossing: bool = True) -> list[Method]:
    """The peers that were said to be there."""
    found = [supar(supar_at, crossing=crossing)] if supar_at else []
    return [*found, torch_struct(torch_struct_at, crossing=crossing)] if torch_struct_at else found
