#!/usr/bin/env python
"""Build treeparse-kernels: a wheel of compiled kernels for kinds of x86-64 processors, for the Python that runs this.

    scripts/build_kernels.py --jobs 2 --output dist

The wheel answers first calls where ``treeparse warm`` has not been run. It suits this version of treeparse's sources,
of numba, llvmlite and Python alone, and names them in its manifests; elsewhere kernels are compiled as without it.
``pip install --find-links dist 'treeparse[kernels]'`` takes it.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numba
from numba.core.registry import cpu_target

from treeparse.kernels.numba_private import SHIPPED, ShippedCode

V3 = "sse,sse2,sse3,ssse3,sse4.1,sse4.2,popcnt,cx8,cx16,cmov,fxsr,mmx,sahf,avx,avx2,bmi,bmi2,f16c,fma,lzcnt,movbe,xsave"
KINDS = {"x86-64-v3": V3, "x86-64-v4": f"{V3},avx512f,avx512bw,avx512cd,avx512dq,avx512vl"}
PROJECT = """[build-system]
requires = ["hatchling>=1.27"]
build-backend = "hatchling.build"

[project]
name = "treeparse-kernels"
version = "{version}"
description = "treeparse's kernels, compiled for kinds of x86-64 processors"
license = "Apache-2.0"
requires-python = "=={python}.*"
dependencies = ["treeparse=={version}", "numba=={numba}", "llvmlite=={llvmlite}"]

[tool.hatch.build.targets.wheel]
packages = ["{package}"]
artifacts = ["*.nbi", "*.nbc"]

[tool.hatch.build.targets.wheel.hooks.custom]
path = "tag.py"
"""
TAG = """from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Tag(BuildHookInterface):
    def initialize(self, version, build_data):
        build_data["pure_python"] = False
        build_data["tag"] = "{tag}"
"""


def features_of(kind: str) -> str:
    """The features of a kind of processor, as LLVM and numba name them."""
    return ",".join(f"+{name}" for name in KINDS[kind].split(","))


def compile_for(kind: str, folder: Path, jobs: int) -> None:
    """Compile all kernels for a kind of processor into a folder, and describe them there."""
    features = features_of(kind)
    with tempfile.TemporaryDirectory() as cache:
        settings = {"NUMBA_CPU_NAME": kind, "NUMBA_CPU_FEATURES": features, "NUMBA_CACHE_DIR": cache}
        command = [sys.executable, "-m", "treeparse", "warm", "--jobs", str(jobs), "--device", "cpu"]
        subprocess.run(command, check=True, env=os.environ | settings)
        folder.mkdir(parents=True)
        for file in sorted(Path(cache).rglob("*.nb?")):
            shutil.copy(file, folder)
    context: Any = cpu_target.target_context
    target = context.codegen().magic_tuple()[0]
    described = {"machine": [target, kind, features], "versions": ShippedCode.versions()}
    (folder / "manifest.json").write_text(json.dumps(described, indent=1), encoding="utf-8")


def build(folder: Path, output: Path) -> None:
    """Build the wheel of a folder that holds the package."""
    python = f"{sys.version_info[0]}.{sys.version_info[1]}"
    versions = {"version": version("treeparse"), "numba": numba.__version__, "llvmlite": version("llvmlite")}
    text = PROJECT.format(package=SHIPPED, python=python, **versions)
    (folder / "pyproject.toml").write_text(text, encoding="utf-8")
    tag = f"cp{python.replace('.', '')}-" * 2 + "manylinux_2_17_x86_64"
    (folder / "tag.py").write_text(TAG.format(tag=tag), encoding="utf-8")
    subprocess.run([sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", output, folder], check=True)


def main() -> None:
    """Compile, build, and say how large the wheel is."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="processes that compile (default 1)")
    parser.add_argument("--output", type=Path, default=Path("dist"), metavar="DIR", help="where the wheel goes (dist)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for kind in KINDS:
            compile_for(kind, folder / SHIPPED / kind, options.jobs)
        (folder / SHIPPED / "__init__.py").write_text('"""Compiled kernels, which treeparse reads."""\n')
        build(folder, options.output)
    for wheel in sorted(options.output.glob("treeparse_kernels-*.whl")):
        print(f"{wheel}: {wheel.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
