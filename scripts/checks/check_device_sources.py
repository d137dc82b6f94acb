"""Check the CUDA sources without a device: barriers by ThreadSanitizer, and that NVRTC, if it is there, compiles them.

    python -m scripts.checks.check_device_sources --plant

All kernels run once on the CPU, one OS thread a CUDA thread, over sentences of several lengths and kinds. With
``--plant`` they run again without each barrier in turn, which must be found, or else nobody needs it.
"""

import argparse
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch

sys.path.append(str(Path(__file__).parents[2] / "tests"))  # where the emulator lies

from helpers.hostile_scores import prefer_each_other
from scripts.support.device.sanitizer import Sanitizer

from treeparse.device import compiler, nonprojective, projective
from treeparse.device.launcher import Launcher
from treeparse.errors import TreeparseError

ARCHITECTURES = ("sm_80", "sm_90", "sm_100")
BARRIER = re.compile(r"__sync(threads|warp)\(\);")
MEMORIES = (1 << 18, 0)  # bytes a block: one sentence a block at a time, and several in turn
ENTRY = re.compile(r"Compiling entry function '(\w+)'.*?(\d+) bytes spill stores.*?Used (\d+) registers", re.DOTALL)


def run_all(launcher: Launcher) -> None:
    """Run every kernel over items in plain weights, in log space, with a root word and without a tree.

    A longer one comes after a shorter one, too: what a block then writes may lie where it has just read.
    """
    stream = np.random.default_rng(1)
    scores = stream.normal(size=(6, 10, 10))
    prefer_each_other(scores[1], [(1, 2), (3, 5)], 900.0)
    scores[2, 1:, 3] = -np.inf
    scores[3, :, 2] = -np.inf
    scores[4, [0, 1], 2:4] = -np.inf  # words 2 and 3 hang from each other alone, which a contraction shows
    arcs, vectors = torch.from_numpy(scores), torch.from_numpy(stream.normal(size=scores.shape))
    lengths = torch.tensor([1, 6, 4, 3, 3, 9])
    heads = torch.arange(-1, 9).repeat(6, 1).masked_fill(torch.arange(10) > lengths.unsqueeze(-1), -1)  # all but one
    heads[1, 1:4] = torch.tensor([3, 1, 2])
    for single_root in (True, False):
        options = {"single_root": single_root, "launcher": launcher}
        for sums in (nonprojective, projective):
            sums.log_partition(arcs, lengths, **options)
            sums.log_partition_and_marginals(arcs, lengths, **options)
            sums.hessian_vector_product(arcs, lengths, vectors, **options)
            sums.log_marginals(arcs, lengths, **options)
        nonprojective.reach(arcs.unsqueeze(0), lengths.unsqueeze(0) > 3, launcher=launcher)
        nonprojective.are_trees(heads, lengths, **options)
        for scores in (arcs, arcs.round()):  # which tie
            nonprojective.best_trees(scores, lengths, **options)
            projective.best_trees(scores, lengths, **options)
        nonprojective.are_trees(heads, lengths, crossing=False, **options)
        for method in (None, "expansion", "walks"):
            nonprojective.sample_trees(arcs, lengths, lengths, 10, method=method, **options)
        projective.sample_trees(arcs, lengths, lengths, 10, **options)


def find_races(programs: Path) -> None:
    """Raise where two threads race, or where a kernel is not run."""
    for most_shared_bytes in MEMORIES:
        launcher = Sanitizer(programs, most_shared_bytes=most_shared_bytes)
        run_all(launcher)
        if missing := compiler.kernels().keys() - set(launcher.runs):
            raise TreeparseError(f"Kernels that this script does not run: {', '.join(sorted(missing))}.")
    print(f"ThreadSanitizer: nothing in {', '.join(compiler.kernels())}")


def plant(programs: Path, wanted: str) -> bool:
    """Take out each barrier in turn, say whether that was found, and return whether all were."""
    found_all = True
    for path in sorted(compiler.FOLDER.glob(f"*{wanted}*")):
        text = path.read_text(encoding="utf-8")
        for barrier in BARRIER.finditer(text):
            found = _race_without(programs, path.name, text[: barrier.start()] + ";" + text[barrier.end() :])
            line = text.count("\n", 0, barrier.start()) + 1
            print(f"without {barrier[0][:-1]} in {path.name}, line {line}: {found or 'NOTHING FOUND'}", flush=True)
            found_all = found_all and bool(found)
    return found_all


def _race_without(programs: Path, name: str, text: str) -> str:
    """What is wrong with such a text in the place of one of the sources; nothing if nothing is found."""
    with tempfile.TemporaryDirectory() as folder:
        changed = Path(folder, "sources")
        shutil.copytree(compiler.FOLDER, changed)
        (changed / name).write_text(text, encoding="utf-8")
        try:
            for most_shared_bytes in MEMORIES:
                run_all(Sanitizer(programs, changed, most_shared_bytes, changed=name))
        except TreeparseError as error:
            return " ".join(re.sub("=+", "", str(error)).split())[:100]
    return ""


def compile_all() -> Iterator[str]:
    """A line for every kernel and architecture: its registers and what it spills."""
    for architecture in ARCHITECTURES:
        for source in sorted(set(compiler.kernels().values())):
            code, said = compiler.compile_and_report(source, architecture, "--ptxas-options=-v")
            yield f"{source.name} for {architecture}: {len(code) / 1024:.0f} KiB"
            for kernel, spilled, registers in ENTRY.findall(said):
                yield f"    {kernel}: {registers} registers, {spilled} bytes spilled"


def main() -> None:
    """Check, and leave with an error where something is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--plant",
        nargs="?",
        const="",
        metavar="FILE",
        help="also take out each barrier in turn, or those of the files in whose names this is (minutes)",
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        check(Path(folder), options.plant)


def check(programs: Path, planted: str | None) -> None:
    """Check, with compiled programs in a folder."""
    find_races(programs)
    try:
        print(f"NVRTC {'.'.join(map(str, compiler.version()))}")
    except (ImportError, RuntimeError) as error:  # of the bindings, which find no library
        print(f"NVRTC is not installed (pip install 'treeparse[cuda]' nvidia-cuda-nvrtc): {error}")
    else:
        for line in compile_all():
            print(line)
    if planted is not None and not plant(programs, planted):
        raise SystemExit("A barrier could be taken out without anything found.")


if __name__ == "__main__":
    main()
