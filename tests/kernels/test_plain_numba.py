"""Kernels compiled by public parts of numba alone: where private ones are missing or changed, with the same bits."""

import ast
import hashlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

PACKAGE = Path(__file__).parents[2] / "treeparse"
PRIVATE = PACKAGE / "kernels" / "numba_private.py"
# What numba documents for those who build upon it.
PUBLIC = {"numba", "numba.types", "numba.core.cgutils", "numba.extending.intrinsic", "numba.extending.overload"}
PUBLIC_ATTRIBUTES = {"njit", "__version__"}
HIDING = {
    "a missing class": "import numba.core.codegen as codegen; del codegen.JITCodeLibrary",
    "a missing module": "import sys, numba; sys.modules['numba.misc.appdirs'] = None",
    "a missing method": "from numba.core.caching import Cache; del Cache._index_key",
    "another parameter": (
        "from numba.core.caching import Cache; load = Cache.load_overload\n"
        "Cache.load_overload = lambda self, sig, target_context, more=None: load(self, sig, target_context)"
    ),
}
IS_PLAIN = "from treeparse.kernels import compile; print(compile.numba_private is None)"
CALLS = """
import json, sys
from test_plain_numba import digests
print(json.dumps(digests(sys.argv[1:])))
"""


def digests(names: list[str]) -> dict[str, str]:
    """The digest of what each of these calls returns, by its name in ``CALLED``."""
    return {name: hashlib.sha256(b"".join(array.tobytes() for array in CALLED[name]())).hexdigest() for name in names}


def batch() -> tuple[np.ndarray, np.ndarray]:
    """Scores of sentences of many lengths, one of them so peaked that its weights underflow."""
    lengths = np.array([13, 1, 9, 23, 8, 17])
    scores = np.random.default_rng(0).normal(size=(len(lengths), 24, 24)) * 3.0
    scores[2] *= 300.0
    return scores, lengths


def small_kernels() -> Iterator[Any]:
    """Loops of every compiler of ``compile``: sums that may be reordered, vectors, products, and logs."""
    from treeparse.kernels.exponential import exponentiate
    from treeparse.kernels.logspace import log_sum
    from treeparse.kernels.sums.products import add_product
    from treeparse.kernels.weights import column_maxima, load_weights

    scores, lengths = batch()
    for item, n in zip(scores, lengths, strict=True):
        top, weights, original = np.empty(24), np.empty((24, 24)), np.empty((24, 24))
        column_maxima(item, n, top)
        total = load_weights(item, n, top, weights, original)
        yield from (np.array([total, log_sum(item[1], 0, n)]), top[1 : n + 1], weights[1 : n + 1, : n + 1])
    exponentials = scores.reshape(-1).copy()
    exponentiate(exponentials)
    product = np.zeros((24, 24))
    add_product(product, (0, 0), scores[0], (0, 0), scores[1], (0, 0), (24, 24, 24))
    yield from (exponentials, product)


def sums() -> Iterator[Any]:
    from treeparse.kernels.sums import elimination, inside_outside

    for single_root in (True, False):
        yield from elimination.log_partition_and_marginals(*batch(), single_root=single_root)
        yield from inside_outside.log_partition_and_marginals(*batch(), single_root=single_root)


def products_with_the_hessian() -> Iterator[Any]:
    from treeparse.kernels.sums import hessian

    scores, lengths = batch()
    yield hessian.hessian_vector_product(scores, lengths, scores[::-1].copy(), single_root=True)


def best_trees() -> Iterator[Any]:
    from treeparse.kernels.best import eisner, gabow_tarjan

    yield from (gabow_tarjan.best_trees(*batch()), eisner.best_trees(*batch(), single_root=True))


def samples() -> Iterator[Any]:
    from treeparse.kernels.samples.nonprojective import sample_trees

    seeds = np.arange(6, dtype=np.uint64)
    yield sample_trees(*batch(), seeds, 8, single_root=True)[0]


CALLED = {call.__name__: call for call in (small_kernels, sums, products_with_the_hessian, best_trees, samples)}


def run(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=True, timeout=560)


@pytest.mark.parametrize("hidden", HIDING)
def test_plain_njit_compiles_where_private_parts_are_missing_or_changed(hidden: str) -> None:
    done = run(f"{HIDING[hidden]}\n{IS_PLAIN}")
    assert done.stdout == "True\n"
    assert "treeparse does not know numba" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_private_parts_compile_where_numba_has_them() -> None:
    done = run(IS_PLAIN)
    assert (done.stdout, done.stderr) == ("False\n", "")


@pytest.mark.parametrize(
    "names", [["small_kernels"], pytest.param([*CALLED][1:], marks=pytest.mark.slow)], ids=["small", "all"]
)
def test_plain_njit_gives_the_same_bits(names: list[str]) -> None:
    done = run(HIDING["a missing class"] + CALLS, *names)
    assert "treeparse does not know numba" in done.stderr
    assert json.loads(done.stdout) == digests(names)


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_one_module_uses_private_parts_of_numba(path: Path) -> None:
    if path != PRIVATE:
        assert not set(private_parts(path))


def private_parts(path: Path) -> Iterator[str]:
    """The names that a file imports from numba, or takes as its attributes, and that are not public."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "numba":
            yield from [] if node.attr in PUBLIC_ATTRIBUTES else [f"numba.{node.attr}"]
        yield from (name for name in names if name.split(".")[0] == "numba" and name not in PUBLIC)


@pytest.mark.parametrize("source", ["from numba.core import config", "import numba.core.event", "numba.config"])
def test_private_parts_are_noticed(source: str, tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text(f"{source}\n", encoding="utf-8")
    assert list(private_parts(tmp_path / "module.py"))
