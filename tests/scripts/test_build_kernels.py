"""The wheel of compiled kernels: what it holds, and for which Python and versions."""

import json
import zipfile
from pathlib import Path

import build_kernels
import llvmlite
import numba
import pytest


def test_kinds_of_processors_have_the_features_of_those_before() -> None:
    v3, v4 = (set(build_kernels.features_of(kind).split(",")) for kind in ("x86-64-v3", "x86-64-v4"))
    assert v3 < v4 and {"+avx2", "+fma"} <= v3 and "+avx512f" in v4 - v3


@pytest.mark.slow  # pip gets what builds the wheel
def test_a_wheel(tmp_path: Path) -> None:
    package = tmp_path / "source" / build_kernels.SHIPPED
    (package / "x86-64-v3").mkdir(parents=True)
    (package / "__init__.py").touch()
    for name in ("manifest.json", "kernel.nbi", "kernel.1.nbc"):
        (package / "x86-64-v3" / name).write_text("{}")
    build_kernels.build(tmp_path / "source", tmp_path / "dist")
    [path] = (tmp_path / "dist").iterdir()
    assert path.name.startswith("treeparse_kernels-") and path.name.endswith("-manylinux_2_17_x86_64.whl")
    with zipfile.ZipFile(path) as wheel:
        names = {Path(name).name for name in wheel.namelist()}
        assert {"manifest.json", "kernel.nbi", "kernel.1.nbc", "__init__.py"} <= names
        [metadata] = [name for name in wheel.namelist() if name.endswith("METADATA")]
        text = wheel.read(metadata).decode()
    assert f"numba=={numba.__version__}" in text and f"llvmlite=={llvmlite.__version__}" in text


def test_code_is_described(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def compile_one(command: list[str], *, check: bool, env: dict[str, str]) -> None:
        assert check and "warm" in command and env["NUMBA_CPU_NAME"] == "x86-64-v3"
        folder = Path(env["NUMBA_CACHE_DIR"]) / "kernels"
        folder.mkdir()
        (folder / "kernel.nbi").write_bytes(env["NUMBA_CPU_FEATURES"].encode())

    monkeypatch.setattr(build_kernels.subprocess, "run", compile_one)
    build_kernels.compile_for("x86-64-v3", tmp_path / "kind", 1)
    described = json.loads((tmp_path / "kind" / "manifest.json").read_text())
    _, name, features = described["machine"]
    assert name == "x86-64-v3" and (tmp_path / "kind" / "kernel.nbi").read_text() == features
    assert described["versions"] == build_kernels.ShippedCode.versions()
