"""Scores of arcs, tags and other words against the official scorer (udtools), in its counts."""

import io
import os
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from udtools import udeval

from treeparse.cli.systems import tokenised
from treeparse.data.conllu import read_conllu
from treeparse.errors import TreeparseError
from treeparse.metrics import Count, attachment_scores, sentence_counts, tag_scores
from treeparse.metrics.alignment import Tokenised, aligned_scores
from treeparse.metrics.tags import TAG_SCORES, UNIVERSAL_FEATURES
from treeparse.sentence import Sentence, tree_problem

# Multiword tokens (one with a repeated word), empty nodes, subtypes, unknown tags, a form with a space.
TREEBANK = """\
# sent_id = multiword
1\tEl\tel\tDET\t_\t_\t2\tdet\t_\t_
2\tmar\tmar\tNOUN\t_\t_\t3\tnsubj\t_\t_
3-5\tdándoselo\t_\t_\t_\t_\t_\t_\t_\t_
3\tdándo\tdar\tVERB\t_\t_\t0\troot\t_\t_
4\tse\tél\tPRON\t_\t_\t3\texpl:pv\t_\t_
5\tlo\tél\tPRON\t_\t_\t3\tobj\t_\t_
6-7\tdel\t_\t_\t_\t_\t_\t_\t_\t_
6\tde\tde\tADP\t_\t_\t8\tcase\t_\t_
7\tel\tel\tDET\t_\t_\t8\tdet\t_\t_
8\tcabo\tcabo\tNOUN\t_\t_\t3\tobl:arg\t_\tSpaceAfter=No
9\t.\t.\tPUNCT\t_\t_\t3\tpunct\t_\t_

# sent_id = empty-nodes
0.1\tThey\tthey\tPRON\t_\t_\t_\t_\t2:nsubj\t_
1\tBoth\tboth\t_\t_\t_\t2\tadvmod\t2:advmod\t_
2\twon\twin\t_\t_\t_\t0\troot\t0:root\t_
3\tand\tand\t_\t_\t_\t4\tcc\t4:cc\t_
4\tlost\tlose\t_\t_\t_\t2\tconj\t2:conj:and\t_
4.1\twon\twin\t_\t_\t_\t_\t_\t2:conj\t_
5\t10 000\t10000\t_\t_\t_\t2\tparataxis:insert\t2:parataxis\t_
6-8\tno-no-no\t_\t_\t_\t_\t_\t_\t_\t_
6\tno\tno\t_\t_\t_\t7\tcompound:redup\t_\t_
7\tno\tno\t_\t_\t_\t5\tdiscourse\t_\t_
8\tno\tno\t_\t_\t_\t5\tdep:redup\t_\t_
9\t?!\t?!\t_\t_\t_\t2\tpunct\t2:punct\t_

# sent_id = function-words-only
1\tand\tand\tCCONJ\t_\t_\t2\tcc\t_\t_
2\tbe\tbe\tAUX\t_\t_\t0\troot\t_\t_

"""
# fmt: off
LABELS = [
    "acl", "acl:relcl", "advmod", "aux", "aux:pass", "case", "cc", "conj", "cop", "dep", "det", "expl:pv", "flat:name",
    "mark", "nmod:poss", "nsubj", "nsubj:pass", "obj", "obl", "obl:arg", "punct", "root", "root:sub", "reparandum",
    "clf", "invented", "invented:sub",
]
# fmt: on


def words_of(text: str) -> Iterator[list[list[str]]]:
    """The rows of each sentence's words, read without treeparse's own reader."""
    for block in text.split("\n\n"):
        rows = [line.split("\t") for line in block.splitlines() if line and not line.startswith("#")]
        if rows:
            yield [row for row in rows if row[0].isdigit()]


def sentences_of(text: str) -> list[Sentence]:
    def column(rows: list[list[str]], place: int) -> tuple[str, ...]:
        return tuple(row[place] for row in rows)

    return [
        Sentence(column(rows, 1), upos=column(rows, 3), heads=tuple(map(int, column(rows, 6))), labels=column(rows, 7))
        for rows in words_of(text)
    ]


def with_parses(text: str, parses: list[tuple[list[int], list[str]]]) -> str:
    lines = []
    words = iter([(head, label) for heads, labels in parses for head, label in zip(heads, labels, strict=True)])
    for line in text.split("\n"):
        columns = line.split("\t")
        if columns[0].isdigit():
            head, label = next(words)
            columns[6:8] = [str(head), label]
        lines.append("\t".join(columns))
    return "\n".join(lines)


def perturbed(
    sentence: Sentence, noise: float, rng: random.Random, labels_of: Sequence[str] = (*LABELS, "_")
) -> tuple[list[int], list[str]]:
    """A single-root tree with about ``noise`` of the heads and of the labels changed; a parse may lack labels."""
    heads, labels = list(sentence.heads or ()), list(sentence.labels or ())
    for word in range(1, len(heads) + 1):
        if rng.random() < noise:
            labels[word - 1] = rng.choice(labels_of)
        if rng.random() < noise:
            other = list(heads)
            other[word - 1] = rng.randint(0, len(heads))
            if other[word - 1] == 0:  # this word takes the root's place
                other[heads.index(0)] = word
            if tree_problem(other) is None:
                heads = other
    return heads, labels


def official(gold: str, system: str) -> dict:
    trees = [udeval.load_conllu(io.StringIO(text), "memory", {}) for text in (gold, system)]
    return udeval.evaluate(*trees)


def assert_agreement(gold: str, system: str) -> None:
    scores = official(gold, system)
    report = attachment_scores(sentences_of(gold), sentences_of(system))
    counts = sentence_counts(sentences_of(gold), sentences_of(system))[:, 0].sum(0)
    assert counts[Count.HEADS] == scores["UAS"].correct
    assert counts[Count.LABELED] == scores["LAS"].correct
    assert counts[Count.CONTENT_CORRECT] == scores["CLAS"].correct
    assert report.words == scores["UAS"].gold_total == scores["UAS"].system_total
    for ours, theirs in ((report.uas, "UAS"), (report.las, "LAS"), (report.clas, "CLAS")):
        assert f"{100 * ours:.2f}" == f"{100 * scores[theirs].f1:.2f}"
    assert report.clas_precision == scores["CLAS"].precision
    assert report.clas_recall == scores["CLAS"].recall


def test_gold_against_itself():
    assert_agreement(TREEBANK, TREEBANK)
    assert official(TREEBANK, TREEBANK)["LAS"].f1 == 1


@pytest.mark.parametrize("seed", range(40))
def test_multiword_tokens_empty_nodes_and_subtypes(seed: int):
    rng = random.Random(seed)
    parses = [perturbed(sentence, rng.choice([0.1, 0.4, 0.9]), rng) for sentence in sentences_of(TREEBANK)]
    assert_agreement(TREEBANK, with_parses(TREEBANK, parses))


@pytest.mark.parametrize("seed", range(10))
def test_random_gold_trees(seed: int):
    rng = random.Random(seed)
    gold, system = (
        with_parses(TREEBANK, [perturbed(sentence, 1.0, rng, labels) for sentence in sentences_of(TREEBANK)])
        for labels in (LABELS, [*LABELS, "_"])
    )
    assert_agreement(gold, system)


def test_no_content_words_at_all():
    gold, system = (f"1\tof\t_\t_\t_\t_\t0\t{label}\t_\t_\n\n" for label in ("case", "mark"))
    assert_agreement(gold, system)


@pytest.mark.treebank
@pytest.mark.skipif("TREEPARSE_TREEBANKS" not in os.environ, reason="TREEPARSE_TREEBANKS is unset")
@pytest.mark.parametrize("name", ["UD_English-EWT/en_ewt", "UD_Latin-Perseus/la_perseus", "UD_Turkish-IMST/tr_imst"])
def test_test_files_of_treebanks(name: str):
    path = Path(os.environ["TREEPARSE_TREEBANKS"], f"{name}-ud-test.conllu")
    gold = path.read_text(encoding="utf-8")
    rng = random.Random(0)
    assert_agreement(gold, with_parses(gold, [perturbed(sentence, 0.2, rng) for sentence in sentences_of(gold)]))


UPOS, XPOS = ["NOUN", "VERB", "_"], ["NN", "VB:x", "_"]
FEATS = ["_", "Case=Nom|Number=Sing", "Number=Sing|Case=Nom", "Case=Nom|Number=Sing|Typo=Yes", "Number[psor]=Sing"]


def tagged_at_random(seed: int, count: int = 12) -> list[Sentence]:
    """Words of random tags; the lengths do not depend on the seed."""
    stream = random.Random(seed)
    found = []
    for number in range(count):
        words = range(1 + number % 5)
        upos, xpos, feats = (tuple(stream.choice(choices) for _ in words) for choices in (UPOS, XPOS, FEATS))
        heads = tuple(range(len(words)))
        found.append(Sentence(tuple(f"w{word}" for word in words), upos, xpos, feats, heads, ("dep",) * len(words)))
    return found


def text_of(side: list[Sentence]) -> str:
    blocks = []
    for s in side:
        empty = ("_",) * len(s)
        columns = zip(s.forms, s.upos or empty, s.xpos or empty, s.feats or empty, s.heads or (), strict=True)
        rows = (f"{n}\t{w}\t_\t{u}\t{x}\t{f}\t{h}\tdep\t_\t_\n" for n, (w, u, x, f, h) in enumerate(columns, 1))
        blocks.append("".join(rows).replace("0\tdep", "0\troot") + "\n")
    return "".join(blocks)


def official_tags(gold: list[Sentence], system: list[Sentence]) -> dict[str, float]:
    scores = udeval.evaluate(*(udeval.load_conllu(io.StringIO(text_of(side)), "memory", {}) for side in (gold, system)))
    return {name: scores[title].f1 for name, title in TAG_SCORES.items()}


@pytest.mark.parametrize("seed", range(10))
def test_all_columns(seed: int) -> None:
    gold, system = tagged_at_random(seed), tagged_at_random(seed + 100)
    assert tag_scores(gold, system) == pytest.approx(official_tags(gold, system))
    assert tag_scores(gold, gold) == dict.fromkeys(TAG_SCORES, 1.0)


@pytest.mark.parametrize("lacking", [("xpos",), ("upos", "feats"), ("xpos", "feats")])
def test_columns_that_neither_has(lacking: tuple[str, ...]) -> None:
    """As None on one side and ``_`` on the other."""
    gold = [replace(s, **{column: ("_",) * len(s) for column in lacking}) for s in tagged_at_random(1)]
    system = [replace(s, **dict.fromkeys(lacking)) for s in tagged_at_random(2)]
    found, expected = tag_scores(gold, system), official_tags(gold, system)
    columns = {"upos": "upos", "xpos": "xpos", "ufeats": "feats"}
    assert found.keys() == {"all_tags", *(name for name, column in columns.items() if column not in lacking)}
    assert found == pytest.approx({name: expected[name] for name in found})


def test_columns_that_one_side_lacks() -> None:
    gold, system = tagged_at_random(1), [replace(s, xpos=None, feats=None) for s in tagged_at_random(2)]
    assert tag_scores(gold, system) == {"upos": pytest.approx(official_tags(gold, system)["upos"])}
    assert tag_scores(system, gold).keys() == {"upos"}
    bare = [Sentence(s.forms) for s in gold]
    assert tag_scores(gold, bare) == tag_scores(bare, bare) == {}


def test_features_are_those_of_the_official_scorer() -> None:
    assert set(udeval.UNIVERSAL_FEATURES) == UNIVERSAL_FEATURES


SUBJECTS_AND_AUX = ["aux", "nsubj", "nsubj:pass"]
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
            rows.append([str(word), part, "_", *tags, "HEAD", rng.choice(SUBJECTS_AND_AUX), "_", "_"])
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


def tokenised_sentences(text: str, folder: Path) -> list[Tokenised]:
    (folder / "file.conllu").write_text(text, encoding="utf-8")
    return [*map(tokenised, read_conllu(folder / "file.conllu"))]


def test_counts_are_the_official_scorers(tmp_path: Path) -> None:
    rng = random.Random(1)
    differing = 0
    for _ in range(200):
        characters = "".join(rng.choices("abA", k=rng.randint(5, 60)))
        gold, system = random_file(characters, rng), random_file(characters, rng)
        official = udeval.evaluate(*(udeval.load_conllu(io.StringIO(text), "x", {}) for text in (gold, system)))
        scores = aligned_scores(tokenised_sentences(gold, tmp_path), tokenised_sentences(system, tmp_path))
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
        aligned_scores(*(tokenised_sentences(text, tmp_path) for text in texts))
