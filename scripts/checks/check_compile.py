"""What torch.compile and torch.export make of distributions, each in one graph and in a fresh process.

    python -m scripts.checks.check_compile --output scripts/experiments/results/check_compile.md

Every row is compiled with ``fullgraph=True`` before anything else has run, and then compared with the same computation
without torch.compile, gradients included. Kernels are warm where the cache of compiled kernels holds them, and cold
where it is empty. Another Python's table is made by that Python: ``python3.13 -m scripts.checks.check_compile``.
"""

import argparse
import io
import os
import platform
import re
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import chain, product
from pathlib import Path
from typing import Any, NamedTuple

import torch
from scripts.support.reports.markdown import Opening, report
from torch import Tensor, nn
from torch.distributions import kl_divergence

from treeparse import LabeledCRF, NonProjectiveCRF, ProjectiveCRF, SecondOrderCRF, SiblingCRF
from treeparse.trees import operators

TABLE = "\n".join(line for line in str(operators.__doc__).splitlines() if line.startswith("|"))
OPENING = Opening(
    title="Distributions in compiled programs",
    measured="whether a row is compiled in one graph (`fullgraph=True`), and gives the values and gradients that it "
    "has without torch.compile.",
    on="three sentences of up to 5 words, float32; shapes are dynamic. Gradients of longer sentences, with a network's "
    "scores in the program: `tests/trees/test_inductor.py`.",
    read="ok, or the error; each cell is a fresh process, whose first call is the compiled one.",
    repeat="python -m scripts.checks.check_compile --output scripts/experiments/results/check_compile.md",
    details=f"What is beyond torch:\n\n{TABLE}",
)
BACKENDS = ("aot_eager", "inductor")
EXPORT = "export, saved and loaded"
LENGTHS = torch.tensor([5, 3, 4])
LABELS = 4


class Row(NamedTuple):
    """A function of tensors, and the tensors; scores have gradients if ``differentiable``."""

    function: Callable[..., Any]
    arguments: tuple[Tensor, ...]
    differentiable: bool = True


class Scorer(nn.Module):
    """A scorer of one's own, and the loss of its labelled trees."""

    def __init__(self) -> None:
        super().__init__()
        self.heads, self.dependents = nn.Linear(8, 8), nn.Linear(8, 8)
        self.labels = nn.Bilinear(8, 8, LABELS)

    def forward(self, vectors: Tensor, lengths: Tensor, heads: Tensor, labels: Tensor) -> Tensor:
        arcs = self.heads(vectors) @ self.dependents(vectors).mT
        batch, nodes, size = vectors.shape
        pairs = (batch, nodes, nodes, size)
        scores = self.labels(vectors.unsqueeze(2).expand(pairs), vectors.unsqueeze(1).expand(pairs))
        return -LabeledCRF(NonProjectiveCRF(arcs, lengths), scores).log_prob(heads, labels).mean()


class BestTrees(nn.Module):
    """From scores to heads and labels."""

    def forward(self, arcs: Tensor, labels: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        heads, best = LabeledCRF(NonProjectiveCRF(arcs, lengths), labels).mode
        return heads, best


def rows() -> dict[str, Row]:
    """What is compiled, by name."""
    torch.manual_seed(1)
    arcs, labels, cube = torch.randn(3, 6, 6), torch.randn(3, 6, 6, LABELS), torch.randn(3, 6, 6, 6)
    chain_heads = torch.arange(6).sub(1).repeat(3, 1)  # every word hangs from the one before it
    some_labels = torch.randint(LABELS, (3, 6))
    both, tree = (arcs, LENGTHS), (chain_heads, some_labels)
    return {
        "log partition": Row(lambda s, n: NonProjectiveCRF(s, n).log_partition, both),
        "log partition, projective": Row(lambda s, n: ProjectiveCRF(s, n).log_partition, both),
        "log partition, siblings": Row(lambda s, c, n: SiblingCRF(s, c, n).log_partition, (arcs, cube, LENGTHS)),
        "log partition, second order": Row(
            lambda s, c, n: SecondOrderCRF(s, c, -c, n).log_partition, (arcs, cube, LENGTHS)
        ),
        "entropy": Row(lambda s, n: NonProjectiveCRF(s, n).entropy(), both),
        "KL divergence": Row(lambda s, n: kl_divergence(ProjectiveCRF(s, n), NonProjectiveCRF(2 * s, n)), both, False),
        "KL divergence, one kind": Row(
            lambda s, n: kl_divergence(NonProjectiveCRF(s, n), NonProjectiveCRF(2 * s, n)), both
        ),
        "marginals": Row(lambda s, n: NonProjectiveCRF(s, n).marginals, both),
        "mode": Row(lambda s, n: NonProjectiveCRF(s, n).mode, both, False),
        "sample": Row(_probability_of_samples, both, False),
        "log_prob": Row(lambda s, n, h: NonProjectiveCRF(s, n).log_prob(h), (*both, chain_heads)),
        "labeled log_prob": Row(
            lambda s, r, n, *tree: LabeledCRF(ProjectiveCRF(s, n), r).log_prob(*tree), (arcs, labels, LENGTHS, *tree)
        ),
        "labeled entropy": Row(
            lambda s, r, n: LabeledCRF(NonProjectiveCRF(s, n), r).entropy(), (arcs, labels, LENGTHS)
        ),
        "labeled mode": Row(BestTrees(), (arcs, labels, LENGTHS), False),
        "minimum risk": Row(lambda s, n: NonProjectiveCRF(s, n).minimum_risk(), both, False),
        "training step": Row(partial(_step, Scorer()), (torch.randn(3, 6, 8), LENGTHS, *tree)),
    }


def _probability_of_samples(scores: Tensor, lengths: Tensor) -> Tensor:
    """Whether trees that are drawn are trees: the draws themselves differ from run to run."""
    p = NonProjectiveCRF(scores, lengths)
    return p.log_prob(p.sample((20,))) > -torch.inf


def _step(model: nn.Module, *arguments: Tensor) -> Tensor:
    return model(*arguments)


def check(name: str, backend: str, device: str = "cpu") -> None:
    """Compile one row, and compare it; raise where it fails or differs."""
    if name == EXPORT:
        return _check_export(device)
    row = rows()[name]
    if isinstance(row.function, partial):
        row.function.args[0].to(device)
    compiled = torch.compile(row.function, fullgraph=True, backend=backend, dynamic=True)
    results = []
    for function in (compiled, row.function):
        arguments = [each.to(device, copy=True) for each in row.arguments]
        for each in arguments:
            each.requires_grad_(row.differentiable and each.is_floating_point())
        values = function(*arguments)
        values = [values] if isinstance(values, Tensor) else [*values]
        if row.differentiable:
            weights = torch.linspace(1, 2, values[0].numel(), device=device).reshape(values[0].shape)
            (values[0] * weights).sum().backward()
            values += [each.grad for each in arguments if each.grad is not None]
            if isinstance(row.function, partial):
                values += [each.grad.clone() for each in row.function.args[0].parameters() if each.grad is not None]
                row.function.args[0].zero_grad()
        results.append([each.detach() for each in values])
    for found, expected in zip(*results, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


def _check_export(device: str) -> None:
    """Export from scores to heads and labels with dynamic sizes, save, load, and compare with other sizes."""
    batch, nodes = torch.export.Dim("batch", min=1, max=1000), torch.export.Dim("nodes", min=2, max=500)
    shapes = ({0: batch, 1: nodes, 2: nodes}, {0: batch, 1: nodes, 2: nodes}, {0: batch})
    arguments = torch.randn(3, 6, 6), torch.randn(3, 6, 6, LABELS), LENGTHS
    arguments = tuple(each.to(device) for each in arguments)
    file = io.BytesIO()
    torch.export.save(torch.export.export(BestTrees(), arguments, dynamic_shapes=shapes), file)
    file.seek(0)
    loaded = torch.export.load(file).module()
    others = torch.randn(5, 9, 9), torch.randn(5, 9, 9, LABELS), torch.tensor([8, 4, 8, 3, 1])
    others = tuple(each.to(device) for each in others)
    for found, expected in zip(loaded(*others), BestTrees()(*others), strict=True):
        torch.testing.assert_close(found, expected)


def run(name: str, backend: str, *, cold: bool, device: str = "cpu") -> str:
    """Check a row in a fresh process; return ``ok`` or the last line of what it said."""
    command = [
        sys.executable,
        "-m",
        "scripts.checks.check_compile",
        "--row",
        name,
        "--backend",
        backend,
        "--device",
        device,
    ]
    with tempfile.TemporaryDirectory() as empty:
        environment = os.environ | ({"NUMBA_CACHE_DIR": empty} if cold else {})
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode == 0:
        return "ok"
    errors = [line for line in done.stderr.splitlines() if re.match(r"[\w.]+(Error|Unsupported)\b", line)]
    return (errors or ["failed"])[-1][:200].replace("|", "/")


def table(device: str, jobs: int) -> Iterator[str]:
    """All rows by backends, with warm and, on the CPU, with cold kernels."""
    yield f"\n## Python {platform.python_version()}, torch {torch.__version__}, {device}\n"
    columns = [(backend, cold) for backend in BACKENDS for cold in (False, True) if not (cold and device != "cpu")]
    yield "| row | " + " | ".join(f"{backend}, {'cold' if cold else 'warm'}" for backend, cold in columns) + " |"
    yield "|:--" * (len(columns) + 1) + "|"
    names = [*rows(), EXPORT]
    with ThreadPoolExecutor(jobs) as pool:
        cells = {
            (name, column): pool.submit(run, name, column[0], cold=column[1], device=device)
            for name, column in product(names, columns)
            if name != EXPORT or column[0] == BACKENDS[0]  # export has no backend
        }
        for name in names:
            found = [cells[name, column].result() if (name, column) in cells else "" for column in columns]
            yield f"| {name} | {' | '.join(found)} |"


def main() -> None:
    """Print the table, and write it to a file; or check one row in this process."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--row", help="check this row alone, in this process")
    parser.add_argument("--backend", default=BACKENDS[0], help="of that row (default: aot_eager)")
    parser.add_argument("--device", default="cpu", help="of the tensors (default: cpu)")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="rows at once (default 1)")
    parser.add_argument("--output", type=Path, metavar="FILE", help="also write the table here, as markdown")
    args = parser.parse_args()
    if args.row:
        warnings.filterwarnings("ignore", module="torch")
        check(args.row, args.backend, args.device)
    else:
        report(chain([OPENING.text()], table(args.device, args.jobs)), args.output)


if __name__ == "__main__":
    main()
