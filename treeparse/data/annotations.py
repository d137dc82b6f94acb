"""Comments and MISC entries that commands add to CoNLL-U sentences; the rest of a sentence does not change."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from treeparse.data.conllu import ConlluSentence, is_row, is_word_row, key_and_value
from treeparse.data.parses import Parse
from treeparse.data.validation import ID, MISC
from treeparse.sentence import EMPTY

ARC_PROB, LABEL_PROB, TREE_PROB, ENTROPY = "ArcProb", "LabelProb", "tree_prob", "entropy"
HEADS = "Heads"


def probability(value: float) -> str:
    """Return the text of a word's probability in MISC."""
    return f"{value:.4f}"


def figure(value: float) -> str:
    """Return the text of a number in comments and tables, with six significant digits."""
    return f"{value:.6g}"


def with_comments(sentence: ConlluSentence, values: Mapping[str, str | None]) -> ConlluSentence:
    """Return the sentence with more comments ``# key = value``; they replace comments with the same keys.

    A key whose value is None has no comment.
    """
    mark, lines = sentence.mark_and_lines()
    lines = [line for line in lines if not (line.startswith("#") and key_and_value(line)[0] in values)]
    first = next(index for index, line in enumerate(lines) if is_row(line))
    end = "\r" if lines[first].endswith("\r") else ""
    lines[first:first] = [f"# {key} = {value}{end}" for key, value in values.items() if value is not None]
    return replace(sentence, text=mark + "\n".join(lines))


def with_misc(sentence: ConlluSentence, entries: Sequence[Mapping[str, str | None]]) -> ConlluSentence:
    """Return the sentence with ``key=value`` entries at the end of MISC, from one mapping for each word; old ones go.

    A key whose value is None has no entry. Multiword tokens and empty nodes do not change.
    """
    mark, lines = sentence.mark_and_lines()
    words = iter(entries)
    for index, line in enumerate(lines):
        if is_word_row(line):
            values, body = next(words), line.removesuffix("\r")
            columns = body.split("\t")
            old = [] if columns[MISC] == EMPTY else columns[MISC].split("|")
            others = [item for item in old if item.partition("=")[0] not in values]
            added = (f"{key}={value}" for key, value in values.items() if value is not None)
            columns[MISC] = "|".join([*others, *added]) or EMPTY
            lines[index] = "\t".join(columns) + line[len(body) :]
    return replace(sentence, text=mark + "\n".join(lines))


def with_probabilities(sentence: ConlluSentence, parse: Parse) -> ConlluSentence:
    """Return the sentence with the probabilities of a parse.

    MISC of each word gets ``ArcProb`` of the arc and ``LabelProb`` of arc and label together; comments get
    ``tree_prob`` of the labelled tree and, if known, the ``entropy`` of all trees (nats).
    """
    if parse.arc_probs is None or parse.label_probs is None:
        raise ValueError("The parse has no probabilities: request them in parse, kbest or sample.")
    pairs = zip(parse.arc_probs, parse.label_probs, strict=True)
    entries = [{ARC_PROB: probability(arc), LABEL_PROB: probability(labeled)} for arc, labeled in pairs]
    entropy = None if parse.entropy is None else figure(parse.entropy)
    values = {TREE_PROB: figure(math.exp(parse.log_prob)), ENTROPY: entropy}
    return with_comments(with_misc(sentence, entries), values)


def has_probabilities(sentence: ConlluSentence) -> bool:
    """Return whether some word has a probability in MISC, as `with_probabilities` writes it."""
    if f"{ARC_PROB}=" not in sentence.text and f"{LABEL_PROB}=" not in sentence.text:  # because this check is faster
        return False
    return any(ARC_PROB in entries or LABEL_PROB in entries for entries in misc_entries(sentence))


def without_probabilities(sentence: ConlluSentence) -> ConlluSentence:
    """Return the sentence without the entries and comments of `with_probabilities`."""
    if not has_probabilities(sentence):
        return sentence
    bare = with_misc(sentence, [{ARC_PROB: None, LABEL_PROB: None}] * len(sentence.words))
    return with_comments(bare, {TREE_PROB: None, ENTROPY: None})


def misc_entries(sentence: ConlluSentence) -> list[dict[str, str]]:
    """Return the ``key=value`` entries in MISC of each word."""
    rows = (row for row in sentence.rows() if row[ID].isdecimal())
    return [dict(item.split("=", 1) for item in row[MISC].split("|") if "=" in item) for row in rows]


def with_head_sets(sentence: ConlluSentence, parse: Parse) -> ConlluSentence:
    """Return the sentence with the parse's sets of heads in MISC (``Heads=2,5``), as training reads possible heads."""
    if parse.head_sets is None:
        raise ValueError("The parse has no sets of heads: request them by head_threshold in parse.")
    return with_misc(sentence, [{HEADS: ",".join(map(str, heads))} for heads in parse.head_sets])
