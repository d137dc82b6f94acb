"""Posterior regularisation: the nearest distribution to p whose expectations keep within bounds (Ganchev et al. 2010).

The q of least KL(q || p) with E_q[f] <= b has p's scores, lowered by multipliers >= 0 times f. These maximise a concave
dual, -b multipliers - log Z_q, whose gradient is E_q[f] - b: projected ascent, with a rate of its own for every item.
"""

import torch
from torch import Tensor
from torch.distributions import kl_divergence

from treeparse import NonProjectiveCRF
from treeparse.trees import TreeCRF


def project(p: TreeCRF, features: Tensor, bounds: Tensor, steps: int = 400) -> tuple[TreeCRF, Tensor]:
    """The q and its multipliers ``(*batch, F)``; features ``(*batch, n+1, n+1, F)``, bounds ``(*batch, F)``."""

    def dual(multipliers: Tensor) -> tuple[TreeCRF, Tensor]:
        q = p.with_scores(p.scores - (features * multipliers[..., None, None, :]).sum(-1))
        return q, -(bounds * multipliers).sum(-1) - q.log_partition

    multipliers, rate = torch.zeros_like(bounds), torch.ones_like(bounds[..., :1])
    for _ in range(steps):
        q, height = dual(multipliers)
        trial = (multipliers + rate * (q.expectation(features) - bounds)).clamp_min(0)
        higher = (dual(trial)[1] >= height)[..., None]
        multipliers, rate = torch.where(higher, trial, multipliers), torch.where(higher, 2 * rate, rate / 4)
    return dual(multipliers)[0], multipliers


if __name__ == "__main__":
    p = NonProjectiveCRF(torch.randn(32, 11, 11, dtype=torch.float64))  # 32 sentences of ten words
    distance = torch.arange(11) - torch.arange(11)[:, None]
    features = torch.stack([distance.abs() > 4, distance < 0], -1).double().expand(32, -1, -1, -1)
    q, _ = project(p, features, torch.tensor([2.0, 4.0], dtype=torch.float64).expand(32, 2))
    for name, before, after in zip(("long", "leftward"), *(d.expectation(features).T for d in (p, q)), strict=True):
        print(f"{name} arcs a sentence: at most {before.max():.6f} before, {after.max():.6f} after")
    print(f"at {kl_divergence(q, p).mean():.2f} nats a sentence")
