"""Treebanks cut for the experiment: few sentences with trees, the rest without; short sentences without any tree."""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from treeparse.data import load_treebank
from treeparse.data.conllu import ConlluSentence, write_conllu
from treeparse.objectives.constraints import constraints_to_yaml, extract_constraints
from treeparse.sentence import EMPTY, Sentence


def cut(treebank: Path, labelled: int, folder: Path) -> tuple[Path, Path]:
    """The first sentences of a file, and all others, as two files."""
    folder.mkdir(parents=True, exist_ok=True)
    sentences = load_treebank(treebank)
    parts = folder / f"first-{labelled}.conllu", folder / f"all-but-{labelled}.conllu"
    for path, part in zip(parts, (sentences[:labelled], sentences[labelled:]), strict=True):
        write_conllu(path, part)
    return parts


def every(treebank: Path, step: int, folder: Path) -> Path:
    """Every so-manieth sentence of a file."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"every-{step}-{treebank.name}"
    write_conllu(path, load_treebank(treebank)[::step])
    return path


def short(treebank: Path, most: int, folder: Path, *, trees: bool) -> Path:
    """The sentences of at most so many words; without ``trees`` every HEAD and DEPREL is ``_``."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"short-{most}-{'trees' if trees else 'words'}-{treebank.name}"
    chosen = (s for s in load_treebank(treebank) if len(s.words) <= most)
    write_conllu(path, chosen if trees else map(without_tree, chosen))
    return path


def without_tree(sentence: ConlluSentence) -> ConlluSentence:
    """The sentence with ``_`` as every HEAD and DEPREL."""
    rows = [[*row[:6], EMPTY, EMPTY, EMPTY, row[9]] for row in sentence.rows() if row[0].isdecimal()]
    lines = [f"# sent_id = {sentence.sent_id}", *("\t".join(row) for row in rows)]
    return ConlluSentence(sentence.words, "\n".join(lines) + "\n\n", sentence.sent_id, sentence.source, sentence.line)


def write_constraints(trees: Path, count: int, path: Path) -> Path:
    """The constraints that the trees of a file show, with the very shares that they have there."""
    found = extract_constraints((sentence.words for sentence in load_treebank(trees)), count, exact=True)
    path.write_text(constraints_to_yaml([each.constraint for each in found]), encoding="utf-8")
    return path


def attachment_baselines(sentences: Sequence[Sentence]) -> dict[str, float]:
    """The UAS of hanging every word from a neighbour.

    From the next word, the last from the root; from the word before, the first from the root; and from that neighbour
    which the gold trees of these very sentences show to be the better one for a word's UPOS.
    """
    hits = defaultdict[str, list[int]](lambda: [0, 0])
    for sentence in sentences:
        for place, (tag, head) in enumerate(zip(sentence.upos or (), sentence.heads or (), strict=True), 1):
            hits[tag][0] += head == (place + 1 if place < len(sentence) else 0)
            hits[tag][1] += head == place - 1
    words = sum(map(len, sentences))
    right, left = (sum(counts[side] for counts in hits.values()) / words for side in (0, 1))
    return {"the next word": right, "the word before": left, "the better by UPOS": sum(map(max, hits.values())) / words}
