"""``treeparse warm``: compile all kernels, when an image is built or before the first run."""

import argparse
import gc
import logging
import os
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import chain, cycle, product
from multiprocessing.pool import ThreadPool
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import torch

from treeparse import terminal, trees
from treeparse.cli.common import positive
from treeparse.data.prefetch import process_context
from treeparse.device import compiler, cuda
from treeparse.errors import TreeparseError
from treeparse.kernels.compile import without_shipped_code
from treeparse.model import Parser, ParserConfig
from treeparse.model.config import LinearConfig
from treeparse.nn import LabelBiaffine
from treeparse.nn.int8 import Int8LSTM, Int8Products, has_int8
from treeparse.nn.packed import FloatProducts, Packing, through_packed_layers
from treeparse.progress import Bar
from treeparse.sentence import Sentence
from treeparse.training.linear.learner import LinearLearner
from treeparse.training.settings.config import LinearLearningConfig

EPILOG = """examples:
  treeparse warm
  treeparse warm --jobs 4
  NUMBA_CACHE_DIR=/var/cache/treeparse treeparse warm

Compiled kernels are cached in the first of these folders that is writable: NUMBA_CACHE_DIR, the installation, the
user's cache; every process that can read the folder loads them from there. They suit this machine's kind of processor;
where another kind reads the folder, it compiles its own beside them. The package treeparse-kernels has kernels for all
recent x86 processors, which are used where this command has not been run: the same bits, up to 1.6 times the time.
Kernels for the CUDA devices of this machine, if any, are compiled too, into the user's cache."""


def _score(lstm: Any) -> None:
    """Compute a layer of a parser for two words, in single precision and in eight bits, and the labels of an arc."""
    with torch.inference_mode():
        layers = [FloatProducts(lstm, lstm), *([Int8Products(Int8LSTM(lstm), Int8LSTM(lstm))] if has_int8() else ())]
        for layer in layers:
            through_packed_layers([layer], torch.zeros(2, 4), Packing.of(torch.tensor([2]), 2))
        LabelBiaffine(4, 2).of_pairs(torch.zeros(2, 4), torch.zeros(2, 4), torch.tensor([0]), torch.tensor([1]))


def _learn(trees: Any) -> None:
    """Make a step of learning of a linear parser of one sentence, and parse the sentence."""
    sentence = Sentence(("a", "b"), upos=("A", "B"), heads=(0, 1), labels=("root", "c"))
    parser = Parser.build(ParserConfig(trees=trees, scorer=LinearConfig(bits=4, label_bits=4)), [sentence]).eval()
    for algorithm in ("mira", "log_linear"):
        LinearLearner(parser, LinearLearningConfig(algorithm)).learn(parser.collate([sentence]))
    parser.scorer(parser.collate([sentence])).labels.from_heads(0, 2)


def _multiply(p: Any) -> None:
    """Differentiate the marginals of a distribution, in the precision of its scores."""
    p.flat.sums_as_given.hessian_vector_products([part.unsqueeze(0) for part in p.flat.given])


def _sum_in_logs(p: Any) -> None:
    """Compute what sums of large scores need: log partitions, products, an entropy and a cross-entropy."""
    flat, items = p.flat, p.flat.lengths.new_zeros(1)
    flat.family.products_in_logs(flat.parts, flat.lengths, flat.parts)
    for other in (p, p.with_scores(p.scores + 1)):
        flat.sums.code_lengths(other.flat.sums, items)


# The calls that need kernels; kernels that calls share are compiled once. The first call is small, so that an error of
# the cache comes soon. Calls whose kernels share most functions are neighbours, because each process compiles a
# function once; a second process begins at the end.
CALLS: tuple[tuple[str, Callable[[Any], object]], ...] = (
    ("single-root", lambda p: p.enumerate_support()),
    ("single-root", lambda p: p.sample_without_replacement(2, method="trie")),
    ("single-root", lambda p: p.sample()),
    ("single-root", lambda p: p.covariance(p.scores, p.scores)),
    ("single-root", lambda p: p.log_marginals),
    ("single-root", _sum_in_logs),
    ("scorer", _score),
    ("labeled", lambda p: p.topk(2)),
    ("several-roots", lambda p: p.log_prob(p.mode)),
    ("single-root", lambda p: p.log_prob(p.mode)),
    ("projective", lambda p: p.log_prob(p.mode)),
    ("projective", lambda p: p.sample()),
    ("projective", lambda p: p.covariance(p.scores, p.scores)),
    ("projective", lambda p: p.topk(2)),
    ("projective", lambda p: p.log_marginals),
    ("projective", _sum_in_logs),
    *(
        (kind, call)  # kernels that take other parts in single precision, too, are compiled for both
        for kind in ("siblings", "siblings-64", "second-order", "second-order-64")
        for call in (lambda p: p.log_prob(p.mode), _multiply)
    ),
    ("siblings", lambda p: p.sample()),
    ("siblings", lambda p: p.log_marginals),
    *((kind, lambda p: p.mode) for kind in ("crossing-siblings", "crossing-siblings-64")),
    *((kind, _learn) for kind in ("linear", "linear-siblings")),
    ("single-root", lambda p: p.topk(2)),
)


@dataclass
class Kernels:
    """The kernels that calls needed, by name, the folders of the cache, and why they cannot be cached, if so."""

    compiled: set[str] = field(default_factory=set)
    cached: set[str] = field(default_factory=set)
    folders: set[str] = field(default_factory=set)
    fault: str | None = None

    def take(self, record: logging.LogRecord) -> bool:
        """Read a record that the kernels log; as a filter, drop the record."""
        if record.levelno >= logging.WARNING:
            self.fault = record.getMessage()
        elif isinstance(record.args, dict) and "kernel" in record.args:
            kernels = self.compiled if record.levelno == logging.INFO else self.cached
            kernels.add(str(record.args["kernel"]))
            self.folders.add(str(record.args["folder"]))
        return False

    def add(self, more: "Kernels") -> None:
        """Merge another call's kernels into this set; a kernel that one call compiled is cached for the next call."""
        self.compiled |= more.compiled
        self.cached = (self.cached | more.cached) - self.compiled
        self.folders |= more.folders
        self.fault = self.fault or more.fault


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("--jobs", type=positive, default=1, metavar="N", help="processes that compile (default: 1)")


def run(args: argparse.Namespace) -> int:
    """Make all calls that need kernels, and print how many kernels were compiled."""
    if os.environ.get("NUMBA_DISABLE_JIT", "0") != "0":
        raise TreeparseError("NUMBA_DISABLE_JIT is set, so numba compiles nothing: unset it.")
    started, kernels = time.perf_counter(), Kernels()
    with _kernels_of_calls(args.jobs) as of_calls, ThreadPoolExecutor(args.jobs) as threads:
        on_devices = _device_sources()  # imports torch, while other processes make calls
        results = chain(of_calls, threads.map(_kernels_of_device, on_devices))
        total = len(CALLS) + len(on_devices)
        with Bar(total, stream=sys.stderr, hidden=args.quiet, desc="compiling kernels") as bar:
            for result in results:
                kernels.add(result)
                if kernels.fault is not None:
                    raise TreeparseError(kernels.fault)
                bar.update()
    if not args.quiet:
        counts = f"{len(kernels.compiled)} kernels compiled, {len(kernels.cached)} were there already"
        seconds = time.perf_counter() - started
        terminal.write(f"treeparse: {counts}, in {', '.join(sorted(kernels.folders))}; {seconds:.0f} s")
    return 0


def _device_sources() -> list[tuple[Path, str]]:
    """Return the source files of CUDA kernels, each with every architecture of this machine's devices."""
    if not torch.cuda.is_available():
        return []
    try:
        compiler.version()
    except Exception as error:  # a missing package or library
        terminal.warn(f"treeparse: warning: {cuda.why_not(0, error)}")
        return []
    architectures = {cuda.architecture_of(index) for index in range(torch.cuda.device_count())}
    return list(product(sorted(set(compiler.kernels().values())), sorted(architectures)))


def _kernels_of_device(source_and_architecture: tuple[Path, str]) -> Kernels:
    """Compile a source file for an architecture, if it is not cached."""
    source, architecture = source_and_architecture
    path, name = compiler.cached_path(source, architecture), {f"{source.name} for {architecture}"}
    folders = {str(path.parent)}
    if path.exists():
        return Kernels(cached=name, folders=folders)
    compiler.machine_code(source, architecture)
    fault = None if path.exists() else f"Kernels for CUDA devices cannot be kept in {path.parent}."
    return Kernels(compiled=name, folders=folders, fault=fault)


@contextmanager
def _kernels_of_calls(jobs: int) -> Iterator[Iterable[Kernels]]:
    """Yield the kernels of each call; several processes take calls from the start and from the end in turn."""
    if jobs == 1:
        yield map(kernels_of_call, range(len(CALLS)))
        return
    context = process_context("treeparse.trees")  # torch is imported once, not once a process
    waiting, idle = deque(range(len(CALLS))), SimpleQueue[Any]()
    for _, take in zip(range(jobs), cycle((waiting.popleft, waiting.pop)), strict=False):
        idle.put((None, take))
    with ExitStack() as processes, ThreadPool(min(jobs, len(CALLS))) as threads:

        def make_call(_: int) -> Kernels:
            process, take = idle.get()
            process = process or processes.enter_context(context.Pool(1))
            try:
                return process.apply(kernels_of_call, (take(),))
            finally:
                idle.put((process, take))

        yield threads.imap_unordered(make_call, range(len(CALLS)))


def kernels_of_call(number: int) -> Kernels:
    """Make a call of `CALLS`, by its index, on a batch of one short sentence."""
    log, kernels = logging.getLogger("treeparse.kernels"), Kernels()
    level = log.level
    log.setLevel(logging.DEBUG)
    log.addFilter(kernels.take)
    try:
        kind, call = CALLS[number]
        with _rare_full_collections(), without_shipped_code():
            call(_argument(kind))
    finally:
        log.removeFilter(kernels.take)
        log.setLevel(level)
    return kernels


@contextmanager
def _rare_full_collections() -> Iterator[None]:
    """Collect garbage among young objects only, because full collections took an eighth of the compiler's time."""
    before = gc.get_threshold()
    gc.set_threshold(*before[:2], 1000)
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _argument(kind: str) -> Any:
    """Return the argument of a call: a layer, a distribution or the kind of trees of a linear parser."""
    if kind.startswith("linear"):
        return "siblings" if kind == "linear-siblings" else "projective"
    if kind == "scorer":
        return torch.nn.LSTM(4, 4)
    scores = torch.zeros(1, 4, 4)
    if kind == "projective":
        return trees.ProjectiveCRF(scores)
    others = torch.zeros(1, 4, 4, 4, dtype=torch.float64 if kind.endswith("64") else torch.float32)
    if kind.startswith("siblings"):
        return trees.SiblingCRF(scores, others)
    if kind.startswith("second-order"):
        return trees.SecondOrderCRF(scores, others, others)
    if kind.startswith("crossing-siblings"):
        return trees.NonProjectiveSiblingCRF(scores, others)
    if kind == "labeled":
        return trees.LabeledCRF(trees.NonProjectiveCRF(scores), torch.zeros(1, 4, 4, 2))
    return trees.NonProjectiveCRF(scores, single_root=kind == "single-root")
