"""The order of the layers, read from the imports, and what ``import treeparse`` may load."""

import ast
import graphlib
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, TypeGuard

import pytest

PACKAGE = Path(__file__).parents[1] / "treeparse"

# What every layer may import; only batches need torch.
GROUND = {"errors", "names", "shipped", "sentence", "batch", "json_files", "lazy", "terminal", "user_code"}

# What each layer may import of ours, besides itself.
ALLOWED = {
    "errors": set(),
    "names": {"errors"},
    "shipped": {"errors"},
    "sentence": {"errors"},
    "batch": {"errors", "names", "sentence"},
    "lazy": {"errors"},
    "user_code": {"errors"},
    "json_files": set(),
    "terminal": set(),
    "progress": {"terminal"},
    "kernels": set(),
    "device": GROUND | {"kernels"},
    "pictures": set(),
    "trees": GROUND | {"kernels", "device", "pictures"},
    "data": GROUND | {"pictures"},
    "nn": GROUND | {"kernels", "data"},
    "metrics": GROUND,
    "objectives": GROUND | {"trees", "data"},
    "feature_templates": GROUND | {"kernels", "trees", "data"},
    "rules": GROUND | {"trees", "data"},
    "model": GROUND | {"kernels", "trees", "data", "nn", "metrics", "objectives", "feature_templates", "rules"},
    "corpus": GROUND | {"data", "rules", "model"},
    "spacy_component": GROUND | {"trees", "data", "model", "corpus"},
    "training": GROUND | {"progress", "kernels", "trees", "data", "nn", "metrics", "objectives", "model"},
    "rerank": GROUND | {"progress", "data", "metrics", "model", "training"},
    "serve": GROUND | {"data", "nn", "rules", "model", "corpus"},
    "cli": GROUND
    | {"progress", "kernels", "device", "trees", "pictures", "data", "nn", "metrics", "objectives"}
    | {"feature_templates", "rules", "model", "corpus", "training", "rerank", "serve"},
    "__main__": {"errors", "cli"},
}
# What each package of the kernels may import of the others; the files beside them, their common ground, import none.
KERNELS = {"": set(), "sums": set(), "best": set(), "lists": {"best"}, "samples": {"sums"}}
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")


@cache
def nodes_of(path: Path) -> list[ast.AST]:
    """All nodes of a file's syntax tree."""
    return list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


def imported_modules(path: Path) -> Iterator[str]:
    """Every module that a file imports, wherever the import stands; names of a package count as its modules."""
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            package = path.relative_to(PACKAGE.parent).parts[: -node.level] if node.level else ()
            base = [*package, *([node.module] if node.module else [])]
            yield from (".".join([*base, alias.name]) for alias in node.names)


def private_names(path: Path) -> Iterator[str]:
    """What a file takes of others' private names: imports of them, and attributes of modules or classes of ours."""
    imported = [name for name in imported_modules(path) if name.split(".")[0] == "treeparse"]
    yield from (name for name in imported if any(is_private(part) for part in name.split(".")))
    froms = [node for node in nodes_of(path) if isinstance(node, ast.ImportFrom)]
    ours = [node for node in froms if node.level or (node.module or "").split(".")[0] == "treeparse"]
    known = {alias.asname or alias.name for node in ours for alias in node.names}
    for node in nodes_of(path):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in known:
            yield from [f"{node.value.id}.{node.attr}"] if is_private(node.attr) else []


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def circle_of_imports(paths: Iterable[Path]) -> list[str]:
    """Modules each of which imports the one before, the last one also the first; none if there is no such circle."""
    modules = {module_name(path): path for path in paths}
    graph: dict[str, set[str]] = {}
    for module, path in modules.items():
        names = (name if name in modules else name.rpartition(".")[0] for name in imported_modules(path))
        graph[module] = {name for name in names if name in modules} - {module}
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return error.args[1]
    return []


def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def layer_of(path: Path) -> str:
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_go_down_only(path: Path) -> None:
    layer = layer_of(path)
    ours = (name.split(".") for name in imported_modules(path) if name.split(".")[0] == "treeparse")
    used = {parts[1] for parts in ours}
    assert used - {layer} <= ALLOWED[layer], f"{path} imports a layer that is not below {layer}"


@pytest.mark.parametrize("path", [path for path in MODULES if layer_of(path) == "kernels"], ids=lambda path: path.name)
def test_packages_of_kernels_import_each_other_in_one_direction(path: Path) -> None:
    package, *_ = *path.relative_to(PACKAGE / "kernels").parts[:-1], ""
    ours = (name.split(".")[2] for name in imported_modules(path) if name.startswith("treeparse.kernels."))
    assert set(ours) & KERNELS.keys() - {package} <= KERNELS[package]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_file_takes_private_names_of_another(path: Path) -> None:
    assert not list(private_names(path))


def test_no_imports_go_in_a_circle() -> None:
    """Those for types alone and those inside functions count too."""
    assert not circle_of_imports(MODULES)


@pytest.mark.parametrize(
    ("layer", "foreign"),
    [
        ("kernels", {"torch"}),
        ("trees", {"pytorch_lightning"}),
        ("metrics", {"pytorch_lightning"}),
        ("pictures", {"torch", "numpy"}),
    ],
)
def test_layer_stays_free_of(layer: str, foreign: set[str]) -> None:
    used = {name.split(".")[0] for path in MODULES if layer_of(path) == layer for name in imported_modules(path)}
    assert not used & foreign


LIGHT = {"pytorch_lightning", "transformers", "tensorboard"}
# The steps of one process, and the modules that none of them up to here may load. CUDA tensors alone need the device.
STEPS = {
    "import treeparse.terminal": {"torch", "tqdm"},
    "import treeparse": {"torch", "numba", "numpy", *LIGHT},
    "import treeparse.metrics": {"torchmetrics", *LIGHT},
    "treeparse.Parser, treeparse.NonProjectiveCRF": {"spacy", "stanza", "treeparse.device", *LIGHT},
    "import treeparse.rerank": LIGHT,
}


@cache
def loaded_and_changed(*steps: str) -> tuple[list[set[str]], list[str]]:
    """Modules after each step of a process of its own, and the variables of the environment that it changed."""
    lines = ["import contextlib, json, os, sys; before, loaded = dict(os.environ), []"]
    lines += [line for step in steps for line in (step, "loaded.append([*sys.modules])")]
    lines += ["print(json.dumps([loaded, [name for name, value in os.environ.items() if before.get(name) != value]]))"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("OMP_", "GOMP_"))}
    command = [sys.executable, "-c", "\n".join(lines)]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    loaded, changed = json.loads(done.stdout.splitlines()[-1])
    return [*map(set, loaded)], changed


@pytest.mark.parametrize("step", STEPS)
def test_a_step_loads_nothing_that_it_does_not_need(step: str) -> None:
    loaded = loaded_and_changed(*STEPS)[0][[*STEPS].index(step)]
    assert not loaded & STEPS[step]


def test_help_needs_no_torch() -> None:
    steps = "from treeparse.cli.main import main", "with contextlib.suppress(SystemExit): main(['--help'])"
    [*_, loaded], _ = loaded_and_changed(*steps)
    assert "treeparse.cli.main" in loaded and "torch" not in loaded


def test_only_commands_change_variables() -> None:
    """How torch's threads wait, commands alone say."""
    _, changed = loaded_and_changed(*STEPS)
    assert not changed


def test_public_names_exist_and_unknown_ones_do_not() -> None:
    import treeparse

    assert all(getattr(treeparse, name) is not None for name in treeparse.__all__)
    assert set(treeparse.__all__) <= set(dir(treeparse))
    with pytest.raises(AttributeError, match="no attribute 'Parsley'"):
        _ = treeparse.Parsley


DISTRIBUTIONS = {"NonProjectiveCRF", "ProjectiveCRF", "LabeledCRF", "SiblingCRF", "SecondOrderCRF"}
DISTRIBUTIONS |= {"NonProjectiveSiblingCRF", "DISTRIBUTIONS"}


def makers_of_distributions(path: Path) -> Iterator[str]:
    """The functions of a file that make a distribution: by its class, by the table of classes, or by a config's."""
    for function in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(function, ast.FunctionDef):
            used = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
            calls = {node.func.id for node in ast.walk(function) if is_call_by_name(node)}
            read = {ast.unparse(node) for node in ast.walk(function) if isinstance(node, ast.Attribute)}
            if calls & DISTRIBUTIONS or "DISTRIBUTIONS" in used or "self.config.distribution" in read:
                yield f"{module_name(path)}.{function.name}"


def is_call_by_name(node: ast.AST) -> TypeGuard[Any]:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name)


def test_only_the_parser_turns_scores_into_a_distribution() -> None:
    """All else starts from a distribution: in ``trees`` from one that is there, elsewhere from the parser's."""
    above = [path for path in MODULES if layer_of(path) not in {"trees", "kernels"} | GROUND]
    made = {maker for path in above for maker in makers_of_distributions(path)}
    # The command warm compiles kernels by distributions of no sentence.
    assert {maker for maker in made if ".warm." not in maker} == {
        f"treeparse.model.parser.{name}" for name in ("_likely_arcs", "distribution", "trees")
    }


def test_no_package_has_more_than_sixteen_modules() -> None:
    """The commands are excepted: each is a file."""
    packages = {path.parent for path in PACKAGE.rglob("*.py")} - {PACKAGE / "cli" / "commands"}
    counts = {str(package): len({*package.glob("*.py")} - {package / "__init__.py"}) for package in packages}
    assert not {package: count for package, count in counts.items() if count > 16}


def test_no_class_name_stands_twice() -> None:
    names = Counter(node.name for path in MODULES for node in nodes_of(path) if isinstance(node, ast.ClassDef))
    assert not {name for name, count in names.items() if count > 1}
