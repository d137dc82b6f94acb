"""Scores of parses with other words and sentences than gold, against the official scorer (udtools), in its counts."""

import io
import random
from itertools import pairwise
from pathlib import Path

import pytest
from udtools import udeval

from treeparse.cli.systems import tokenised
from treeparse.data.conllu import read_conllu
from treeparse.errors import TreeparseError
from treeparse.metrics.alignment import Tokenised, aligned_scores

LABELS = ["aux", "nsubj", "nsubj:pass"]
SCORES = ["Tokens", "Sentences", "Words", "UPOS", "XPOS", "UFeats", "AllTags", "UAS", "LAS", "CLAS"]
FORMS = ["a", "A", "b", "ab", "aba", "b b"]


def random_sentence(characters: str, rng: random.Random) -> str:
    """Random words and multiword tokens that cover the characters, with a random tree and random tags."""
    rows, position, word = list[list[str]](), 0, 0
    while position < len(characters):
        end = position + rng.randint(1, 4)
        form = characters[position:end]
        if rng.random() < 0.4:
            parts = [rng.choice([*FORMS, form]) for _ in range(rng.randint(1, 3))]
            rows.append([f"{word + 1}-{word + len(parts)}", form, *["_"] * 8])
        else:
            parts = [form if rng.random() < 0.8 else " ".join(form)]
        for part in parts:
            word += 1
            feats = rng.choice(["_", "Number=Sing|Typo=Yes", "Number=Sing"])
            tags = rng.choice(["NOUN", "PUNCT"]), rng.choice(["_", "X"]), feats
            rows.append([str(word), part, "_", *tags, "HEAD", rng.choice(LABELS), "_", "_"])
            if rng.random() < 0.1:
                rows.append([f"{word}.1", "x", *["_"] * 8])
        position = end
    heads = iter([0, *(rng.randint(1, number) for number in range(1, word))])  # each word hangs from one before it
    lines = ["\t".join(str(next(heads)) if value == "HEAD" else value for value in row) for row in rows]
    return "\n".join([*lines, "", ""])


def random_file(characters: str, rng: random.Random) -> str:
    inner = rng.sample(range(1, len(characters)), rng.randint(0, 4))
    cuts = [0, *sorted(inner), len(characters)]
    return "".join(random_sentence(characters[a:b], rng) for a, b in pairwise(cuts))


def sentences_of(text: str, folder: Path) -> list[Tokenised]:
    (folder / "file.conllu").write_text(text, encoding="utf-8")
    return [*map(tokenised, read_conllu(folder / "file.conllu"))]


def test_counts_are_the_official_scorers(tmp_path: Path) -> None:
    rng = random.Random(1)
    differing = 0
    for _ in range(200):
        characters = "".join(rng.choices("abA", k=rng.randint(5, 60)))
        gold, system = random_file(characters, rng), random_file(characters, rng)
        official = udeval.evaluate(*(udeval.load_conllu(io.StringIO(text), "x", {}) for text in (gold, system)))
        scores = aligned_scores(sentences_of(gold, tmp_path), sentences_of(system, tmp_path))
        assert "UAS" in scores and {*scores} <= {*SCORES}
        for name, score in scores.items():
            theirs = official[name]
            counts = score.gold, score.system, score.correct, score.f1
            assert counts == (theirs.gold_total, theirs.system_total, theirs.correct, theirs.f1), (name, gold, system)
        differing += 0 < scores["LAS"].correct < scores["Words"].correct < scores["Words"].gold
    assert differing > 25


@pytest.mark.parametrize(
    ("gold", "system", "problem"),
    [
        ("abc", "abd", r"^Sentence 1: the text is not gold's, from here on: 'd', in gold 'c'; score a parse of the"),
        ("ab", "a", r"from here on: 'nothing more', in gold 'b'"),
    ],
)
def test_another_text_is_refused(tmp_path: Path, gold: str, system: str, problem: str) -> None:
    texts = [f"1\t{text}\t_\t_\t_\t_\t0\troot\t_\t_\n\n" for text in (gold, system)]
    with pytest.raises(TreeparseError, match=problem):
        aligned_scores(*(sentences_of(text, tmp_path) for text in texts))
