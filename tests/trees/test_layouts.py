"""Layouts of other libraries: each is read back, and means what its library takes it for."""

from importlib import import_module
from typing import Any

import numpy as np
import pytest
import torch
from helpers.tree_cases import generator
from torch import Tensor

from treeparse import NonProjectiveCRF, TreeparseError
from treeparse.trees import layouts

ARCS = torch.randn(3, 5, 5, generator=generator(1), dtype=torch.float64)
NO_ARCS = torch.eye(5, dtype=torch.bool) | (torch.arange(5) == 0)
MASKED = ARCS.masked_fill(NO_ARCS, -torch.inf)


def by_determinant(log_potentials: Tensor) -> Tensor:
    """Log partitions of torch-struct's single-root trees (Koo et al. 2007), root weights on the diagonal."""
    roots = log_potentials.diagonal(dim1=-2, dim2=-1).exp()
    weights = log_potentials.exp() * (1 - torch.eye(log_potentials.shape[-1]))
    laplacian = torch.diag_embed(weights.sum(-2)) - weights
    laplacian[..., 0, :] = roots
    return laplacian.logdet()


def test_torch_struct() -> None:
    theirs = layouts.to_torch_struct(ARCS)
    assert torch.equal(layouts.from_torch_struct(theirs), MASKED)
    p = NonProjectiveCRF(layouts.from_torch_struct(theirs))
    torch.testing.assert_close(p.log_partition, by_determinant(theirs))
    marginals = layouts.from_torch_struct(layouts.to_torch_struct(p.marginals), no_arc=0.0)
    assert torch.equal(marginals, p.marginals)


def test_supar() -> None:
    assert torch.equal(layouts.from_supar(layouts.to_supar(ARCS)), ARCS)
    assert layouts.to_supar(ARCS)[0, 2, 1] == ARCS[0, 1, 2]  # [dependent, head]


def test_synjax() -> None:
    scores, lengths = layouts.to_synjax(ARCS.requires_grad_(), torch.tensor([4, 2, 3]))
    assert isinstance(scores, np.ndarray) and lengths is not None and lengths.tolist() == [5, 3, 4]
    tensor, words = layouts.from_synjax(scores, lengths)
    assert torch.equal(tensor, ARCS) and words is not None and words.tolist() == [4, 2, 3]
    assert layouts.from_synjax(scores)[1] is None


def test_ufal() -> None:
    for arcs in MASKED:
        theirs = layouts.to_ufal(arcs)
        assert torch.equal(layouts.from_ufal(theirs), arcs)
        heads, score = import_module("ufal.chu_liu_edmonds").chu_liu_edmonds(theirs)
        p = NonProjectiveCRF(arcs, single_root=False)
        assert p.mode.tolist() == heads and p.score(p.mode).item() == pytest.approx(score)


def test_arcs_of_trees() -> None:
    p = NonProjectiveCRF(ARCS, torch.tensor([4, 2, 3]))
    arcs = layouts.to_arcs(p.mode)
    assert torch.equal(layouts.from_arcs(arcs), p.mode) and arcs.sum((1, 2)).tolist() == [4, 2, 3]


@pytest.mark.parametrize(
    ("convert", "shape"),
    [
        (layouts.from_torch_struct, (2, 3)),
        (layouts.to_torch_struct, (1, 1)),
        (layouts.from_supar, (4,)),
        (layouts.to_ufal, (2, 3, 3)),
        (layouts.from_arcs, (2, 3, 2)),
    ],
)
def test_other_shapes_are_refused(convert: Any, shape: tuple[int, ...]) -> None:
    with pytest.raises(TreeparseError, match=r"shape \(\*batch, N, N\)|One sentence"):
        convert(torch.zeros(shape))
