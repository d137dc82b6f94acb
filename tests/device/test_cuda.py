"""The loader and launcher of CUDA kernels, with a driver in the place of NVIDIA's that runs them by the emulator."""

import ctypes
import inspect
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from helpers.emulator import Emulator

from treeparse import NonProjectiveCRF, TreeparseError
from treeparse.device import compiler, cuda, nonprojective
from treeparse.device.launcher import Shape, words_of
from treeparse.trees import families
from treeparse.trees.families.arc_families import NonprojectiveInTorch
from treeparse.trees.families.on_cuda import NonprojectiveOnCuda

SHARED_BYTES = 1500
LANES = 32
LAUNCH_ARGUMENTS = 11  # the kernel, six sizes, shared bytes, the stream, the arguments' places, and none besides


class Status(int):
    """What every function of the driver begins its answer with."""

    name = "CUDA_ERROR_OUT_OF_MEMORY"


class Driver:
    """The functions of ``cuda.bindings.driver`` that the launcher calls, and what they were called with."""

    CUdevice_attribute = SimpleNamespace(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN="shared bytes")
    CUfunction_attribute = SimpleNamespace(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES="dynamic shared bytes")

    def __init__(self) -> None:
        self.status = Status(0)
        self.context: object = None
        self.loaded: list[bytes] = []
        self.shapes: list[Shape] = []
        self.streams: list[int] = []

    def cuDeviceGet(self, index: int) -> tuple[Status, str]:
        return self.status, f"device {index}"

    def cuDevicePrimaryCtxRetain(self, device: str) -> tuple[Status, str]:
        return self.status, f"context of {device}"

    def cuCtxSetCurrent(self, context: str) -> tuple[Status]:
        self.context = context
        return (self.status,)

    def cuDeviceGetAttribute(self, attribute: str, device: str) -> tuple[Status, int]:
        assert (attribute, device) == ("shared bytes", "device 3")
        return self.status, SHARED_BYTES

    def cuModuleLoadData(self, code: bytes) -> tuple[Status, bytes]:
        self.loaded.append(code)
        return self.status, code

    def cuModuleGetFunction(self, module: bytes, name: bytes) -> tuple[Status, str]:
        assert module.decode() == f"{compiler.kernels()[name.decode()].stem} for sm_90"
        return self.status, name.decode()

    def cuFuncSetAttribute(self, function: str, attribute: str, value: int) -> tuple[Status]:
        assert (attribute, value) == ("dynamic shared bytes", SHARED_BYTES)
        return (self.status,)

    def cuLaunchKernel(self, function: str, *sizes_and_rest: int) -> tuple[Status]:
        assert self.context == "context of device 3"
        assert len(sizes_and_rest) == LAUNCH_ARGUMENTS - 1
        *sizes, stream, places, extra = sizes_and_rest
        blocks, *ones, threads, one, another, shared_bytes = sizes
        assert (*ones, one, another, extra) == (1, 1, 1, 1, 0)
        assert threads % LANES == 0
        self.streams.append(stream)
        self.shapes.append(Shape(blocks, threads // LANES, shared_bytes))
        count = (
            compiler.kernels()[function].read_text(encoding="utf-8").split(f"{function}(")[1].split(")")[0].count(",")
        )
        pointers = (ctypes.c_void_p * (count + 1)).from_address(places)
        words = [ctypes.c_uint64.from_address(pointer or 0).value for pointer in pointers]
        Emulator().launch(function, self.shapes[-1], *words)
        return (self.status,)


def test_the_driver_takes_as_many_arguments() -> None:
    """NVIDIA's bindings begin their functions' documentation with the signature."""
    bindings: Any = pytest.importorskip("cuda.bindings.driver")
    names = [name for name in vars(Driver) if name.startswith("cu")]
    assert len(names) == 8
    for name in names:
        own = inspect.signature(getattr(Driver, name)).parameters
        count = LAUNCH_ARGUMENTS if name == "cuLaunchKernel" else len(own) - 1
        assert getattr(bindings, name).__doc__.splitlines()[0].count(",") == count - 1


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Driver:
    """Such a driver, and a torch with four devices, the fourth of which is in the CPU's memory."""
    found = Driver()

    @contextmanager
    def guard(device: torch.device) -> Iterator[None]:
        assert device == torch.device("cuda", 3)
        yield
        found.context = None

    properties = SimpleNamespace(multi_processor_count=2)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda index: (9, 0))
    monkeypatch.setattr(torch.cuda, "device", guard)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: properties)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: SimpleNamespace(cuda_stream=77))
    monkeypatch.setattr(
        compiler, "machine_code", lambda source, architecture: f"{source.stem} for {architecture}".encode()
    )
    return found


def test_kernels_are_launched_with_their_arguments(driver: Driver) -> None:
    launcher = cuda.CudaLauncher(3, driver)
    assert len(driver.loaded) == len(set(compiler.kernels().values()))
    scores = torch.randn(20, 9, 9, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    lengths = torch.arange(20) % 8 + 1
    options: Any = {"single_root": True}
    for count in (9, 5):  # words: too many for the shared memory, and not
        own = scores[:, :count, :count], lengths.clamp(max=count - 1)
        found = nonprojective.log_partition_and_marginals(*own, **options, launcher=launcher)
        expected = nonprojective.log_partition_and_marginals(*own, **options, launcher=Emulator())
        for pair in zip(found, expected, strict=True):
            assert torch.equal(*pair)
    assert [shape.blocks for shape in driver.shapes] == [8, 20]
    assert [0 < shape.shared_bytes <= SHARED_BYTES for shape in driver.shapes] == [False, True]
    assert driver.streams == [77, 77]


def test_what_the_driver_refuses_is_an_error(driver: Driver) -> None:
    launcher = cuda.CudaLauncher(3, driver)
    driver.status = Status(2)
    scores = torch.zeros(1, 2, 2, dtype=torch.float64)
    with pytest.raises(TreeparseError, match="cuCtxSetCurrent failed on cuda:3: CUDA_ERROR_OUT_OF_MEMORY"):
        nonprojective.log_partition(scores, torch.tensor([1]), single_root=True, launcher=launcher)


@pytest.fixture
def fresh_launchers() -> Iterator[None]:
    """None is known of any device, before and after."""
    caches = cuda.launcher_of, cuda.launcher_or_none
    for each in caches:
        each.cache_clear()
    yield
    for each in caches:
        each.cache_clear()


@pytest.mark.usefixtures("fresh_launchers")
def test_without_the_compiler_the_torch_form_serves_and_this_is_said_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(name: str) -> None:
        raise ImportError(f"No module named {name!r}")

    monkeypatch.setattr(cuda, "import_module", fail)
    device = torch.device("cuda", 0)
    with caplog.at_level(logging.WARNING, "treeparse.device"):
        for _ in range(2):
            assert families.nonprojective(device, single_root=True) == NonprojectiveInTorch(True)
    (record,) = caplog.records
    assert "cuda:0" in record.getMessage()
    assert "No module named 'cuda.bindings.driver'. Kernels need" in record.getMessage()
    with pytest.raises(ImportError):
        families.nonprojective(device, single_root=True, backend="cuda")


@pytest.mark.usefixtures("fresh_launchers")
def test_cuda_tensors_take_the_kernels(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda, "import_module", lambda name: driver)
    for backend in (None, "cuda"):
        family = families.nonprojective(torch.device("cuda", 3), single_root=False, backend=backend)
        assert isinstance(family, NonprojectiveOnCuda) and family.crossing
        assert family.launcher is cuda.launcher_of(3)
        assert not family.single_root
    family = families.nonprojective(torch.device("cuda", 3), single_root=False, backend="torch")
    assert family == NonprojectiveInTorch(False)


def test_scores_elsewhere_cannot_take_them() -> None:
    with pytest.raises(TreeparseError, match="on a CUDA device, got 'cpu'"):
        NonProjectiveCRF(torch.zeros(3, 3), backend="cuda")


def test_machine_code_is_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    source, compiled = next(iter(compiler.kernels().values())), []

    def compile_source(source: Path, architecture: str) -> bytes:
        compiled.append(architecture)
        return f"{architecture}, {len(compiled)}".encode()

    monkeypatch.setattr(compiler, "compile_source", compile_source)
    monkeypatch.setattr(compiler, "version", lambda: (13, 0))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert [compiler.machine_code(source, "sm_90") for _ in range(2)] == [b"sm_90, 1"] * 2
    assert compiler.machine_code(source, "sm_80") == b"sm_80, 2"
    monkeypatch.setattr(compiler, "version", lambda: (13, 1))
    assert compiler.machine_code(source, "sm_90") == b"sm_90, 3"
    monkeypatch.setattr(compiler, "sources_digest", lambda: "other sources")
    assert compiler.machine_code(source, "sm_90") == b"sm_90, 4"
    assert len(list((tmp_path / "cache" / "treeparse").iterdir())) == 4
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))  # where nothing can be kept
    assert [compiler.machine_code(source, "sm_90") for _ in range(2)] == [b"sm_90, 5", b"sm_90, 6"]


def test_the_digest_depends_on_every_source(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for path in compiler.FOLDER.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    monkeypatch.setattr(compiler, "FOLDER", tmp_path)
    digests = {compiler.sources_digest.__wrapped__()}
    for path in sorted(tmp_path.iterdir()):
        path.write_bytes(path.read_bytes() + b" ")
        digests.add(compiler.sources_digest.__wrapped__())
    assert len(digests) == 1 + len(list(tmp_path.iterdir())) > 5


def test_a_source_that_does_not_compile_is_an_error(tmp_path: Path) -> None:
    pytest.importorskip("cuda.bindings.nvrtc")
    source = tmp_path / "broken.cu"
    source.write_text("KERNEL broken(double x) { x = ; }", encoding="utf-8")
    with pytest.raises(TreeparseError, match=r"cannot compile broken\.cu for sm_90 .*error"):
        compiler.compile_source(source, "sm_90")
    source.write_text('extern "C" __global__ void fine(double* x) { *x = 1.0; }', encoding="utf-8")
    assert compiler.compile_source(source, "sm_90")[:4] == b"\x7fELF"


def test_too_little_shared_memory_is_found_by_the_emulator() -> None:
    scores, lengths = torch.zeros(1, 9, 9, dtype=torch.float64), torch.tensor([8])
    log_z = torch.empty(1, dtype=torch.float64)
    with pytest.raises(AssertionError, match="past the end of its shared memory"):
        Emulator().launch("nonprojective_log_partition", Shape(1, 2, 64), scores, lengths, 1, 9, 1, None, 8, log_z)


def test_numbers_are_passed_as_they_are() -> None:
    words = words_of((-1, True, None, 0.1, torch.zeros(2)))
    assert list(words)[:3] == [2**64 - 1, 1, 0]
    assert np.array(words[3], np.uint64).view(np.float64) == 0.1
