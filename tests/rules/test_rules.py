"""Rules: what they say of a tree, and what errors say of files that are faulty."""

from pathlib import Path

import pytest

from treeparse.errors import DataError, TreeparseError
from treeparse.model import Parse
from treeparse.rules import AtMostOne, ForbiddenPair, LabelSet, RootTags, Rules, parse_rules, read_rules, rule_files
from treeparse.sentence import Sentence

SHIPPED = Path(__file__).parents[2] / "configs" / "rules" / "ud.yaml"
SENTENCE = Sentence(
    ("They", "we", "saw", "her", "."),
    upos=("PRON", "PRON", "VERB", "PRON", "PUNCT"),
    heads=(3, 3, 5, 3, 0),
    labels=("nsubj", "nsubj:pass", "ccomp", "obj", "root"),
)
SUBJECT = LabelSet(("nsubj", "csubj"), excepted=("nsubj:outer",))


def test_violations_name_words_and_rule() -> None:
    rules = Rules((AtMostOne(SUBJECT), ForbiddenPair(LabelSet(("ccomp",)), LabelSet(("obj",))), RootTags(("VERB",))))
    assert list(map(str, rules.violations(SENTENCE))) == [
        "word 1 (They) and word 2 (we) hang from word 3 (saw) as nsubj and nsubj:pass, but a head has at most one of "
        "nsubj, csubj (but not nsubj:outer)",
        "word 4 (her) hangs as obj from word 3 (saw), which is ccomp, but none of obj hangs from ccomp",
        "word 5 (.) hangs from the root and is PUNCT, but only VERB may",
    ]
    assert [violation.word for violation in rules.violations(SENTENCE)] == [2, 4, 5]


def test_parses_are_held_against_rules_too() -> None:
    parse = Parse(SENTENCE.forms, (3, 3, 5, 3, 0), SENTENCE.labels or (), -1.0, 2.0)
    assert len(Rules((AtMostOne(SUBJECT),)).violations(parse)) == 1
    assert not Rules((RootTags(("VERB",)),)).violations(parse), "its tags are unknown"
    assert len(Rules((RootTags(("VERB",)),)).violations(parse, SENTENCE.upos)) == 1
    assert not Rules((RootTags(("NOUN",)),)).violations(parse, SENTENCE.upos), "no word of the sentence is one"


def test_a_subtype_counts_unless_it_is_excepted_or_another_one_is_named() -> None:
    assert "nsubj:pass" in SUBJECT and "nsubj" in SUBJECT and "csubj:x" in SUBJECT
    assert "nsubj:outer" not in SUBJECT and "obj" not in SUBJECT and "nsub" not in SUBJECT
    assert "nsubj" not in LabelSet(("nsubj:pass",)) and "nsubj:pass" in LabelSet(("nsubj:pass",))


def test_crossing_arcs_are_violations_where_trees_are_projective() -> None:
    crossing = Sentence(("a", "b", "c", "d"), heads=(3, 4, 0, 3), labels=("x",) * 4)
    [violation] = Rules(trees="projective").violations(crossing)
    assert str(violation) == "the arc into word 2 (b) crosses another one, but trees are projective"
    assert not Rules().violations(crossing)


def test_a_sentence_without_tree_is_refused() -> None:
    for sentence in (Sentence(("a", "b")), Sentence(("a", "b"), heads=(0, -1), labels=("root", "_"))):
        with pytest.raises(TreeparseError, match=r"The sentence 'a b' has no tree to check rules on\."):
            Rules().violations(sentence)


def test_the_example_of_the_documentation_is_read() -> None:
    _, _, example = (rule_files.__doc__ or "").partition("::\n")
    rules = parse_rules(example)
    assert rules.trees == "projective"
    assert rules.each == (
        AtMostOne(LabelSet(("nsubj", "csubj"))),
        AtMostOne(LabelSet(("obj",))),
        AtMostOne(LabelSet(("aux",), ("aux:pass",))),
        ForbiddenPair(LabelSet(("case", "mark")), LabelSet(("nsubj", "obj"))),
        ForbiddenPair(LabelSet(("punct",)), LabelSet(("nsubj",), ("nsubj:outer",))),
        RootTags(("VERB", "NOUN", "ADJ")),
    )


def test_the_shipped_rules_are_of_universal_dependencies() -> None:
    rules = read_rules(SHIPPED)
    rules.check_labels(())
    assert "at most one of nsubj, csubj" in str(rules.violations(SENTENCE)[0])


@pytest.mark.parametrize(
    ("text", "line", "told"),  # what the message must have: the key or value, and what to write instead
    [
        ("{}", None, "at_most_one, forbidden, root_upos, trees, got none"),
        ("- obj\n", 1, "got a list"),
        ("\nat_most: [obj]\n", 2, "did you mean at_most_one?"),
        ("trees: projective\nat_most_one: obj\n", 2, "at_most_one must be a list, got 'obj'"),
        ("at_most_one:\n  - obj\n  - []\n", 3, "labels must not be empty"),
        ("at_most_one:\n  - {label: obj}\n", 2, "'label' in a set of labels"),
        ("at_most_one:\n  - {labels: obj, except: det}\n", 2, "one of obj, got det"),
        ("forbidden:\n  - {head: obj}\n", 2, "got no dependent"),
        ("trees: nonprojective\n", 1, "got 'nonprojective': leave it out for all trees"),
        ("trees: projective\ntrees: projective\n", 2, "key 'trees' is repeated"),
    ],
)
def test_every_mistake_has_its_line(text: str, line: int | None, told: str) -> None:
    with pytest.raises(DataError) as raised:
        parse_rules(text, "r.yaml")
    assert told in str(raised.value)
    assert str(raised.value).startswith("r.yaml: " if line is None else f"r.yaml:{line}: ")


def test_a_label_that_nobody_knows_is_named_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "rules.yaml"
    path.write_text("at_most_one:\n  - obj\n  - [nsubj, nsbuj:pass]\n", encoding="utf-8")
    rules = read_rules(path)
    rules.check_labels(("nsbuj", "obj"))
    with pytest.raises(DataError) as raised:
        rules.check_labels(("subj", "obj:x"))
    problem = "the label 'nsbuj:pass' is neither one of the model's nor one of Universal Dependencies"
    assert str(raised.value).startswith(f"{path}:3: {problem}")
