"""Try the tests with other Pythons, and with the oldest and the newest versions that pyproject.toml allows.

    scripts/matrix --output scripts/experiments/results/try_versions.md

For each row an environment is made, tried and removed again. The oldest versions are the lowest ones that the bounds of
pyproject.toml allow and that have wheels for that Python, the newest the highest ones (uv chooses both).
"""

import argparse
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

from scripts.support.reports.markdown import Opening, report

ROOT = Path(__file__).resolve().parents[2]
# A third of the tests: those that meet other packages.
TESTS = (
    "tests/training",
    "tests/nn",
    "tests/objectives",
    "tests/data",
    "tests/cli/test_main.py",
    "tests/cli/test_predict.py",
    "tests/cli/test_train.py",
    "tests/kernels/best",
    "tests/kernels/sums",
    "tests/trees/test_autograd.py",
    "tests/trees/test_best.py",
    "tests/trees/test_compile.py",
    "tests/trees/test_dense.py",
    "tests/trees/test_operators.py",
    "tests/trees/test_sampling.py",
    "tests/trees/test_second_order.py",
    "tests/trees/test_transforms.py",
    "tests/test_encoders.py",
    "tests/test_errors.py",
    "tests/test_linear_parser.py",
    "tests/test_model.py",
    "tests/test_second_order_parser.py",
    "tests/test_storage.py",
    "tests/test_transformer.py",
)
ROWS = ("3.11 oldest", "3.11 newest", "3.12 oldest", "3.12 newest", "3.13 oldest", "3.13 newest")
RESOLUTIONS = {"oldest": "lowest-direct", "newest": "highest"}
SHOWN = ("torch", "numpy", "numba", "pytorch-lightning", "transformers", "jsonargparse", "conllu")
UV = (sys.executable, "-m", "uv")
WITH_WHEELS = (
    *("torch", "numpy", "numba", "llvmlite", "safetensors", "tokenizers", "pyyaml", "backports.zstd", "aiohttp"),
    *("matplotlib", "contourpy", "kiwisolver", "pillow", "fonttools", "grpcio", "regex"),
)
OPENING = Opening(
    title="Other Pythons, and the oldest and newest versions of other packages",
    measured="a third of the tests, those that meet other packages, in one environment after the other.",
    on="the lowest and the highest versions that `pyproject.toml` allows and that have wheels for the Python.",
    read="passed, failed and skipped tests; warnings of other packages are no errors here.",
    repeat="scripts/matrix --output scripts/experiments/results/try_versions.md",
    details="On Python 3.11 the newest torch is that of `scripts/setup`, which has a build for CPUs.",
)


@dataclass(frozen=True)
class Result:
    """What came of one row."""

    versions: dict[str, str]
    outcome: str
    seconds: float


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table, and write it if asked."""
    parser = argparse.ArgumentParser(description="Try other Pythons, and other versions of other packages.")
    parser.add_argument("--rows", nargs="+", choices=ROWS, default=ROWS, help="these rows alone")
    parser.add_argument("--torch", default="2.13.0", help="of Python 3.11 with newest versions (default: 2.13.0)")
    parser.add_argument("--logs", type=Path, default=Path("runs/matrix"), metavar="DIR", help="where output goes")
    parser.add_argument("--output", type=Path, metavar="FILE", help="also write the table here")
    options = parser.parse_args(arguments)
    options.logs.mkdir(parents=True, exist_ok=True)
    report(chain(OPENING.text().splitlines(), table(options)), options.output)


def table(options: argparse.Namespace) -> Iterator[str]:
    """The lines of the table, each once its row is tried."""
    yield from ("", "## Environments", "")
    yield f"| Python | versions | {' | '.join(SHOWN)} | tests | minutes |"
    yield f"|:--|:--|{'--:|' * len(SHOWN)}:--|--:|"
    for row in options.rows:
        minor, which = row.split()
        python = find_python(minor)
        if python is None:
            yield f"| {minor} | {which} |{' |' * len(SHOWN)} not tried: there is no Python {minor} here | |"
            continue
        torch = options.torch if row == "3.11 newest" else None
        result = tried(python, which, torch, options.logs / f"{row.replace(' ', '-')}.log")
        versions = " | ".join(result.versions.get(name, "") for name in SHOWN)
        yield f"| {minor} | {which} | {versions} | {result.outcome} | {result.seconds / 60:.0f} |"


def find_python(minor: str) -> Path | None:
    """The interpreter of a version, on the path or among pyenv's."""
    found = shutil.which(f"python{minor}")
    candidates = [Path(found)] if found else []
    candidates += sorted(Path.home().glob(f".pyenv/versions/{minor}.*/bin/python"), reverse=True)
    for python in candidates:
        text = subprocess.run([python, "-V"], capture_output=True, text=True, check=False).stdout
        if text.startswith(f"Python {minor}."):
            return python
    return None


def tried(python: Path, which: str, torch: str | None, log: Path) -> Result:
    """Make an environment and a copy of the repository, run the tests in them, and remove both."""
    begin = time.monotonic()
    with TemporaryDirectory() as folder:
        copy, environment, pins = Path(folder, "treeparse"), Path(folder, "env"), Path(folder, "pins.txt")
        copy_repository(copy)
        pins.write_text(pinned(python, which, torch), encoding="utf-8")
        versions = dict(re.findall(r"^([\w.-]+)==([\w.+-]+)", pins.read_text(encoding="utf-8"), re.MULTILINE))
        install = [*UV, "pip", "install", "--quiet", "--python", environment]
        pytest = ["-m", "pytest", "-q", "-n", "2", "--dist", "worksteal", "--tb=short", "-o", "filterwarnings=default"]
        steps = [
            [*UV, "venv", "--quiet", "--python", python, environment],
            [*install, "--requirement", pins],
            [*install, "--no-deps", "--editable", copy],
            [environment / "bin" / "treeparse", "warm", "--quiet", "--jobs", "2"],
            [environment / "bin" / "python", *pytest, "-m", "not slow and not gpu", *TESTS],
        ]
        code = 0
        with log.open("w", encoding="utf-8") as output:
            for step in steps:
                print("$", *step, file=output, flush=True)
                code = subprocess.run(step, cwd=copy, stdout=output, stderr=subprocess.STDOUT, check=False).returncode
                if code:
                    break
        last = log.read_text(encoding="utf-8").rstrip().rpartition("\n")[2]
    counts = re.sub(r" in [\d.]+s.*|, \d+ warnings?|=+ ?", "", last)
    outcome = counts if " passed" in last else f"stopped with {code}: see the log"
    return Result(versions, outcome, time.monotonic() - begin)


def copy_repository(folder: Path) -> None:
    """Copy what git tracks or would add, so that kernels are compiled beside the copy."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout
    for name in filter(None, listed.split("\0")):
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, target)


def pinned(python: Path, which: str, torch: str | None) -> str:
    """The versions of all packages, as the text of a file of requirements."""
    command = [*UV, "pip", "compile", "--quiet", "--python", str(python), "--no-annotate"]
    command += ["--resolution", RESOLUTIONS[which], "--extra", "test", "--extra", "lora", "--no-header"]
    for package in WITH_WHEELS:
        command += ["--only-binary", package]
    given = ["--constraint", "-"] if torch else []
    text = f"torch=={torch}\n" if torch else ""
    done = subprocess.run(
        [*command, *given, "pyproject.toml"], input=text, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True
    )
    return done.stdout


if __name__ == "__main__":
    main()
