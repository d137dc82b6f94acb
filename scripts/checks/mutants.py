"""Make small faults in the code, one at a time, and count those that the tests find.

    python -m scripts.checks.mutants --output FILE        # 40 mutants; mutants in the file are skipped
    python -m scripts.checks.mutants --again scripts/experiments/results/mutants.jsonl --output later.jsonl
        # the same ones, in today's code

A mutant is the code with one expression changed. Mutants are drawn from the packages of ``TESTS`` in turns, at most one
a function. In a copy of the repository, each runs the tests of its package until one fails. Its outcome is ``killed``,
``timed out`` (which counts as killed), or ``survived``. ``--again`` finds a mutant by its function and its line's text,
or says ``code is gone``; its exit status is 1 if a mutant survives that was killed before.
"""

import argparse
import ast
import copy
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import accumulate, zip_longest
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
OF_MODELS = (
    *("model*", "parser*", "ensemble", "encoders", "scorers", "linear_parser", "second_order_parser", "storage"),
    *("probabilities", "hub", "stream", "temperature", "pruning", "tagging", "teacher"),
)
# The tests of each package. What trees promise tests kernels, too.
TESTS = {
    "treeparse/trees": ("tests/trees/**/test_*.py",),
    "treeparse/kernels": ("tests/kernels/**/test_*.py", "tests/trees/test_contract.py"),
    "treeparse/model": tuple(f"tests/test_{name}.py" for name in OF_MODELS),
}
KEY = ("file", "function", "kind", "line", "before", "after", "occurrence")  # identify a mutant
COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    **{ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq},
    **{ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In},
}
OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    **{ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult},
    **{ast.Mod: ast.FloorDiv, ast.Pow: ast.Mult, ast.BitAnd: ast.BitOr},
}
EXTREMES = {"min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum"}
UNSEEN = ("strict", "device", "threads", "__repr__", "__str__")  # arguments and methods: a right program is the same
REPORTS = re.compile(r"warn|log\.|logging|LOG\b")  # calls whose arguments are messages
TIMED_OUT = -signal.SIGXCPU  # the status of a process that has spent its CPU time
NOT_COPIED = shutil.ignore_patterns(".git", ".venv", "runs", "*.pyc", ".*_cache")

Mutant = dict[str, Any]


def mutants_of(source: str, file: str) -> Iterator[Mutant]:
    """Yield every mutant of a module's source."""
    text, seen = source.encode(), Counter[tuple[str, ...]]()
    starts = [0, *accumulate(map(len, text.splitlines(keepends=True)))]
    for function, node, is_condition in _nodes(ast.parse(source), ()):
        for kind, mutated in _changes(node, is_condition):
            start, end = starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset
            line = text[starts[node.lineno - 1] : starts[node.lineno]].decode().strip()
            after = ast.unparse(mutated)
            after = after if isinstance(mutated, ast.stmt) else f"({after})"
            key = file, ".".join(function) or "<module>", kind, line, text[start:end].decode(), after
            seen[key] += 1
            yield {**dict(zip(KEY, (*key, seen[key]), strict=True)), "start": start}


def _nodes(node: Any, function: tuple[str, ...], is_condition: bool = False) -> Iterator[tuple[Any, Any, bool]]:
    """Yield the names of each node's functions, the node, and whether it is a condition; skip text and annotations."""
    match node:
        case ast.Raise() | ast.Assert() | ast.JoinedStr() | ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return
        case ast.keyword(arg=name) | ast.FunctionDef(name=name) if name in UNSEEN:
            return
        case ast.Call() if REPORTS.search(ast.unparse(node.func)):
            return
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            function = (*function, node.name)
    yield function, node, is_condition
    for name, value in ast.iter_fields(node):
        if name not in ("annotation", "returns", "decorator_list", "bases"):
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from _nodes(child, function, name in ("test", "ifs"))


def _changes(node: Any, is_condition: bool) -> Iterator[tuple[str, ast.AST]]:
    """Yield the kinds of changes of a node, and the changed node."""

    def changed(**fields: Any) -> Any:
        node_copy = copy.deepcopy(node)
        node_copy.__dict__.update(fields)
        return node_copy

    match node:
        case ast.Compare():
            for index, operator in enumerate(node.ops):
                ops = [*node.ops[:index], COMPARISONS[type(operator)](), *node.ops[index + 1 :]]
                yield "comparison", changed(ops=ops)
        case ast.BinOp() | ast.AugAssign() if type(node.op) in OPERATORS and not _joins(node):
            yield "arithmetic", changed(op=OPERATORS[type(node.op)]())
        case ast.Constant(value=bool()):
            yield "constant", changed(value=not node.value)
        case ast.Constant(value=int() | float() as value):
            yield "constant", changed(value=value + 1)
        case ast.BoolOp():
            yield "and, or", changed(op=ast.Or() if isinstance(node.op, ast.And) else ast.And())
        case ast.UnaryOp(op=ast.USub()):
            yield "sign", node.operand
        case ast.Name(id=name) | ast.Attribute(attr=name) if name in EXTREMES:
            yield "extreme", changed(id=EXTREMES[name], attr=EXTREMES[name])
        case ast.Call():
            for keyword in (each for each in node.keywords if each.arg not in UNSEEN):
                yield "argument", changed(keywords=[each for each in node.keywords if each is not keyword])
    if is_condition:
        yield "condition", ast.UnaryOp(ast.Not(), changed())


def _joins(node: Any) -> bool:
    """Whether an operation is one of texts or sequences."""
    operands = [getattr(node, name) for name in ("left", "right", "value") if hasattr(node, name)]
    texts = ast.JoinedStr | ast.List | ast.Tuple
    return any(isinstance(each, texts) or isinstance(getattr(each, "value", None), str | bytes) for each in operands)


def draw(root: Path, count: int, seed: int) -> list[Mutant]:
    """Draw mutants from the packages in turns: functions, at most one mutant each, and a kind before a mutant."""
    stream, drawn = random.Random(seed), []
    for package in TESTS:
        paths = sorted((root / package).rglob("*.py"))
        kinds: dict[tuple[str, str], dict[str, list[Mutant]]] = {}
        for path in paths:
            for each in mutants_of(path.read_text("utf-8"), str(path.relative_to(root))):
                function = kinds.setdefault((each["file"], each["function"]), {})
                function.setdefault(each["kind"], []).append(each)
        mutants = [stream.choice(of_kinds[stream.choice(list(of_kinds))]) for of_kinds in kinds.values()]
        stream.shuffle(mutants)
        drawn.append(mutants)
    return [each for turn in zip_longest(*drawn) for each in turn if each][:count]


def is_same(mutant: Mutant, other: Mutant) -> bool:
    """Whether two mutants are one, perhaps of two versions of the code."""
    return all(mutant[name] == other[name] for name in KEY)


def find(root: Path, mutant: Mutant) -> Mutant | None:
    """Return a mutant as the code has it now, None if the code is gone."""
    path = root / mutant["file"]
    today = mutants_of(path.read_text("utf-8"), mutant["file"]) if path.is_file() else ()
    return next((each for each in today if is_same(each, mutant)), None)


def tests_of(root: Path, file: str) -> list[str]:
    """Return the test files of a module's package: first those whose paths share the most words with the module's."""
    package = next(package for package in TESTS if file.startswith(f"{package}/"))
    words = _words(file.removeprefix(package))
    names = [str(path.relative_to(root)) for pattern in TESTS[package] for path in root.glob(pattern)]
    return sorted(names, key=lambda name: (-len(words & _words(name)), name))


def _words(path: str) -> set[str]:
    return {word[:5] for word in re.findall(r"[a-z]+", path.removesuffix(".py")) if word not in ("tests", "test")}


def run_tests(tree: Path, tests: Sequence[str], limit: int, **environment: str) -> tuple[int, str]:
    """Run tests until one fails or they have spent the limit of CPU seconds; return the exit status and the output."""
    options = ["-x", "-q", "--tb=line", "-p", "no:cacheprovider", "-m", "not slow"]
    environment = {"PYTHONPATH": str(tree), "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1", **environment}
    more: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, "start_new_session": True}
    more |= {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))}
    more |= {"cwd": tree, "env": {**os.environ, **environment}}
    process = subprocess.Popen([sys.executable, "-m", "pytest", *options, *tests], **more)
    try:
        output, _ = process.communicate(timeout=10 * limit)  # beside other work
    except subprocess.TimeoutExpired:
        return TIMED_OUT, ""
    finally:  # servers that tests started, too
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    return process.returncode, output


def outcome_of(tree: Path, mutant: Mutant, limit: int) -> Mutant:
    """Run the tests of a mutant in a copy of the repository."""
    path, start, found = tree / mutant["file"], time.monotonic(), find(tree, mutant)
    if found is None:
        return {"outcome": "code is gone"}
    original, begin, end = path.read_bytes(), found["start"], found["start"] + len(found["before"].encode())
    with tempfile.TemporaryDirectory() as cache:  # if a kernel is changed, all compiled kernels are stale
        environment = {"NUMBA_CACHE_DIR": cache} if mutant["file"].startswith("treeparse/kernels/") else {}
        try:
            path.write_bytes(original[:begin] + found["after"].encode() + original[end:])
            status, output = run_tests(tree, tests_of(tree, mutant["file"]), limit, **environment)
        finally:
            path.write_bytes(original)
    seconds = round(time.monotonic() - start)
    if status in (0, TIMED_OUT):
        return {"outcome": "survived" if status == 0 else "timed out", "seconds": seconds}
    failed = re.search(r"^(?:FAILED|ERROR) (.*?)(?: - .*)?$", output, re.MULTILINE)
    return {"outcome": "killed", "by": failed[1] if failed else f"exit status {status}", "seconds": seconds}


def _read(path: Path) -> list[Mutant]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()] if path.exists() else []


def main(options: Sequence[str] | None = None) -> None:
    """Run the tests on every mutant that the output lacks, and print the outcomes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=40, metavar="N", help="mutants (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of the draw (default: %(default)s)")
    parser.add_argument("--again", type=Path, metavar="JSONL", help="repeat the mutants of this file")
    parser.add_argument("--output", type=Path, required=True, metavar="JSONL", help="append to this file")
    parser.add_argument("--limit", type=int, default=900, metavar="SECONDS", help="CPU time (default: %(default)s)")
    arguments = parser.parse_args(options)
    mutants = _read(arguments.again) if arguments.again else draw(ROOT, arguments.count, arguments.seed)
    records, worse = _read(arguments.output), 0
    with tempfile.TemporaryDirectory() as folder:
        tree = shutil.copytree(ROOT, Path(folder) / "treeparse", ignore=NOT_COPIED)
        for number, mutant in enumerate(mutants, 1):
            record = next((each for each in records if is_same(each, mutant)), None)
            if record is None:
                record = {name: mutant[name] for name in KEY} | outcome_of(tree, mutant, arguments.limit)
                records.append(record)
                with arguments.output.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(record) + "\n")
            before = f", before: {mutant['outcome']}" if "outcome" in mutant else ""
            print(f"{number} {mutant['file']} {mutant['function']}: {record['outcome']}{before}", flush=True)
            worse += record["outcome"] == "survived" != mutant.get("outcome", "survived")
        killers = sorted({record["by"] for record in records if "::" in record.get("by", "")})
        if killers and run_tests(tree, killers, arguments.limit)[0]:
            sys.exit(f"One of these tests fails without a mutant, too: {' '.join(killers)}")
    print(", ".join(f"{count} {outcome}" for outcome, count in Counter(each["outcome"] for each in records).items()))
    if worse:
        sys.exit(f"{worse} mutants survive that were killed before.")


if __name__ == "__main__":
    main()
