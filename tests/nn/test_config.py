from typing import Any

import pytest

from treeparse.errors import TreeparseError
from treeparse.nn import BiLSTMConfig


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"layers": 0}, "encoder.layers must be at least 1, got 0"),
        ({"char_widths": (3, 0)}, "encoder.char_widths must be at least 1, got 0"),
        ({"char_widths": ()}, "encoder.char_widths must not be empty"),
        ({"dropout": 1.0}, "encoder.dropout must be from 0 to less than 1, got 1.0"),
        ({"tags": ("upso",)}, r"Unknown column 'upso' in encoder\.tags, .*; did you mean upos\?"),
        ({"tags": ("upos", "xpos", "upos")}, "encoder.tags .* got upos, xpos, upos"),
    ],
)
def test_impossible_settings_are_refused(settings: dict[str, Any], told: str) -> None:
    with pytest.raises(TreeparseError, match=told):
        BiLSTMConfig(**settings)


def test_no_characters_need_no_width() -> None:
    assert BiLSTMConfig(char_filters=0, char_widths=()).char_widths == ()


def test_lists_become_tuples() -> None:
    lists: Any = {"char_widths": [3, 4], "tags": ["xpos"]}
    assert BiLSTMConfig(**lists) == BiLSTMConfig(char_widths=(3, 4), tags=("xpos",))
