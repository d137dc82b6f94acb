import pytest
import torch

from treeparse.errors import TreeparseError
from treeparse.names import PRECISIONS, precision_named
from treeparse.nn.precision import has_bfloat16, scoring_in

CPU = torch.device("cpu")


def product_type(precision: str) -> torch.dtype:
    with scoring_in(precision_named(precision), CPU):
        return (torch.ones(2, 2) @ torch.ones(2, 2)).dtype


def test_products_are_in_the_precision() -> None:
    assert product_type("32") == torch.float32
    assert product_type("bf16") == torch.bfloat16
    with torch.autocast("cpu", torch.bfloat16):
        assert product_type("32") == torch.bfloat16


@pytest.mark.parametrize("instructions", [{}, {"avx512_bf16": True}, {"amx_bf16": True}, {"avx512_bf16": False}])
def test_auto_asks_for_the_instructions(instructions: dict[str, bool], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx2": True, **instructions}, raising=False)
    assert has_bfloat16(CPU) == any(instructions.values())
    assert (product_type("auto") == torch.bfloat16) == any(instructions.values())
    assert not has_bfloat16(torch.device("meta"))


def test_names() -> None:
    assert [precision_named(name) for name in PRECISIONS] == list(PRECISIONS)
    with pytest.raises(
        TreeparseError, match="Unknown precision 'bf61': choose one of 32, bf16, int8, auto; did you mean bf16"
    ):
        precision_named("bf61")
