"""The torchmetrics against the functional scores, over batches and merged from two processes."""

import pytest
import torch

from treeparse.metrics import AttachmentScores, LabelScores, attachment_scores
from treeparse.sentence import Sentence

LABELS = ("nsubj", "obj", "root", "case", "punct")


def random_sentence(length: int, generator: torch.Generator) -> Sentence:
    """Every word but the first hangs from some word before it: a tree, often non-projective."""
    heads = [0] + [1 + int(torch.randint(word, (), generator=generator)) for word in range(1, length)]
    labels = [LABELS[int(torch.randint(len(LABELS), (), generator=generator))] for _ in range(length)]
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
