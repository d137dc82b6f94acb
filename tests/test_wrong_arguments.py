"""Arguments of wrong types, shapes and sizes: a function gives a result, or says in a sentence what is wrong."""

import inspect
from itertools import product
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.wrong_arguments import Call, calls, fault_of, odd_values, small_parser

from treeparse import LabeledCRF, NonProjectiveCRF, Parser, ProjectiveCRF, SecondOrderCRF, SiblingCRF, TreeparseError
from treeparse.trees import Mixture, NonProjectiveSiblingCRF

CALLS = calls(small_parser())
ODD = odd_values()
# Labelled trees are tensors or pairs, and indices and shapes many things: their own checks say more.
OWN_CHECKS = {"LabeledCRF.log_prob", "LabeledCRF.score", "Mixture.log_prob", "Mixture.score"}
CLASSES = (
    NonProjectiveCRF,
    ProjectiveCRF,
    SiblingCRF,
    SecondOrderCRF,
    NonProjectiveSiblingCRF,
    LabeledCRF,
    Mixture,
    Parser,
)


@pytest.mark.parametrize("call", CALLS, ids=[call.name for call in CALLS])
def test_right_arguments_are_taken(call: Call) -> None:
    if call.name != "from_pretrained":  # of a folder that there is not
        assert call.function(**call.arguments) is not None


def test_every_function_that_is_tried_checks_its_arguments() -> None:
    for kind, call in product(CLASSES, CALLS):
        name = call.name.rpartition(".")[2]
        member = inspect.getattr_static(kind, name, None)
        function = getattr(member, "__func__", member)  # of a classmethod
        if name in ("__getitem__", "expand") or not getattr(function, "__module__", "").startswith("treeparse"):
            continue
        where = f"{kind.__name__}.{name}"
        assert hasattr(function, "__wrapped__") or where in OWN_CHECKS, where


@pytest.mark.filterwarnings("ignore")
@settings(
    max_examples=2000, derandomize=True, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow]
)
@given(st.data())
def test_wrong_arguments_are_told_in_a_sentence(data: st.DataObject) -> None:
    call = data.draw(st.sampled_from(CALLS))
    names = data.draw(st.lists(st.sampled_from(sorted(call.arguments)), min_size=1, max_size=2, unique=True))
    changes = {name: ODD[data.draw(st.sampled_from(sorted(ODD)))] for name in names}
    assert fault_of(call, changes) is None


def test_faults_are_found() -> None:
    def fail(kind: Any) -> None:
        raise kind

    def fault(error: Exception) -> str | None:
        return fault_of(Call("fail", fail, {"kind": None}), {"kind": error})

    assert fault(TreeparseError("A count must be 1 or more, got 0.")) is None
    assert fault(TreeparseError("kind must be 1 or more.")) is None
    assert fault(KeyError("text")) == "KeyError: 'text'"
    for message in ("no sentence", "No end", "Two\nlines.", "An escape \x1b[31m.", f"Long {'x' * 500}."):
        assert str(fault(TreeparseError(message))).startswith("not a sentence")
