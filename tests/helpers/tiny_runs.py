"""Configs of runs over a tiny generated treebank, and the treebank."""

import random
import shutil
from pathlib import Path

import yaml

ROLES = ("nsubj", "obj", "iobj", "obl", "vocative", "dislocated")


def tiny_treebank(count: int, seed: int) -> str:
    """CoNLL-U sentences: nouns hang from the verb, each with its own label, adjectives from the next noun."""
    stream = random.Random(seed)
    blocks = []
    for number in range(count):
        tags = [stream.choice(("ADJ", "NOUN")) for _ in range(stream.randint(0, 6))] + ["NOUN", "VERB"]
        lines = [f"# sent_id = {seed}-{number}"]
        for word, tag in enumerate(tags, 1):
            which = stream.randrange(len(ROLES))
            next_noun = tags.index("NOUN", word) + 1 if tag == "ADJ" else 0
            head, label = {"ADJ": (next_noun, "amod"), "NOUN": (len(tags), ROLES[which]), "VERB": (0, "root")}[tag]
            lines.append(f"{word}\t{tag.lower()}{which}\t_\t{tag}\t_\t_\t{head}\t{label}\t_\t_")
        blocks.append("\n".join(lines) + "\n\n")
    return "".join(blocks)


def write_tiny_config(folder: Path) -> Path:
    """Write a tiny treebank and the config of three short epochs over it; the run goes to ``run`` in the folder."""
    for name, count, seed in (("train", 40, 1), ("dev", 12, 2)):
        (folder / f"{name}.conllu").write_text(tiny_treebank(count, seed), encoding="utf-8")
    encoder = {
        "word_size": 8,
        "char_size": 4,
        "char_filters": 4,
        "char_widths": [3],
        "hidden_size": 16,
        "layers": 1,
        "min_count": 1,
    }
    encoder |= {"dropout": 0.1, "embedding_dropout": 0.1}
    config = {
        "output": str(folder / "run"),
        "data": {
            "train": str(folder / "train.conllu"),
            "dev": str(folder / "dev.conllu"),
            "batch_words": 80,
            "batch_squared": None,
        },
        "model": {"encoder": encoder, "arc_size": 16, "label_size": 8, "dropout": 0.1},
        "optimization": {"epochs": 3, "learning_rate": 0.03, "warmup_steps": 5, "average_decay": 0.5, "patience": None},
        "trainer": {"accelerator": "cpu", "precision": "32-true"},
    }
    path = folder / "config.yaml"
    path.write_text(yaml.safe_dump(config), encoding="utf-8")
    return path


def copy_of_run(run: Path, copy: Path) -> Path:
    """Copy a run, whose config then says where the copy is."""
    shutil.copytree(run, copy)
    config = copy / "config.yaml"
    config.write_text(config.read_text(encoding="utf-8").replace(str(run), str(copy)), encoding="utf-8")
    return copy
