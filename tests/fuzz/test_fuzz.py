"""Every target for some seconds, what once failed, and that the checks themselves can fail."""

import dataclasses

import pytest
import torch
from helpers.tree_cases import NUMBA, Case, Kind
from hypothesis import strategies as st

from fuzz import files, scores
from fuzz.mutations import MUTATIONS, Mutation, mutated
from fuzz.target import Target, run
from fuzz.targets import TARGETS
from treeparse import NonProjectiveCRF
from treeparse.data import conllu

SECONDS = 60.0  # of all targets
SEED = 1


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_hostile_input(target: Target, one_thread: None) -> None:
    seconds = SECONDS * target.share / sum(each.share for each in TARGETS)
    assert run(target, seconds, SEED) > 0


@pytest.mark.parametrize("name", files.FORMATS)
def test_files_without_a_fault_are_read(name: str) -> None:
    for data in files.FORMATS[name].seeds():
        assert files.check_file(name, data) is None


@pytest.mark.parametrize("name", files.FORMATS)
def test_what_once_failed(name: str) -> None:
    for path in files.failed(name):
        files.check_file(name, path.read_bytes())


def test_every_change_changes_something() -> None:
    (data, *_) = files.FORMATS["treebank"].seeds()
    for kind in MUTATIONS:
        assert mutated(data, [Mutation(kind, 0.4, 0.7)]) != data


def test_a_wrong_sum_is_found() -> None:
    """Scores that are off by a hundred millionth."""
    kind = Kind("wrong", lambda arcs, *rest, **options: NonProjectiveCRF(1.00000001 * arcs, *rest, **options), True)
    item = scores.Item("normal", words=3, magnitude=0.0, forbidden=0.0, seed=1)
    case = Case(single_root=True, kind=NUMBA)
    scores.check_digits(case, item.parameters(case, torch.float64), seed=1)
    with pytest.raises(AssertionError, match="is off by"):
        scores.check_digits(dataclasses.replace(case, kind=kind), item.parameters(case, torch.float64), seed=1)


def test_a_traceback_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise KeyError("HEAD")

    monkeypatch.setattr(conllu, "parse_conllu", broken)
    target = Target("files", st.just(files.Changed("treebank", 0, [])), files.check)
    with pytest.raises(KeyError):
        run(target, 0.0, SEED)
