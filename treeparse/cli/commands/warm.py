"""``treeparse warm``: compile all kernels, when an image is built or before the first run."""

import argparse
import gc
import itertools
import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import torch

from treeparse import terminal, trees
from treeparse.data.prefetch import process_context
from treeparse.device import compiler, cuda
from treeparse.errors import TreeparseError
from treeparse.kernels.compile import FOLDER, LASTS, NOT_CACHED
from treeparse.model import Parser, ParserConfig
from treeparse.model.parser_config import LinearConfig
from treeparse.nn import LabelBiaffine
from treeparse.nn.int8 import Int8LSTM, Int8Products, has_int8
from treeparse.nn.packed import FloatProducts, Packing, through_packed_layers
from treeparse.progress import Bar
from treeparse.sentence import Sentence
from treeparse.training.linear_model import LinearLearner
from treeparse.training.train_config import LinearLearningConfig

EPILOG = """examples:
  treeparse warm --quiet
  NUMBA_CACHE_DIR=/var/cache/treeparse treeparse warm

Compiled kernels are cached in the first of these folders that is writable: NUMBA_CACHE_DIR, the installation, the
user's cache; every process that can read the folder loads them from there. They suit this machine's kind of processor;
another kind compiles its own beside them.
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
    batched = p.batched
    batched.family.hessian_vector_product(batched.original_parts, batched.lengths, batched.original_parts)


def _sum_in_logs(p: Any) -> None:
    """Compute the sums and products of scores whose weights underflow."""
    scores = torch.zeros_like(p.scores)
    scores[..., 1, 2] = scores[..., 2, 1] = 2e3  # two words that prefer each other, which no tree allows
    large = p.with_scores(scores)
    large.log_prob(large.mode)
    _multiply(large)


# The calls that need kernels. Calls of one family are apart, so that two processes rarely compile the same function.
# Kernels that take other parts in single precision, too, are compiled for both.
CALLS: tuple[tuple[str, Callable[[Any], object]], ...] = (
    ("single-root", lambda p: p.sample_without_replacement(2, method="trie")),
    ("projective", lambda p: p.log_prob(p.mode)),
    ("projective", lambda p: p.sample_without_replacement(2, method="trie")),
    ("projective", lambda p: p.covariance(p.scores, p.scores)),
    ("projective", lambda p: p.topk(2)),
    ("projective", lambda p: p.log_marginals),
    ("projective", _sum_in_logs),
    ("projective", lambda p: p.sample()),
    ("crossing-siblings", lambda p: p.mode),
    ("labeled", lambda p: p.topk(2)),
    ("siblings", lambda p: p.log_prob(p.mode)),
    ("single-root", lambda p: p.sample()),
    ("siblings", _multiply),
    ("single-root", lambda p: p.log_marginals),
    ("siblings", lambda p: p.sample()),
    ("single-root", lambda p: p.covariance(p.scores, p.scores)),
    ("second-order", lambda p: p.log_prob(p.mode)),
    ("crossing-siblings-64", lambda p: p.mode),
    ("second-order", _multiply),
    ("linear", _learn),
    ("siblings-64", lambda p: p.log_prob(p.mode)),
    ("several-roots", lambda p: p.log_prob(p.mode)),
    ("second-order-64", lambda p: p.log_prob(p.mode)),
    ("single-root", _sum_in_logs),
    ("siblings-64", _multiply),
    ("linear-siblings", _learn),
    ("second-order-64", _multiply),
    ("single-root", lambda p: p.enumerate_support()),
    ("siblings", lambda p: p.log_marginals),
    ("single-root", lambda p: p.log_prob(p.mode)),
    ("single-root", lambda p: p.topk(2)),
    ("scorer", _score),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments: none."""


def run(args: argparse.Namespace) -> int:
    """Make all calls that need kernels, and print how many functions were compiled."""
    if os.environ.get("NUMBA_DISABLE_JIT", "0") != "0":
        raise TreeparseError("NUMBA_DISABLE_JIT is set, so numba compiles nothing: unset it.")
    if not LASTS:
        raise TreeparseError(NOT_CACHED)
    started, before, on_devices = time.perf_counter(), _compiled(), _device_sources()
    # The first call takes a sixth of all the time. Full collections of garbage took an eighth of the compiler's time.
    pool = ProcessPoolExecutor(
        min(os.cpu_count() or 1, 4), process_context(__name__), gc.set_threshold, (700, 10, 1000)
    )
    total = len(CALLS) + len(on_devices)
    with Bar(total, stream=sys.stderr, hidden=args.quiet, desc="compiling kernels") as bar, pool:
        for _ in pool.map(_call, range(len(CALLS))):
            bar.update()
        for source, architecture in on_devices:
            compiler.machine_code(source, architecture)
            bar.update()
    if missing := [path for path in itertools.starmap(compiler.cached_path, on_devices) if not path.exists()]:
        raise TreeparseError(f"Kernels for CUDA devices cannot be cached in {missing[0].parent}: make it writable.")
    if not args.quiet:
        counts = f"{len(_compiled() - before)} functions of kernels compiled, {len(before)} were there already"
        terminal.write(f"treeparse: {counts}, in {FOLDER}; {time.perf_counter() - started:.0f} s")
    return 0


def _compiled() -> set[Path]:
    """Return the files of compiled functions."""
    return {*FOLDER.rglob("*.nbc")}


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
    return list(itertools.product(sorted(set(compiler.kernels().values())), sorted(architectures)))


def _call(index: int) -> None:
    """Make one of the calls that need kernels, in a worker process."""
    kind, call = CALLS[index]
    call(_argument(kind))


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
