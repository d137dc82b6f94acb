"""Large corpora from small treebanks."""

import re
from collections.abc import Iterator, Sequence
from itertools import count, islice

from treeparse.data.conllu import ConlluSentence


def distinct(sentences: Sequence[ConlluSentence], total: int) -> Iterator[str]:
    """Yield so many sentences' texts, no two of which have the same words."""
    for turn, sentence in islice(((turn, each) for turn in count() for each in sentences), total):
        rows = re.findall(r"^\d+\t.*$", sentence.text, re.MULTILINE)
        place = turn % len(rows)
        columns = rows[place].split("\t")
        rows[place] = "\t".join([columns[0], f"{columns[1]}{turn}" if turn else columns[1], *columns[2:]])
        yield "\n".join([*rows, "", ""])
