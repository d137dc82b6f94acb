"""The order of the layers, read from the imports, and what ``import treeparse`` may load."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "treeparse"

# What each layer may import of ours, besides itself.
ALLOWED = {
    "core": set(),
    "version": set(),
    "references": set(),
    "kernels": set(),
    "trees": {"core", "kernels"},
    "data": {"core"},
    "nn": {"core"},
    "metrics": {"core"},
    "objectives": {"core", "trees"},
    "model": {"core", "version", "trees", "data", "nn", "objectives"},
    "training": {"core", "version", "trees", "data", "nn", "metrics", "objectives", "model"},
    "cli": {"core", "trees", "data", "nn", "metrics", "objectives", "model", "training", "version"},
    "__main__": {"cli"},
}
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")


def imported_modules(path: Path) -> Iterator[str]:
    """Every module that a file imports, wherever the import stands; names of a package count as its modules."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            package = path.relative_to(PACKAGE.parent).parts[: -node.level] if node.level else ()
            base = [*package, *([node.module] if node.module else [])]
            yield from (".".join([*base, alias.name]) for alias in node.names)


def layer_of(path: Path) -> str:
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_go_down_only(path: Path) -> None:
    layer = layer_of(path)
    ours = (name.split(".") for name in imported_modules(path) if name.split(".")[0] == "treeparse")
    used = {parts[1] for parts in ours}
    assert used - {layer} <= ALLOWED[layer], f"{path} imports a layer that is not below {layer}"


@pytest.mark.parametrize(
    ("layer", "foreign"), [("kernels", {"torch"}), ("trees", {"pytorch_lightning"}), ("metrics", {"pytorch_lightning"})]
)
def test_layer_stays_free_of(layer: str, foreign: set[str]) -> None:
    used = {name.split(".")[0] for path in MODULES if layer_of(path) == layer for name in imported_modules(path)}
    assert not used & foreign


def modules_loaded_by(code: str) -> set[str]:
    program = f"{code}; import sys; print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(done.stderr.split())


def test_importing_the_package_loads_nothing_heavy() -> None:
    loaded = modules_loaded_by("import treeparse")
    assert not loaded & {"torch", "numba", "numpy", "pytorch_lightning", "transformers", "jsonargparse"}


def test_parsing_needs_no_training_library() -> None:
    loaded = modules_loaded_by("import treeparse; treeparse.Parser, treeparse.NonProjectiveCRF")
    assert not loaded & {"pytorch_lightning", "transformers", "jsonargparse", "tensorboard"}


def test_help_needs_no_torch() -> None:
    code = (
        "import contextlib; from treeparse.cli.main import main\nwith contextlib.suppress(SystemExit): main(['--help'])"
    )
    assert "torch" not in modules_loaded_by(code.replace("\n", "\n") + "\npass")


def test_public_names_exist_and_unknown_ones_do_not() -> None:
    import treeparse

    assert all(getattr(treeparse, name) is not None for name in treeparse.__all__)
    assert set(treeparse.__all__) <= set(dir(treeparse))
    with pytest.raises(AttributeError, match="no attribute 'Parsley'"):
        _ = treeparse.Parsley
