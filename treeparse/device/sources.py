"""The CUDA sources: their folder, the kernels in them, and a digest that changes with any of them."""

import hashlib
import re
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent / "sources"
KERNEL = re.compile(r"^KERNEL (\w+)\(", re.MULTILINE)


@cache
def kernels() -> dict[str, Path]:
    """Return the file of every kernel, by the kernel's name."""
    files: dict[str, Path] = {}
    for path in sorted(FOLDER.glob("*.cu")):
        for name in KERNEL.findall(path.read_text(encoding="utf-8")):
            assert name not in files, f"two kernels have the name {name}"
            files[name] = path
    return files


@cache
def digest() -> str:
    """Return the digest of all sources, names included."""
    result = hashlib.sha256()
    for path in sorted(FOLDER.iterdir()):
        result.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return result.hexdigest()
