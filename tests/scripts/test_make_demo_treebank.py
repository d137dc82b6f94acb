"""The demo treebank is what its script draws: valid trees, a tenth of them not projective."""

from pathlib import Path

import pytest
from scripts.support.demo_grammar.sentences import DemoSentence
from scripts.support.make_demo_treebank import SIZES, draw_splits, to_conllu

from treeparse.data.conllu import load_treebank
from treeparse.sentence import nonprojective_words

DATA = Path(__file__).parents[2] / "data"


@pytest.fixture(scope="module")
def splits() -> dict[str, list[DemoSentence]]:
    return draw_splits()


@pytest.mark.parametrize("split", SIZES)
def test_committed_files_are_what_the_script_draws(splits: dict[str, list[DemoSentence]], split: str) -> None:
    drawn = to_conllu(split, splits[split])
    assert (DATA / f"demo-{split}.conllu").read_bytes() == drawn.encode()
    assert len(splits[split]) == SIZES[split]


@pytest.mark.parametrize("split", SIZES)
def test_trees_are_valid_and_a_tenth_is_not_projective(split: str) -> None:
    trees = [item.words.heads for item in load_treebank([DATA / f"demo-{split}.conllu"])]
    crossing = sum(bool(nonprojective_words(heads)) for heads in trees if heads is not None)
    assert 0.05 <= crossing / len(trees) <= 0.15


def test_no_sentence_stands_twice(splits: dict[str, list[DemoSentence]]) -> None:
    texts = [item.text for sentences in splits.values() for item in sentences]
    assert len(set(texts)) == len(texts)
