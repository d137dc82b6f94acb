"""Runs kernels under ThreadSanitizer, one OS thread a CUDA thread: two accesses that no barrier orders are found."""

import hashlib
import os
import re
import struct
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from helpers.emulator import COMPILER, HERE, LANES, OPTIONS
from torch import Tensor

from treeparse.device import compiler
from treeparse.device.launcher import Shape, words_of
from treeparse.errors import TreeparseError

SANITIZED = "-std=c++20", "-g", "-DEMULATOR_THREADS", "-fsanitize=thread"  # std::barrier is of 2020
INCLUDED = re.compile(r'^#include "(.+)"', re.MULTILINE)
PATIENCE = 60  # seconds, after which threads are taken to wait for ever
# The arguments lie in a file: of each its number of bytes and these; no bytes are a number, which follows.
MAIN = """
#include <fstream>

int main(int count, char** arguments) {
    std::vector<std::vector<char>> tensors;
    std::vector<std::uint64_t> words;
    std::fstream file(arguments[1], std::ios::in | std::ios::binary);
    for (std::int64_t size; file.read(reinterpret_cast<char*>(&size), 8);) {
        std::vector<char> bytes(size > 0 ? size : 8);
        file.read(bytes.data(), bytes.size());
        std::uint64_t word;
        std::memcpy(&word, bytes.data(), 8);
        tensors.push_back(std::move(bytes));
        words.push_back(size > 0 ? reinterpret_cast<std::uint64_t>(tensors.back().data()) : word);
    }
    int blocks = std::atoi(arguments[2]), threads = std::atoi(arguments[3]), shared_bytes = std::atoi(arguments[4]);
    const char* wrong = emulator::launch(KERNEL_NAME, blocks, threads, shared_bytes, words.data());
    file.close();
    file.open(arguments[1], std::ios::out | std::ios::binary);
    for (auto& bytes : tensors) file.write(bytes.data(), bytes.size());
    if (wrong != nullptr) fprintf(stderr, "%s\\n", wrong);
    return wrong != nullptr;
}
"""


@dataclass(frozen=True)
class Sanitizer:
    """A ``Launcher`` of tensors in CPU memory that raises where threads race.

    Args:
        programs: a folder for compiled programs, each of which is kept until a source changes that it is made of.
        sources: the folder of the CUDA sources.
        changed: the file among them on account of which kernels are run; others are not, if there is one.
    """

    programs: Path
    sources: Path = compiler.FOLDER
    most_shared_bytes: int = 1 << 18
    most_warps: int = 2
    most_blocks: int = 2
    changed: str | None = None
    runs: list[str] = field(default_factory=list)

    def launch(self, kernel: str, shape: Shape, *arguments: Tensor | float | None) -> None:
        texts = texts_of(self.sources / compiler.kernels()[kernel].name)
        if self.changed is not None and self.changed not in texts:
            return
        self.runs.append(kernel)
        program = self._program(kernel, "".join(texts.values()))
        with TemporaryDirectory() as folder:
            file = Path(folder, "arguments")
            file.write_bytes(b"".join(map(_bytes_of, arguments)))
            command = [program, file, str(shape.blocks), str(shape.warps * LANES), str(shape.shared_bytes)]
            options = {**os.environ, "TSAN_OPTIONS": "halt_on_error=1"}
            try:
                done = subprocess.run(command, env=options, capture_output=True, text=True, timeout=PATIENCE)
            except subprocess.TimeoutExpired:
                raise TreeparseError(f"{kernel}: threads wait for each other.") from None
            if done.returncode:
                raise TreeparseError(f"{kernel}: {done.stderr.strip()}")
            _read_back(file.read_bytes(), arguments)

    def _program(self, kernel: str, text: str) -> Path:
        source = self.sources / compiler.kernels()[kernel].name
        digest = hashlib.sha256(text.encode()).hexdigest()
        path = self.programs / f"{kernel}-{digest[:16]}"
        if not path.exists():
            entry = path.with_suffix(".cpp")
            lines = f'#include "{HERE / "emulator.h"}"', f'#include "{source}"', f"#define KERNEL_NAME {kernel}", MAIN
            entry.write_text("\n".join(lines), encoding="utf-8")
            subprocess.run([str(COMPILER), *OPTIONS, *SANITIZED, str(entry), "-o", str(path)], check=True)
        return path


def texts_of(source: Path) -> dict[str, str]:
    """The texts of a source and of what it includes, by name."""
    text = source.read_text(encoding="utf-8")
    found = {source.name: text}
    for name in INCLUDED.findall(text):
        found |= texts_of(source.parent / name)
    return found


def _bytes_of(argument: Tensor | float | None) -> bytes:
    if isinstance(argument, Tensor):
        return struct.pack("q", argument.nbytes) + argument.numpy().tobytes()
    return struct.pack("q", 0) + bytes(words_of((argument,)))


def _read_back(found: bytes, arguments: tuple[Tensor | float | None, ...]) -> None:
    start = 0
    for argument in arguments:
        if isinstance(argument, Tensor):
            values = np.frombuffer(found, np.uint8, argument.nbytes, start)
            argument.view(-1).view(torch.uint8).copy_(torch.from_numpy(values.copy()))
        start += argument.nbytes if isinstance(argument, Tensor) else 8
