"""What is the same to the last bit, and what only to the last digits, as the README promises."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from helpers.forked import COMMAND, Forks
from helpers.tree_cases import TORCH, Case, Distribution, every_case_and_order, generator
from torch import Tensor

from treeparse.cli.main import main
from treeparse.data.nbest import read_nbest

LENGTHS = (4, 1, 0, 3, 2)
AS_IT_IS: dict[str, list[str]] = {"again": [], "two jobs": ["--jobs", "2"], "two threads": ["--threads", "2"]}
OTHER_BATCHES = {"small batches": ["--batch-words", "20"], "small chunks": ["--chunk", "3"]}
NUMBER = re.compile(r"\d+\.\d+(?:e-?\d+)?")
Write = Callable[..., bytes]


@pytest.fixture
def threads() -> Iterator[Callable[[int], None]]:
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


def values(p: Distribution, seeds: list[int]) -> Iterator[Tensor]:
    """What is computed of each item ``(B, ...)``."""
    columns = p.mode, *p.topk(3), p.sample((2,), generator=list(map(generator, seeds)))
    trees = [part for each in columns for part in ([each] if isinstance(each, Tensor) else each)]
    for value in (p.log_partition, p.marginals, *trees):
        yield value.detach()


def cut(value: Tensor, item: int, batch: int, words: int) -> Tensor:
    """One item's value without padding."""
    axis = next(axis for axis, size in enumerate(value.shape) if size == batch)
    own = value.select(axis, item)
    for axis in range(own.dim()):
        if own.shape[axis] == max(LENGTHS) + 1 and words < max(LENGTHS):
            own = own.narrow(axis, 0, words + 1)
    return own


@every_case_and_order
def test_an_item_has_the_same_bits_in_any_batch_and_with_any_threads(
    case: Case, threads: Callable[[int], None]
) -> None:
    """Entropies and expectations are sums over all parts of a batch's shape, and differ in their last digits."""
    lengths, seeds = torch.tensor(LENGTHS), list(range(len(LENGTHS)))
    parameters = case.parameters(max(LENGTHS), seed=1, batch=(len(LENGTHS),), scale=3.0)
    threads(1)
    whole = list(values(case.make(parameters, lengths), seeds))
    threads(2)
    for found, expected in zip(values(case.make(parameters, lengths), seeds), whole, strict=True):
        assert torch.equal(found, expected)
    if case.kind == TORCH:
        return  # torch chooses the order of sums by the shape of the batch
    entropies = case.make(parameters, lengths).entropy()
    for item, words in enumerate(LENGTHS):
        own = [part.unsqueeze(0) for part in case.of_item(parameters, item, words)]
        entropy = case.make(own, lengths[item : item + 1]).entropy()
        torch.testing.assert_close(entropy, entropies[item : item + 1], rtol=0, atol=1e-13)
        alone = values(case.make(own, lengths[item : item + 1]), seeds[item : item + 1])
        for found, expected in zip(alone, whole, strict=True):
            here = found.select(next(axis for axis, size in enumerate(found.shape) if size == 1), 0)
            assert torch.equal(here, cut(expected, item, len(LENGTHS), words)), (item, found.shape)


@pytest.fixture(scope="session")
def inputs(trained_config: Path) -> tuple[str, str]:
    """A trained model and a treebank."""
    return str(trained_config.parent / "run"), str(trained_config.parent / "dev.conllu")


@pytest.fixture
def written(inputs: tuple[str, str], tmp_path: Path) -> Write:
    """Runs a command over the model and returns the bytes of its output."""

    def write(command: str, *options: str, suffix: str = ".conllu") -> bytes:
        output = tmp_path / f"out{suffix}"
        arguments = [command, "-q", *inputs, "-o", str(output), *options]
        assert main(arguments) == 0
        return output.read_bytes()

    return write


COMMANDS: dict[str, tuple[str, list[str], str]] = {
    "predict": ("predict", ["--probabilities"], ".conllu"),
    "kbest": ("kbest", ["-k", "3"], ".jsonl"),
    "sample": ("sample", ["-k", "3"], ".jsonl"),
}
every_command = pytest.mark.parametrize(("command", "options", "suffix"), COMMANDS.values(), ids=COMMANDS)


@every_command
def test_outputs_are_the_same_bytes(
    command: str, options: list[str], suffix: str, inputs: tuple[str, str], written: Write, forks: Forks, tmp_path: Path
) -> None:
    first = written(command, *options, suffix=suffix)
    for more in AS_IT_IS.values():
        assert written(command, *options, *more, suffix=suffix) == first
    forked = tmp_path / f"forked{suffix}"  # by a process whose strings have other hashes
    arguments = [command, "-q", *inputs, "-o", forked, *options]
    assert forks.run(COMMAND, *arguments).returncode == 0
    assert forked.read_bytes() == first


@every_command
@pytest.mark.parametrize("more", OTHER_BATCHES.values(), ids=OTHER_BATCHES)
def test_other_batches_change_last_digits_alone(
    command: str, options: list[str], suffix: str, more: list[str], written: Write, tmp_path: Path
) -> None:
    if suffix == ".conllu":
        first, other = (written(command, *options, *each).decode() for each in ([], more))
        assert NUMBER.sub("#", other) == NUMBER.sub("#", first)
        numbers = (list(map(float, NUMBER.findall(text))) for text in (other, first))
        for found, expected in zip(*numbers, strict=True):
            assert found == pytest.approx(expected, rel=1e-4, abs=1.0001e-4)  # one in the last of four digits
        return
    lists: list[Any] = []
    for each in ([], more):
        (tmp_path / "lists.jsonl").write_bytes(written(command, *options, *each, suffix=suffix))
        lists.append(list(read_nbest(tmp_path / "lists.jsonl")))
    for found, expected in zip(*lists, strict=True):
        assert [parse.heads for parse in found.parses] == [parse.heads for parse in expected.parses]
        for one, other in zip(found.parses, expected.parses, strict=True):
            assert one.log_prob == pytest.approx(other.log_prob, abs=1e-4)
