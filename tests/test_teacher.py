"""Saved parsers as teachers: their own vocabularies, labels by name, frozen and never saved with the pupil."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast, get_args

import pytest
import torch
import yaml
from helpers.parsers import CONFIG, TRAINING, random_parser
from safetensors import safe_open

from treeparse import Parser
from treeparse.data import load_treebank
from treeparse.data.features.indexer import Indexer
from treeparse.errors import TreeparseError
from treeparse.model import Teacher
from treeparse.objectives import Divergence, SilverTrees
from treeparse.objectives.teaching import Measure
from treeparse.sentence import Sentence
from treeparse.training import load_config, train
from treeparse.trees import LabeledCRF


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    parser, folder = random_parser(), tmp_path_factory.mktemp("teacher") / "model"
    parser.float().save_pretrained(folder)
    return folder


def relabelled(sentences: list[Sentence], names: dict[str, str]) -> list[Sentence]:
    return [replace(s, labels=tuple(names.get(label, label) for label in s.labels or ())) for s in sentences]


def test_a_teacher_teaches_itself_nothing(saved: Path) -> None:
    pupil = Parser.from_pretrained(saved)
    batch = pupil.collate(replace(sentence, heads=None, labels=None) for sentence in TRAINING[:5])
    p, teacher = pupil.distribution(batch), Teacher([str(saved)])
    torch.testing.assert_close(Divergence(teacher, "kl")(p, batch), torch.zeros(5).double(), atol=1e-6, rtol=0.0)
    torch.testing.assert_close(Divergence(teacher)(p, batch), p.entropy(), atol=1e-6, rtol=1e-6)
    torch.testing.assert_close(SilverTrees(reference=teacher)(p, batch), -p.log_prob(p.mode))
    [surer] = Teacher([str(saved)], temperature=0.5).distributions(p, batch)
    torch.testing.assert_close(surer.entropy(), p.tempered(0.5).entropy(), atol=1e-6, rtol=1e-6)
    assert not surer.entropy().requires_grad


def test_labels_go_by_their_names(saved: Path) -> None:
    """A pupil with the teacher's labels in another order, one of them missing, and one more."""
    own = Parser.from_pretrained(saved)
    labels = own.indexer.label_names
    lost = next(name for name in labels if name != "root")
    sentences = relabelled(TRAINING, {lost: "a-label-of-its-own"})
    features = own.indexer.features
    indexer = Indexer.build([*sentences[::-1]], features)
    batch = indexer.collate(sentences[:4])
    assert set(batch.label_names) == {*labels, "a-label-of-its-own"} - {lost}
    assert batch.label_names != labels
    theirs = own.distribution(own.collate(sentences[:4]))
    p: Any = Teacher([str(saved)]).distributions(theirs, batch)[0]
    heads, found = theirs.sample((50,))
    order = torch.tensor([batch.label_names.index(name) if name in batch.label_names else -1 for name in labels])
    renamed = torch.where(found >= 0, order[found.clamp_min(0)], -1)
    possible = ~((found >= 0) & (renamed < 0)).any(-1)
    assert possible.any()
    assert not possible.all()
    # Its trees without the lost label keep the ratios of their probabilities.
    difference = p.log_prob(heads, renamed) - theirs.log_prob(heads, found)
    for item in range(4):
        differences = difference[possible[:, item], item]
        torch.testing.assert_close(differences, differences[:1].expand(differences.shape), atol=1e-5, rtol=1e-5)
    assert (p.log_prob(heads, renamed)[~possible] == -torch.inf).all()


def test_no_label_in_common(saved: Path) -> None:
    own = Parser.from_pretrained(saved)
    others = relabelled(TRAINING, {name: f"other-{name}" for name in own.indexer.label_names})
    batch = Indexer.build(others, own.indexer.features).collate(others[:2])
    with pytest.raises(TreeparseError, match="have no label in common; the teacher's are"):
        Teacher([str(saved)]).distributions(own.distribution(own.collate(others[:2])), batch)
    with pytest.raises(TreeparseError, match="at least one model"):
        Teacher([])


def test_a_pupil_learns_from_a_teacher_alone(trained_config: Path, tmp_path: Path) -> None:
    """And neither its model nor the state of its run holds the teacher."""
    teacher = trained_config.parent / "run" / "model"
    settings = yaml.safe_load(trained_config.read_text(encoding="utf-8"))
    reference = {"class_path": "treeparse.model.Teacher", "init_args": {"models": [str(teacher)]}}
    settings["objective"] = {"class_path": "treeparse.objectives.Divergence", "init_args": {"reference": reference}}
    settings |= {"output": str(tmp_path / "pupil"), "seed": 5}
    settings["data"] |= {"batch_words": 40}
    settings["optimization"] |= {"epochs": 20, "dev_every": 5, "learning_rate": 0.02}
    path = tmp_path / "pupil.yaml"
    path.write_text(yaml.safe_dump(settings), encoding="utf-8")
    model = train(load_config(path), quiet=True)
    words = [s.words for s in load_treebank(settings["data"]["dev"])]
    pupil, original = (Parser.from_pretrained(folder).parse(words) for folder in (model, teacher))
    pairs = [pair for a, b in zip(pupil, original, strict=True) for pair in zip(a.heads, b.heads, strict=True)]
    assert sum(a == b for a, b in pairs) > 0.9 * len(pairs)
    with safe_open(model / "model.safetensors", "pt") as mine, safe_open(teacher / "model.safetensors", "pt") as its:
        assert set(mine.keys()) == set(its.keys())
    state = torch.load(model.parent / "checkpoints" / "last.ckpt", weights_only=True)
    assert not [name for name in state["state_dict"] if name.startswith("objective.")]


def test_another_architecture_can_be_a_teacher(saved: Path) -> None:
    torch.manual_seed(1)
    pupil = Parser.build(replace(CONFIG, arc_size=8, label_size=4), TRAINING[::-1]).eval()
    batch = pupil.collate(TRAINING[:3])
    value = Divergence(Teacher([str(saved), str(saved)]))(pupil.distribution(batch), batch)
    assert torch.isfinite(value).all()
    value.sum().backward()
    assert all(torch.isfinite(w.grad).all() for w in pupil.parameters() if w.grad is not None)


def test_a_teacher_whose_roots_have_other_labels_too_teaches_what_its_pupil_can_say(tmp_path: Path) -> None:
    """The pupil reserves the label root, the teacher does not: both laws are over the pupil's trees."""
    pupil = random_parser()
    pairs = {"root": "nsubj", "nsubj": "root"}
    mixed = [*TRAINING, *relabelled(TRAINING, pairs)]
    teacher = Parser.build(CONFIG, mixed)
    teacher.save_pretrained(tmp_path / "free")
    assert teacher.root_label < 0 <= pupil.root_label
    batch = pupil.collate(replace(sentence, heads=None, labels=None) for sentence in TRAINING[:5])
    p = pupil.distribution(batch)
    reference = Teacher([str(tmp_path / "free")])
    [q] = cast(Sequence[LabeledCRF], reference.distributions(p, batch))
    heads, labels = q.sample((50,))
    words = heads >= 0
    assert ((labels == pupil.root_label) == (heads == 0))[words].all()
    for measure in get_args(Measure):
        assert Divergence(reference, measure)(p, batch).isfinite().all()
    Parser.build(CONFIG, relabelled(TRAINING, {"root": "sent"})).save_pretrained(tmp_path / "other")
    with pytest.raises(TreeparseError, match="does not know this label"):
        Teacher([str(tmp_path / "other")]).distributions(p, batch)
