from typing import Any

import pytest

from treeparse.errors import TreeparseError
from treeparse.nn import BiLSTMConfig


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"layers": 0}, "encoder.layers is 0, but must be at least 1"),
        ({"hidden_size": -3}, "encoder.hidden_size is -3"),
        ({"char_filters": -1}, "encoder.char_filters is -1, but must be at least 0"),
        ({"char_widths": (3, 0)}, "encoder.char_widths is 0"),
        ({"char_widths": ()}, "encoder.char_widths is empty"),
        ({"dropout": 1.0}, "encoder.dropout is 1.0, but must be from 0 to less than 1"),
        ({"recurrent_dropout": 1.5}, "encoder.recurrent_dropout is 1.5"),
        ({"word_dropout": -0.1}, "encoder.word_dropout is -0.1"),
        ({"embedding_dropout": float("nan")}, "encoder.embedding_dropout is nan"),
        ({"layers": 10**9}, "encoder.layers is 1000000000, but must be at most 1000"),
        ({"hidden_size": 10**30}, "encoder.hidden_size is 10+, but must be at most"),
        ({"char_widths": (3, 10**9)}, "encoder.char_widths is 1000000000, but must be at most"),
        ({"char_widths": (3,) * 10**5}, "the number of encoder.char_widths is 100000, but must be at most"),
        ({"tags": "upso"}, "encoder.tags names 'upso', but there are upos, xpos and feats; did you mean upos?"),
        ({"tags": ("upos", "xpos", "upos")}, "encoder.tags names a column twice"),
    ],
)
def test_impossible_settings_are_refused(settings: dict[str, Any], problem: str) -> None:
    with pytest.raises(TreeparseError, match=problem):
        BiLSTMConfig(**settings)


def test_no_characters_need_no_width() -> None:
    assert BiLSTMConfig(char_filters=0, char_widths=()).char_widths == ()


def test_one_value_in_the_place_of_several() -> None:
    scalar: Any = {"char_widths": 3, "tags": "upos, feats"}
    assert BiLSTMConfig(**scalar) == BiLSTMConfig(char_widths=(3,), tags=("upos", "feats"))
    lists: Any = {"char_widths": [3, 4], "tags": ["xpos"]}
    assert BiLSTMConfig(**lists) == BiLSTMConfig(char_widths=(3, 4), tags=("xpos",))
