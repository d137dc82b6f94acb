"""Constraints: what files say and what is wrong with them, shares of trees, and expectations by enumeration."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from helpers.constrained import SAID, SENTENCES, TAGGED, as_yaml, counts_of_trees, expected_counts, oracles
from helpers.gold_batches import LENGTHS
from helpers.tree_cases import CASES, Case, every_labeled_case

from treeparse import LabeledCRF, NonProjectiveCRF
from treeparse.errors import DataError, TreeparseError
from treeparse.objectives.constraints import (
    Constraint,
    ConstraintMatches,
    Distance,
    Target,
    WordSet,
    constraint_files,
    constraints_to_yaml,
    extract_constraints,
    parse_constraints,
    read_constraints,
    shares_of_trees,
)
from treeparse.sentence import Sentence

ANY = parse_constraints(as_yaml(["probability: 0.5"] * len(SAID)))


# ---------------------------------------------------------------- files


def test_the_example_is_read() -> None:
    _, _, example = (constraint_files.__doc__ or "").partition("::\n")
    assert parse_constraints(example) == (
        Constraint(Target(0.9, 0.9), WordSet(("DET",)), WordSet(("NOUN",)), "left"),
        Constraint(
            Target(0.6, 0.6), WordSet(("NOUN",)), WordSet(("VERB",)), label=("nsubj", "obj"), distance=Distance(1, 5)
        ),
    )


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ("head: root, at_least: 0.8", Constraint(Target(0.8, 1.0), head="root")),
        ("head: root, at_most: 0.1", Constraint(Target(0.0, 0.1), head="root")),
        ("label: no, probability: [0.25, 1]", Constraint(Target(0.25, 1.0), label=("no",))),
        ("distance: 3, probability: 1", Constraint(Target(1.0, 1.0), distance=Distance(3, 3))),
        (
            "dependent: {word: [No, 1, yes, 'null', no], upos: X}, direction: right, probability: 0",
            Constraint(Target(0.0, 0.0), WordSet(("X",), ("no", "1", "yes", "null")), direction="right"),
        ),
    ],
)
def test_what_an_entry_says(entry: str, expected: Constraint) -> None:
    assert parse_constraints(f"# one\n- {{{entry}}}\n") == (expected,)


def test_what_is_written_reads_equal(tmp_path: Path) -> None:
    constraints = (
        Constraint(Target(0.1, 0.1), WordSet(("DET", "NUM"), ("no", "1")), WordSet(word=("été",)), "right"),
        Constraint(Target(1 / 3, 2 / 3), head="root", label=("root",)),
        Constraint(Target(1e-7, 1.0), distance=Distance(2, 2)),
        Constraint(Target(0.0, 0.5), label=("a", "b:c"), distance=Distance(1, 10**8)),
    )
    (tmp_path / "c.yaml").write_text(constraints_to_yaml(constraints, ["first", "é", "3", "4"]), encoding="utf-8")
    assert read_constraints(tmp_path / "c.yaml") == constraints
    assert constraints_to_yaml(constraints[:1]).startswith("- dependent:\n")


GOOD = "- head: root\n  probability: 0.5\n"


@pytest.mark.parametrize(
    ("text", "line", "told"),  # what the message must have: the key or value, and what to write instead
    [
        ("# nothing\n", None, "no constraint"),
        ("\nhead: root\nprobability: 0.5\n", 2, "'- '"),
        (GOOD + "- head: {upos: X}\n  probabilty: 0.5\n", 4, "'probabilty' .* did you mean probability"),
        (GOOD + "- head: {upos: X}\n", 3, "probability, at_least, at_most, got none"),
        ("- head: root\n  at_least: 0.1\n  at_most: 0.2\n", 1, "at_least and at_most"),
        ("- head: root\n  probability: 1.5\n", 2, "from 0 to 1, got 1.5"),
        ("- head: root\n  probability: [0.9, 0.8]\n", 2, r"\[0.8, 0.9\]"),
        ("- head: root\n  at_least: 0\n", 2, "got 0 to 1"),
        ("- dependent: {upos: X}\n  probability: 1\n", 1, "head, direction, label and distance, got none"),
        ("- head: NOUN\n  probability: 1\n", 1, "root, {upos: NOUN}, .* got 'NOUN'"),
        ("- head: {upos: [X, root]}\n  probability: 1\n", 1, "'head: root'"),
        ("- head: {upos: X}\n  label:\n  probability: 1\n", 2, "got nothing"),
        ("- direction: lft\n  probability: 1\n", 1, "left or right, got 'lft'; did you mean left"),
        ("- label: a\n  distance: 0\n  probability: 1\n", 2, "a distance .* got 0"),
        ("- head: root\n  direction: left\n  probability: 1\n", 1, "root has no position"),
        ("- label: [a, b]\n  probability: 1\n" + GOOD + "- label: [b, a]\n  at_most: 0.5\n", 5, "as b or a.* line 1"),
        ("- head: root\n  probability: 1\n  head: root\n", 3, "key 'head' is repeated"),
        ("- head: root\n  probability: [1\n", 3, "not YAML"),
    ],
)
def test_every_mistake_has_its_line(text: str, line: int | None, told: str) -> None:
    with pytest.raises(DataError, match=told) as found:
        parse_constraints(text, "c.yaml")
    assert found.value.line == line
    assert str(found.value).startswith("c.yaml: " if line is None else f"c.yaml:{line}: ")


def test_files_that_hold_no_text(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_bytes(b"- head: \xff")
    with pytest.raises(DataError, match=r"c\.yaml: the file must be text in UTF-8"):
        read_constraints(path)
    with pytest.raises(OSError, match="missing"):
        read_constraints(tmp_path / "missing")


def test_constraints_in_words() -> None:
    assert list(map(str, ANY)) == [
        "DET hangs from NOUN, to its left",
        "NOUN/VERB hangs from the root",
        "dog/cat hangs from any head, as a",
        "any word hangs from dog NOUN, to its right, as b",
        "any word hangs from any head, 2 to 3 words apart",
        "DET hangs from any head, 1 word apart",
    ]
    targets = (Target(0.5, 0.5), Target(0.25, 1.0), Target(0.0, 0.1), Target(0.8, 0.9))
    assert list(map(str, targets)) == ["0.5", "at least 0.25", "at most 0.1", "0.8 to 0.9"]


# ---------------------------------------------------------------- expectations


@every_labeled_case
@pytest.mark.parametrize("forbidden", [0.0, 0.2])
def test_expectations_by_enumeration(case: Case, forbidden: float) -> None:
    parameters = case.parameters(4, seed=23, batch=(3,), forbidden=forbidden)
    p = case.make(parameters, LENGTHS)
    features = ConstraintMatches(ANY, p, TAGGED)
    found = features.expectations(p.arcs.batched.marginals, features.kind_log_probs)
    expected, words = expected_counts(case, parameters)
    assert torch.equal(features.counts, words)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)
    # What is looked up arc by arc, and what is summed over all arcs, is the same.
    item, head, dependent = features.scored_arcs
    assert len(item) > TAGGED.num_words
    by_arc = features._sums_by_kind(p.labels.at(item, head, dependent))
    torch.testing.assert_close(features.kind_log_probs, by_arc, rtol=0, atol=1e-13)


@every_labeled_case
def test_lowered_scores_by_enumeration(case: Case) -> None:
    """Lowering every score that matches, labels included, is a distribution over the same trees."""
    parameters = case.parameters(4, seed=24, batch=(3,), forbidden=0.1)
    p = case.make(parameters, LENGTHS)
    features = ConstraintMatches(ANY, p, TAGGED)
    multipliers = torch.tensor([0.5, -1.0, 2.0, 0.3, -0.7, 1.1], dtype=torch.float64)
    trees, kinds = features.lowered(features.trees.arcs, features.kind_log_probs, multipliers)
    for item, (oracle, sentence) in enumerate(zip(oracles(case, parameters), SENTENCES, strict=True)):
        matches, _ = counts_of_trees(oracle, sentence)
        totals = oracle.totals - matches @ multipliers
        assert trees.log_partition[item].item() == pytest.approx(totals.logsumexp(0).item(), abs=1e-11)
        found = features.expectations(trees.marginals, kinds)[item]
        torch.testing.assert_close(found, totals.softmax(0) @ matches, rtol=0, atol=1e-11)


def test_a_sure_model_expects_the_shares_of_its_trees() -> None:
    heads = torch.tensor([[-1, 2, 0, 4, 2], [-1, 0, 1, -1, -1], [-1, 2, 3, 0, -1]])
    labels = torch.tensor([[-1, 0, 0, 1, 1], [-1, 1, 0, -1, -1], [-1, 1, 0, 0, -1]])
    arcs = 60.0 * (heads.unsqueeze(1) == torch.arange(5).unsqueeze(-1)).double()
    own = 60.0 * (labels.unsqueeze(-1) == torch.arange(2)).double()  # whatever the arc
    p = LabeledCRF(NonProjectiveCRF(arcs, LENGTHS), own.unsqueeze(1).expand(3, 5, 5, 2))
    names = [["ab"[label] for label in row[1:] if label >= 0] for row in labels.tolist()]
    trees = [
        sentence.with_tree(row[1 : len(sentence) + 1], own)
        for sentence, row, own in zip(SENTENCES, heads.tolist(), names, strict=True)
    ]
    features = ConstraintMatches(ANY, p, TAGGED)
    found = features.expectations(features.trees.marginals, features.kind_log_probs).sum(0)
    shares = shares_of_trees(ANY, trees)
    assert found.tolist() == pytest.approx([matches for matches, _ in shares], abs=1e-9)
    assert features.counts.sum(0).tolist() == [words for _, words in shares]
    assert shares == [(3, 3), (3, 6), (2, 3), (1, 9), (1, 9), (3, 3)]


def test_batches_that_do_not_say_enough() -> None:
    case = next(case for case in CASES if case.labels)
    p = case.make(case.parameters(4, seed=25, batch=(3,)), LENGTHS)
    untagged = [replace(SENTENCES[0], upos=None), replace(SENTENCES[0], upos=("DET", "_", "DET", "NOUN"))]
    for sentence in untagged:
        batch = replace(TAGGED, sentences=(sentence, *SENTENCES[1:]))
        with pytest.raises(
            TreeparseError, match="on UPOS need tagged words, but the sentence that starts with 'The dog the Cat'"
        ):
            ConstraintMatches(ANY, p, batch)
        ConstraintMatches([ANY[4]], p, batch)  # which is on distance alone
    with pytest.raises(TreeparseError, match="a batch that holds its sentences, got none"):
        ConstraintMatches(ANY, p, replace(TAGGED, sentences=()))
    with pytest.raises(TreeparseError, match="need the names of all 2 labels, got 0"):
        ConstraintMatches(ANY, p, replace(TAGGED, label_names=()))
    unknown = parse_constraints("- {label: [aa, a, zz], probability: 0.5}")
    with pytest.raises(
        TreeparseError, match="must be labels of the model, got aa, zz; the model has a, b; did you mean a"
    ):
        ConstraintMatches(unknown, p, TAGGED)


# ---------------------------------------------------------------- extraction


def sentence(tags: str, heads: list[int], **others: Any) -> Sentence:
    upos = tuple(tags.split())
    return Sentence(tuple(map(str.lower, upos)), upos=upos, heads=tuple(heads), **others)


TREES = [
    sentence("DET NOUN VERB", [2, 3, 0]),
    sentence("DET NOUN", [2, 0]),
    sentence("VERB DET NOUN ADV", [0, 3, 1, -1]),
]


def test_constraints_by_hand() -> None:
    found = extract_constraints(TREES, 4)
    # NOUN from VERB stands once on either side, and once it is the root: names decide.
    assert [(str(each.constraint), each.matches, each.words) for each in found] == [
        ("DET hangs from NOUN, to its left", 3, 3),
        ("VERB hangs from the root", 2, 2),
        ("NOUN hangs from the root", 1, 3),
        ("NOUN hangs from VERB, to its left", 1, 3),
    ]
    assert [each.constraint.target.least for each in found] == [1.0, 1.0, 0.25, 0.25]
    exact = extract_constraints(TREES, 100, exact=True)
    assert [each.constraint.target.most for each in exact] == [1.0, 1.0, 0.3333, 0.3333, 0.3333]
    shares = shares_of_trees([each.constraint for each in exact], TREES)
    assert shares == [(each.matches, each.words) for each in exact]


def test_rare_arcs_keep_a_chance() -> None:
    many = [sentence("NOUN VERB", [2, 0])] * 40 + [sentence("NOUN VERB", [0, 1])]
    assert [each.constraint.target.least for each in extract_constraints(many)] == [1.0, 1.0, 0.1, 0.1]


def test_nothing_to_extract() -> None:
    with pytest.raises(TreeparseError, match="Extraction needs words with heads, got none"):
        extract_constraints([Sentence(("a",), upos=("X",))])
    with pytest.raises(TreeparseError, match="Words must have UPOS, but the sentence that starts with 'a b' has words"):
        extract_constraints([Sentence(("a", "b"), upos=("X", "_"), heads=(0, 1))])
    with pytest.raises(TreeparseError, match="number of constraints to extract must be at least 1"):
        extract_constraints(TREES, 0)
