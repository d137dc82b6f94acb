"""Two treebanks of one language that annotate prepositions in opposite ways, and configs of runs over them."""

import random
from pathlib import Path

import yaml

from treeparse.sentence import Sentence

from .sentences import text_of

NAMES = ("content", "function")
PREPOSITION = {"content": "case", "function": "prep"}


def prepositional(name: str, count: int, seed: int) -> list[Sentence]:
    """A verb and the nouns and phrases before it; the head of "in towns" is the noun, or the preposition."""
    stream = random.Random(seed)
    return [_sentence(name, [stream.random() < 0.6 for _ in range(stream.randint(1, 3))], stream) for _ in range(count)]


def _sentence(name: str, phrases: list[bool], stream: random.Random) -> Sentence:
    words: list[tuple[str, str, int, str]] = []  # form, tag, head (0 for the verb), label
    for has_preposition in phrases:
        noun = f"noun{stream.randint(1, 2)}"
        first = len(words) + 1
        if not has_preposition:
            words.append((noun, "NOUN", 0, "nsubj"))
        elif name == "content":
            words += [("in", "ADP", first + 1, "case"), (noun, "NOUN", 0, "obl")]
        else:
            words += [("in", "ADP", 0, "prep"), (noun, "NOUN", first, "pcomp")]
    verb = len(words) + 1
    words.append((f"verb{stream.randint(1, 2)}", "VERB", 0, "root"))
    forms, tags, heads, labels = zip(*words, strict=True)
    heads = tuple((head or verb) if word < verb else 0 for word, head in enumerate(heads, 1))
    return Sentence(forms, upos=tags, heads=heads, labels=labels)


def write_two_treebanks(folder: Path) -> Path:
    """Write the files NAME-train.conllu, NAME-dev.conllu, NAME-test.conllu, and a config that names both treebanks."""
    treebanks = {}
    for seed, name in enumerate(NAMES):
        for part, count in (("train", 40 - 10 * seed), ("dev", 12), ("test", 15)):
            text = text_of(prepositional(name, count, seed + 10 * len(part) + count))
            (folder / f"{name}-{part}.conllu").write_text(text, encoding="utf-8")
        treebanks[name] = {part: str(folder / f"{name}-{part}.conllu") for part in ("train", "dev")}
    encoder = {"word_size": 12, "char_filters": 0, "hidden_size": 16, "layers": 1, "min_count": 1, "tag_size": 8}
    encoder |= {"dropout": 0.0, "embedding_dropout": 0.0, "word_dropout": 0.0}
    config = {
        "output": str(folder / "run"),
        "data": {"treebanks": treebanks, "batch_words": 80, "batch_squared": None},
        "model": {"encoder": encoder, "arc_size": 16, "label_size": 8, "dropout": 0.0},
        "optimization": {
            "epochs": 20,
            "learning_rate": 0.03,
            "warmup_steps": 5,
            "average_decay": 0.5,
            "patience": None,
        },
        "trainer": {"accelerator": "cpu", "precision": "32-true"},
    }
    path = folder / "both.yaml"
    path.write_text(yaml.safe_dump(config), encoding="utf-8")
    return path
