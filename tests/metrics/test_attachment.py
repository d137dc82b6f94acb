"""The scores against values counted by hand, their errors, and the torchmetrics against the functional scores."""

import json
import math

import pytest
import torch

from treeparse.errors import TreeparseError
from treeparse.metrics import (
    AttachmentScores,
    LabelScores,
    attachment_scores,
    is_punctuation,
    sentence_counts,
    word_mismatch,
)
from treeparse.sentence import Sentence


def sentence(text: str, heads: str, labels: str, upos: str | None = None) -> Sentence:
    tags = tuple(upos.split()) if upos is not None else None
    return Sentence(tuple(text.split()), upos=tags, heads=tuple(map(int, heads.split())), labels=tuple(labels.split()))


GOLD = [
    # "whom" hangs from "saw" across the root: non-projective.
    sentence("whom did you say she saw ?", "6 4 4 0 6 4 4", "obj aux nsubj root nsubj ccomp punct"),
    sentence("dogs that bark bite .", "4 3 1 0 4", "nsubj nsubj acl:relcl root punct", "NOUN PRON VERB VERB PUNCT"),
]
SYSTEM = [
    # One wrong head (whom), one wrong label (she), one relation of content for one of function (did).
    GOLD[0].with_tree((4, 4, 4, 0, 6, 4, 4), ("obj", "advmod", "nsubj", "root", "csubj", "ccomp", "punct")),
    # Right but for a subtype and the final stop.
    GOLD[1].with_tree((4, 3, 1, 0, 1), ("nsubj", "nsubj", "acl", "root", "punct")),
]


def test_scores_of_all_words_by_hand():
    report = attachment_scores(GOLD, SYSTEM)
    assert (report.sentences, report.words) == (2, 12)
    assert report.uas == 10 / 12
    assert report.las == 8 / 12
    assert report.las_subtypes == 7 / 12
    assert report.label_accuracy == 10 / 12
    # Content words: gold 5 + 4, system 6 + 4; right among gold's: nsubj, root, ccomp, and 4.
    assert report.clas_precision == 7 / 10
    assert report.clas_recall == 7 / 9
    assert report.clas == 14 / 19
    assert report.root_accuracy == 1
    assert report.complete_match_unlabeled == report.complete_match == 0


def test_scores_without_punctuation_by_hand():
    nopunct = attachment_scores(GOLD, SYSTEM).nopunct
    assert (nopunct.sentences, nopunct.words) == (2, 10)
    assert nopunct.uas == 9 / 10
    assert nopunct.las == 7 / 10
    assert nopunct.las_subtypes == 6 / 10
    assert nopunct.label_accuracy == 8 / 10
    assert nopunct.clas == 14 / 19
    assert nopunct.complete_match_unlabeled == nopunct.complete_match == 1 / 2


def test_groups_of_sentences_by_hand():
    report = attachment_scores(GOLD, SYSTEM)
    assert list(report.by_length) == ["1-10"]
    assert report.by_length["1-10"].uas == report.uas
    assert report.by_projectivity["projective"].uas == 4 / 5
    assert report.by_projectivity["projective"].nopunct.uas == 1
    assert report.by_projectivity["non-projective"].las == 4 / 7


@pytest.mark.parametrize(
    ("length", "bucket"),
    [(1, "1-10"), (10, "1-10"), (11, "11-20"), (20, "11-20"), (21, "21-30"), (31, "31-40"), (50, "41-50"), (51, "51+")],
)
def test_length_buckets_hold_their_ends(length: int, bucket: str):
    chain = Sentence(("w",) * length, heads=tuple(range(length)), labels=("dep",) * length)
    assert list(attachment_scores([chain], [chain]).by_length) == [bucket]


def test_labels_by_hand():
    by_label = attachment_scores(GOLD, SYSTEM).by_label
    assert list(by_label) == sorted(by_label)
    nsubj = by_label["nsubj"]
    assert (nsubj.gold, nsubj.system, nsubj.correct) == (4, 3, 3)
    assert (nsubj.precision, nsubj.recall, nsubj.f1) == (1, 3 / 4, 6 / 7)
    acl = by_label["acl"]
    assert (acl.gold, acl.system, acl.correct) == (1, 1, 1)
    obj = by_label["obj"]  # found, but its head is wrong
    assert (obj.gold, obj.system, obj.correct, obj.f1) == (1, 1, 0, 0)
    assert (by_label["csubj"].gold, by_label["csubj"].recall) == (0, 0)


def test_root_accuracy_wants_the_very_same_roots():
    gold = [sentence("a b c", "0 1 1", "root dep dep")] * 3
    heads = [(0, 1, 1), (2, 0, 1), (0, 0, 1)]  # right; another word; one word too many
    system = [tree.with_tree(parse, tree.labels or ()) for tree, parse in zip(gold, heads, strict=True)]
    assert attachment_scores(gold, system).root_accuracy == 1 / 3


def test_several_gold_roots_and_unknown_system_heads_are_scored():
    gold = [sentence("a b c", "0 0 1", "root root dep")]
    system = [sentence("a b c", "0 -1 1", "root _ dep")]
    report = attachment_scores(gold, system)
    assert (report.uas, report.root_accuracy) == (2 / 3, 0)


def test_where_there_is_nothing_to_count_scores_are_zero():
    stop = [sentence(". !", "0 1", "punct punct")]
    report = attachment_scores(stop, stop)
    assert (report.uas, report.clas, report.complete_match) == (1, 0, 1)
    assert (report.nopunct.sentences, report.nopunct.words, report.nopunct.uas) == (0, 0, 0)
    nothing = attachment_scores([], [])
    assert (nothing.sentences, nothing.las, nothing.by_length, nothing.by_label) == (0, 0, {}, {})


def test_as_dict_is_nested_and_values_are_flat():
    report = attachment_scores(GOLD, SYSTEM)
    as_dict = report.as_dict()
    assert as_dict["las"] == report.las
    assert as_dict["nopunct"]["las"] == report.values()["las_nopunct"] == report.nopunct.las
    assert as_dict["by_label"]["nsubj"]["f1"] == 6 / 7
    assert as_dict["by_projectivity"]["projective"]["nopunct"]["uas"] == 1
    assert all(isinstance(value, float) for value in report.values().values())


@pytest.mark.parametrize(
    ("form", "upos", "expected"),
    [
        (".", "PUNCT", True),
        ("word", "PUNCT", True),
        (".", "SYM", False),
        ("...", "_", True),
        ("¿«—»?", "_", True),
        ("$", "_", False),  # a symbol, category Sc
        ("+", "_", False),
        (":-)", "_", True),
        (";-p", "_", False),
        ("", "_", False),
    ],
)
def test_punctuation(form: str, upos: str, expected: bool):
    assert is_punctuation(form, upos) is expected


def test_counts_add_up_over_sentences():
    both = sentence_counts(GOLD, SYSTEM)
    assert both.shape[:2] == (2, 2)
    for place in range(2):
        alone = sentence_counts(GOLD[place : place + 1], SYSTEM[place : place + 1])
        assert (alone[0] == both[place]).all()


TREE, SHORT = sentence("a b", "0 1", "root dep"), sentence("dogs that bark", "3 3 0", "nsubj nsubj root")
OTHER = sentence("dogs that barks bite .", "4 3 1 0 4", "nsubj nsubj acl root punct")


@pytest.mark.parametrize(
    ("gold", "system", "message"),
    [
        (GOLD, [SYSTEM[0], OTHER], r"^Sentence 2: word 3 is 'bark' in gold but 'barks' in .*same words"),
        (GOLD, [SYSTEM[0], SHORT], r"Sentence 2: word 4 \('bite'\) of gold is missing in the system's parse"),
        (GOLD, SYSTEM[:1], "Gold has 2 sentences but the system parsed 1"),
        ([Sentence(("a", "b"))], [TREE], "gold has no heads or no labels"),
        ([TREE], [Sentence(("a", "b"), heads=(0, 1))], "the system's parse has no heads or no labels"),
        ([sentence("a b", "2 1", "dep dep")], [TREE], "gold has no tree: no word hangs"),
        ([sentence("a b", "0 -1", "root _")], [TREE], "gold has no tree: the head of word 2 must be from 0 to 2"),
    ],
)
def test_other_words_and_missing_trees_are_errors(gold: list[Sentence], system: list[Sentence], message: str):
    with pytest.raises(TreeparseError, match=message):
        attachment_scores(gold, system)


def test_the_longer_side_is_named():
    assert word_mismatch(SHORT, GOLD[1]) == "word 4 ('bite') of the system's parse is missing in gold"
    assert word_mismatch(SHORT, SHORT) is None


def test_scores_as_a_frame():
    report = attachment_scores(GOLD, SYSTEM)
    frame = report.to_frame()
    assert list(frame.index) == ["all", "no punctuation", "1-10 words", "projective", "non-projective"]
    assert frame.loc["all", "uas"] == 10 / 12 and frame.loc["no punctuation", "words"] == 10
    assert frame.loc["non-projective", "uas"] == report.by_projectivity["non-projective"].uas
    labels = report.to_frame(by_label=True)
    assert list(labels.index) == list(report.by_label) and labels.loc["acl", "recall"] == 1
    assert "0.833" in frame.to_latex(float_format="%.3f")


def without_labels(sentences: list[Sentence], *words: int) -> list[Sentence]:
    """The sentences without the labels of some words (from 0) of each; without any label if none is named."""
    return [
        each.with_tree(
            each.heads or (),
            ["_" if not words or word in words else label for word, label in enumerate(each.labels or ())],
        )
        for each in sentences
    ]


def test_words_without_a_gold_label_do_not_count_in_scores_of_labels():
    report = attachment_scores(without_labels(GOLD, 0, 6), SYSTEM)  # whom (wrong), ? (right); dogs (right)
    assert (report.words, report.uas, report.root_accuracy) == (12, 10 / 12, 1)
    assert (report.las, report.las_subtypes) == (6 / 9, 5 / 9)
    assert report.label_accuracy == 7 / 9
    assert (report.clas_precision, report.clas_recall) == (6 / 8, 6 / 7)
    assert "_" not in report.by_label and report.by_label["nsubj"].gold == 3
    whole = attachment_scores(without_labels(GOLD[:1], 6) + GOLD[1:], without_labels(GOLD, 0))
    assert (whole.complete_match_unlabeled, whole.complete_match) == (1, 0), "the second sentence alone counts"


def test_gold_without_labels_has_no_score_of_labels():
    report = attachment_scores(without_labels(GOLD), SYSTEM)
    assert (report.uas, report.nopunct.uas, report.by_label) == (10 / 12, 9 / 10, {})
    values, plain = report.values(), report.as_dict()
    of_heads = {"uas", "root_accuracy", "complete_match_unlabeled"}
    for name, value in values.items():
        assert math.isnan(value) == (name.removesuffix("_nopunct") not in of_heads), name
    assert plain["las"] is plain["nopunct"]["clas"] is plain["by_length"]["1-10"]["complete_match"] is None
    assert plain["uas"] == report.uas and json.loads(json.dumps(plain, allow_nan=False)) == plain


FIVE_LABELS = ("nsubj", "obj", "root", "case", "punct")


def random_sentence(length: int, generator: torch.Generator) -> Sentence:
    """Every word but the first hangs from some word before it: a tree, often non-projective."""
    heads = [0] + [1 + int(torch.randint(word, (), generator=generator)) for word in range(1, length)]
    labels = [FIVE_LABELS[int(torch.randint(len(FIVE_LABELS), (), generator=generator))] for _ in range(length)]
    return Sentence(("word",) * (length - 1) + (".",), heads=tuple(heads), labels=tuple(labels))


@pytest.fixture
def parses() -> tuple[list[Sentence], list[Sentence]]:
    generator = torch.Generator().manual_seed(3)
    lengths = torch.randint(1, 60, (24,), generator=generator).tolist()
    gold, system = ([random_sentence(length, generator) for length in lengths] for _ in range(2))
    return gold, system


def test_batches_give_the_functional_scores(parses: tuple[list[Sentence], list[Sentence]]):
    gold, system = parses
    metric = AttachmentScores(groups=True)
    for start in range(0, len(gold), 7):
        metric.update(gold[start : start + 7], system[start : start + 7])
    report = attachment_scores(gold, system)
    expected = report.values()
    for groups in (report.by_length, report.by_projectivity):
        for name, scores in groups.items():
            expected |= {f"uas/{name}": scores.uas, f"las/{name}": scores.las}
    computed = metric.compute()
    assert len(report.by_length) > 2
    assert len(report.by_projectivity) == 2
    assert set(expected) <= set(computed)
    for name, value in computed.items():
        assert value.item() == pytest.approx(expected.get(name, 0.0), abs=1e-7)


def test_states_of_processes_add_up(parses: tuple[list[Sentence], list[Sentence]]):
    gold, system = parses
    whole, first, second = (AttachmentScores() for _ in range(3))
    whole.update(gold, system)
    first.update(gold[:5], system[:5])
    second.update(gold[5:], system[5:])
    first.merge_state(second)
    assert first.compute() == whole.compute()
    whole.reset()
    assert set(whole.metric_state["counts"].unique().tolist()) == {0}  # pyright: ignore[reportAttributeAccessIssue]


def test_label_scores_are_the_functional_ones(parses: tuple[list[Sentence], list[Sentence]]):
    gold, system = parses
    metric = LabelScores(["nsubj", "punct", "absent"])
    metric.update(gold[:9], system[:9])
    metric.update(gold[9:], system[9:])
    computed = metric.compute()
    by_label = attachment_scores(gold, system).by_label
    for label in ("nsubj", "punct"):
        for name in ("precision", "recall", "f1"):
            assert computed[f"{name}/{label}"].item() == pytest.approx(getattr(by_label[label], name), abs=1e-7)
    assert computed["f1/absent"].item() == 0
