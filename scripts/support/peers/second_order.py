"""What bench_second_order.py times: treeparse's distributions over projective trees, and SuPar's with siblings."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scripts.support.peers.clones import import_supar
from torch import Tensor

from treeparse.kernels.best.second_order_trees import best_trees
from treeparse.kernels.sums import inside_outside as sums
from treeparse.trees import ProjectiveCRF, SecondOrderCRF, SiblingCRF, TreeCRF

Calls = dict[str, Callable[[], Any]]
COUNT = 16  # of a list's trees, and of samples


def with_arcs(arcs: Tensor) -> Calls:
    """The distribution by scores of arcs alone as its users call it."""
    return _calls(ProjectiveCRF, arcs)


def with_siblings(arcs: Tensor, siblings: Tensor) -> Calls:
    """The same with siblings."""
    return _calls(SiblingCRF, arcs, siblings)


def kernels_alone(arcs: Tensor, siblings: Tensor) -> Calls:
    """The kernels of the distribution with siblings, without all that is around them."""
    batch = arcs.double().numpy(), siblings.numpy(), np.full(len(arcs), arcs.shape[1] - 1)
    return {
        "log partition": lambda: torch.from_numpy(sums.log_partition(*batch, single_root=True)),
        "marginals": lambda: torch.from_numpy(sums.log_partition_and_marginals(*batch, single_root=True)[1]),
        "best tree": lambda: torch.from_numpy(best_trees(*batch, single_root=True)),
    }


def with_grandparents(arcs: Tensor, siblings: Tensor, grandparents: Tensor) -> Calls:
    """The same with siblings and grandparents."""
    return _calls(SecondOrderCRF, arcs, siblings, grandparents)


def _calls(kind: Callable[..., TreeCRF], *parts: Tensor) -> Calls:
    leaves = [part.clone().requires_grad_() for part in parts]

    def distribution() -> TreeCRF:
        return kind(*parts, validate_args=False)

    def gradient_of(quantity: Callable[[TreeCRF], Tensor]) -> Tensor:
        return torch.autograd.grad(quantity(kind(*leaves, validate_args=False)).sum(), leaves)[0]

    return {
        "log partition": lambda: distribution().log_partition,
        "marginals": lambda: distribution().part_marginals.arcs,
        "best tree": lambda: distribution().mode,
        "log partition with gradient": lambda: gradient_of(lambda p: p.log_partition),
        "entropy with gradient": lambda: gradient_of(lambda p: p.entropy()),
        "log marginals": lambda: distribution().log_marginals,
        f"{COUNT} best trees": lambda: distribution().batched.k_best(COUNT),
        f"{COUNT} samples": lambda: distribution().sample((COUNT,)),
        f"{COUNT} samples without replacement": lambda: distribution().sample_without_replacement(COUNT).heads,
    }


def supar(directory: Path, arcs: Tensor, siblings: Tensor) -> Calls:
    """``supar.structs.Dependency2oCRF``, which lays scores out by dependent, head and sibling."""
    crf = import_supar(directory, "supar.structs.tree").Dependency2oCRF
    scores = arcs.transpose(1, 2).contiguous(), siblings.transpose(1, 2).contiguous()
    leaves = [part.clone().requires_grad_() for part in scores]
    return {
        "log partition": lambda: crf(scores).log_partition,
        "marginals": lambda: crf(scores).marginals[0].transpose(1, 2),
        "best tree": lambda: crf(scores).argmax,
        "log partition with gradient": lambda: torch.autograd.grad(crf(leaves).log_partition.sum(), leaves)[0],
    }
